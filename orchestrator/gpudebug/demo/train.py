"""Trains a small classifier with NumPy, on samples that are read from a store.

The data are synthetic (ten noisy clusters), the learning is real: a network of three layers, cross-entropy,
momentum, gradients clipped by their norm. A remote store answers each read after a network round trip, which
`SlowStore` waits out; while the program waits, it computes nothing. Runs are repeatable: one seed gives one
series of losses, step by step, whatever the store and however far ahead batches are requested.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]

CLASSES = 10
FEATURES = 256
TRAIN_SAMPLES = 16384
TEST_SAMPLES = 1024
LEAK = 0.1


@dataclass(frozen=True)
class Samples:
    """`features` has shape (samples, FEATURES), `labels` (samples,)."""

    features: Floats
    labels: Labels


class LocalStore:
    """Samples in this process's memory."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def read(self, rows: Labels) -> Samples:
        return Samples(self.samples.features[rows], self.samples.labels[rows])


class SlowStore(LocalStore):
    """Samples behind a network: each read takes one round trip of `latency` seconds, and no CPU."""

    def __init__(self, samples: Samples, latency: float) -> None:
        super().__init__(samples)
        self.latency = latency

    def read(self, rows: Labels) -> Samples:
        time.sleep(self.latency)
        return super().read(rows)


class Scaler:
    """Brings features to mean 0 and variance 1, by the statistics of a fixed part of the training data.

    With `cached` the statistics are computed once, else again for each batch: the result is the same.
    """

    def __init__(self, sample: Floats, cached: bool) -> None:
        self.sample = sample
        self.statistics = self.measure() if cached else None

    def measure(self) -> tuple[Floats, Floats]:
        return self.sample.mean(axis=0), self.sample.std(axis=0) + 1e-6

    def __call__(self, features: Floats) -> Floats:
        mean, deviation = self.statistics or self.measure()
        return (features - mean) / deviation


class Classifier:
    """A network with two hidden layers of leaky rectified units, trained by descent with momentum."""

    def __init__(self, rng: np.random.Generator, hidden: int, dtype: str) -> None:
        sizes = [FEATURES, hidden, hidden, CLASSES]
        self.dtype = np.dtype(dtype)
        self.weights = [
            (rng.standard_normal((before, after)) * np.sqrt(2.0 / before)).astype(self.dtype)
            for before, after in pairwise(sizes)
        ]
        self.velocities = [np.zeros_like(weight) for weight in self.weights]

    def forward(self, features: Floats) -> list[Floats]:
        """Return the layers' outputs: the input first, the logits last."""
        layers = [features.astype(self.dtype)]
        for weight in self.weights[:-1]:
            sums = layers[-1] @ weight
            layers.append(np.maximum(sums, LEAK * sums))
        return [*layers, layers[-1] @ self.weights[-1]]

    def loss_and_gradients(self, batch: Samples) -> tuple[float, list[Floats]]:
        """Mean cross-entropy in nats, and its gradient for each weight."""
        layers = self.forward(batch.features)
        exponentials = np.exp(layers[-1] - layers[-1].max(axis=1, keepdims=True))
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
        rows = np.arange(len(batch.labels))
        loss = float(-np.log(np.maximum(probabilities[rows, batch.labels], 1e-12)).mean())
        error = probabilities
        error[rows, batch.labels] -= 1
        error /= len(rows)
        gradients: list[Floats] = []
        one, leak = self.dtype.type(1), self.dtype.type(LEAK)
        for output, weight in zip(reversed(layers[:-1]), reversed(self.weights), strict=True):
            gradients.insert(0, output.T @ error)
            error = (error @ weight.T) * np.where(output > 0, one, leak)
        return loss, gradients

    def update(self, gradients: list[Floats], lr: float, clip_norm: float) -> None:
        """Moves the weights against the gradients; `clip_norm` above 0 limits the norm of these."""
        norm = float(np.sqrt(sum(float(np.vdot(gradient, gradient)) for gradient in gradients)))
        scale = min(1.0, clip_norm / (norm + 1e-12)) if clip_norm > 0 else 1.0
        for weight, velocity, gradient in zip(self.weights, self.velocities, gradients, strict=True):
            velocity[:] = 0.9 * velocity - lr * scale * gradient
            np.add(weight, velocity, out=weight)

    def accuracy(self, samples: Samples) -> float:
        return float((self.forward(samples.features)[-1].argmax(axis=1) == samples.labels).mean())


def make_samples(rng: np.random.Generator, centres: Floats, number: int) -> Samples:
    """`number` samples around the classes' `centres`."""
    labels = rng.integers(0, CLASSES, number)
    features = centres[labels] + 7.0 * rng.standard_normal((number, FEATURES))
    return Samples(features.astype(np.float32), labels)


def batch_rows(rng: np.random.Generator, batch_size: int) -> Iterator[Labels]:
    """Rows of one batch after the other; each epoch is a new shuffle."""
    if not 0 < batch_size <= TRAIN_SAMPLES:
        raise ValueError(f"batch_size must be between 1 and {TRAIN_SAMPLES}, not {batch_size}")
    while True:
        order = rng.permutation(TRAIN_SAMPLES)
        for start in range(0, TRAIN_SAMPLES - batch_size + 1, batch_size):
            yield order[start : start + batch_size]


def load(store: LocalStore, rows: Iterator[Labels], prefetch: int) -> Iterator[Samples]:
    """Batches in the order of `rows`, with up to `prefetch` reads under way while the caller computes."""
    if prefetch <= 0:
        yield from map(store.read, rows)
        return
    with ThreadPoolExecutor(prefetch) as threads:
        pending: deque[Future[Samples]] = deque()
        for wanted in rows:
            pending.append(threads.submit(store.read, wanted))
            if len(pending) > prefetch:
                yield pending.popleft().result()


class Meter:
    """Means over the steps since the last printed line."""

    def __init__(self) -> None:
        self.steps = 0
        self.loss = self.waited = self.computed = 0.0

    def add(self, loss: float, waited: float, computed: float) -> None:
        self.steps += 1
        self.loss += loss
        self.waited += waited
        self.computed += computed

    def __str__(self) -> str:
        return (
            f"loss={self.loss / self.steps:.4f}"
            f" data_s={self.waited / self.steps:.3f} update_s={self.computed / self.steps:.3f}"
        )


def train(options: argparse.Namespace) -> None:
    """Trains until `steps` or `duration` is reached, with a line of means every `log_every` steps."""
    rng = np.random.default_rng(options.seed)
    centres = rng.standard_normal((CLASSES, FEATURES))
    data, test = make_samples(rng, centres, TRAIN_SAMPLES), make_samples(rng, centres, TEST_SAMPLES)
    model = Classifier(rng, options.hidden, options.dtype)
    scale = Scaler(data.features[:1024], options.cache_stats)
    store = SlowStore(data, options.latency) if options.store == "remote" else LocalStore(data)
    print(f"store={options.store} samples={TRAIN_SAMPLES} batch_size={options.batch_size}", flush=True)

    batches = load(store, batch_rows(rng, options.batch_size), options.prefetch)
    meter, warm = Meter(), float("inf")
    for step in count(1):
        asked = time.monotonic()
        batch = next(batches)
        got = time.monotonic()
        loss, gradients = model.loss_and_gradients(Samples(scale(batch.features), batch.labels))
        model.update(gradients, options.lr, options.clip_norm)
        done = time.monotonic()
        meter.add(loss, got - asked, done - got)
        if step % options.log_every == 0:
            print(f"step={step} {meter}", flush=True)
            meter = Meter()
        if step == options.warmup_steps:
            warm = done
        if step == options.steps or done - warm >= options.duration:
            break
    accuracy = model.accuracy(Samples(scale(test.features), test.labels))
    print(f"trained {step} steps, test accuracy {accuracy:.3f}")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Train a small classifier on samples read from a store.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--store", choices=["remote", "local"], default="remote", help="where the samples are")
    add("--latency", type=float, default=0.06, help="round trip to the remote store, in s")
    add("--prefetch", type=int, default=0, help="reads under way while the model computes")
    add("--cache_stats", type=int, choices=[0, 1], default=0, help="1: measure the scaler's statistics once")
    add("--batch_size", type=int, default=256, help="samples a step")
    add("--hidden", type=int, default=1024, help="width of both hidden layers")
    add("--dtype", default="float32", help="NumPy's name of the weights' type")
    add("--lr", type=float, default=0.5, help="learning rate")
    add("--clip_norm", type=float, default=0.04, help="largest norm of the gradients; 0: no limit")
    add("--duration", type=float, default=float("inf"), help="s to train for, counted after the warm-up")
    add("--warmup_steps", type=int, default=10, help="steps before --duration counts")
    add("--steps", type=int, default=0, help="stop after this many steps; 0: by duration only")
    add("--log_every", type=int, default=2, help="steps from one printed line to the next")
    add("--seed", type=int, default=0, help="of data, weights and order")
    return parser.parse_args(argv)


if __name__ == "__main__":
    train(parse())
