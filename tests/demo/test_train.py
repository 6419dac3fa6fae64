"""The demo's training program: what it learns, in which order it reads, when it ends."""

from __future__ import annotations

import re
import threading
import time
from itertools import islice

import numpy as np
import pytest

from gpudebug.demo import train


def output(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    train.train(train.parse(["--latency=0", "--hidden=64", *flags]))
    return capsys.readouterr().out


def series(text: str) -> list[str]:
    return re.findall(r"step=\d+ loss=\S+", text)


def test_it_learns_to_tell_the_classes_apart(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "--steps=200")
    losses = [float(value) for value in re.findall(r"loss=(\S+)", text)]
    assert np.mean(losses[-10:]) < 0.6 * losses[0]
    accuracy = float(text.split()[-1])
    assert accuracy > 4 / train.CLASSES


@pytest.mark.parametrize("flags", [["--prefetch=3"], ["--store=local"], ["--cache_stats=1"]])
def test_one_seed_gives_one_series_of_losses(capsys: pytest.CaptureFixture[str], flags: list[str]) -> None:
    plain = series(output(capsys, "--steps=12"))
    assert len(plain) == 6
    assert series(output(capsys, "--steps=12", *flags)) == plain
    assert series(output(capsys, "--steps=12", "--seed=1")) != plain


def test_gradients_are_those_of_the_loss() -> None:
    rng = np.random.default_rng(3)
    model = train.Classifier(rng, 8, "float64")
    batch = train.make_samples(rng, rng.standard_normal((train.CLASSES, train.FEATURES)), 5)
    _, gradients = model.loss_and_gradients(batch)
    for weight, gradient in zip(model.weights, gradients, strict=True):
        at = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        weight[at] += 1e-6
        above = model.loss_and_gradients(batch)[0]
        weight[at] -= 2e-6
        below = model.loss_and_gradients(batch)[0]
        weight[at] += 1e-6
        assert (above - below) / 2e-6 == pytest.approx(gradient[at], rel=1e-3)


@pytest.mark.parametrize(("clip_norm", "expected"), [(0.5, 0.5), (0.0, 5.0), (50.0, 5.0)])
def test_a_limit_on_the_norm_shortens_only_longer_gradients(clip_norm: float, expected: float) -> None:
    model = train.Classifier(np.random.default_rng(0), 4, "float64")
    before = [weight.copy() for weight in model.weights]
    gradients = [np.zeros_like(weight) for weight in model.weights]
    gradients[0][0, 0], gradients[1][0, 0] = 3.0, 4.0
    model.update(gradients, lr=1.0, clip_norm=clip_norm)
    moved = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(before, model.weights, strict=True)))
    assert moved == pytest.approx(expected)


class Gate(train.LocalStore):
    """A store that answers only when told, and counts who waits."""

    def __init__(self) -> None:
        super().__init__(train.Samples(np.arange(100.0)[:, None], np.arange(100)))
        self.asked = threading.Semaphore(0)
        self.open = threading.Event()

    def read(self, rows: train.Labels) -> train.Samples:
        self.asked.release()
        assert self.open.wait(30)
        return super().read(rows)


def test_prefetch_reads_that_far_ahead_and_keeps_the_order() -> None:
    store = Gate()
    rows = (np.array([n]) for n in range(100))
    batches = train.load(store, rows, prefetch=4)
    got: list[int] = []
    consumer = threading.Thread(target=lambda: got.extend(int(b.labels[0]) for b in islice(batches, 20)))
    consumer.start()
    try:
        for _ in range(4):
            assert store.asked.acquire(timeout=30)
    finally:
        store.open.set()
        consumer.join(30)
    batches.close()
    assert got == list(range(20))


def test_a_remote_read_takes_the_round_trip_and_no_cpu() -> None:
    samples = train.Samples(np.zeros((4, 2)), np.zeros(4, dtype=np.int64))
    store = train.SlowStore(samples, latency=0.2)
    began, busy = time.monotonic(), time.thread_time()
    assert len(store.read(np.array([1, 2])).labels) == 2
    assert time.monotonic() - began >= 0.2
    assert time.thread_time() - busy < 0.1


def test_duration_counts_from_the_end_of_the_warm_up(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    text = output(capsys, "--duration=0.3", "--warmup_steps=20")
    assert time.monotonic() - began >= 0.3
    trained = re.search(r"trained (\d+) steps", text)
    assert trained is not None
    assert int(trained[1]) > 20


@pytest.mark.parametrize("size", [0, train.TRAIN_SAMPLES + 1])
def test_a_batch_that_the_store_cannot_fill_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="batch_size"):
        next(train.batch_rows(np.random.default_rng(0), size))
