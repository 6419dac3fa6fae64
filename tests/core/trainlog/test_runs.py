"""Logs that several runs were appended to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.core.words import Trend

PROGRAM = """
import logging, math, sys
start, end, rate, dies = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), len(sys.argv) > 4
handler = logging.FileHandler("train.log")
form = "%(asctime)s - %(levelname)s - %(message)s"
logging.basicConfig(level=logging.INFO, handlers=[handler], format=form)
log = logging.getLogger()
log.info("Arguments: lr=%s batch_size=32", rate)
for line in ("Loading the training set", "Found 5000 images in 10 classes", "Model has 11.7 M parameters"):
    log.info(line)
try:
    if dies:
        raise RuntimeError("no such device")
    for step in range(start, end, 10):
        log.info("step %d loss %.4f", step, 2.5 * math.exp(-rate * step / 100) + 0.01 * (step % 3))
        if not step % 50:
            log.info("Found 5000 images in 10 classes")
except RuntimeError:
    log.exception("training failed")
    raise SystemExit(1)
"""


def appended(folder: Path, *runs: tuple[str, ...]) -> LogSummary:
    """What a log says that a real program's runs were appended to."""
    (folder / "train.py").write_text(PROGRAM)
    for run in runs:
        subprocess.run([sys.executable, "train.py", *run], cwd=folder, check=False, timeout=60)
    return told((folder / "train.log").read_bytes())


def told(log: bytes) -> LogSummary:
    reader = LogReader()
    for at in range(0, len(log), 777):
        reader.feed(log[at : at + 777])
    return reader.summary()


def test_the_last_of_three_runs_is_read(tmp_path: Path) -> None:
    found = appended(tmp_path, ("10", "401", "1"), ("10", "1001", "0.2"), ("10", "301", "0.5"))
    assert (found.runs, found.steps, found.points, found.trend) == (3, 300, 30, Trend.CONVERGING)
    assert (found.first, found.last) == (pytest.approx(2.3881, abs=1e-3), pytest.approx(0.5578, abs=1e-3))


def test_a_training_that_goes_on_is_one(tmp_path: Path) -> None:
    found = appended(tmp_path, ("10", "401", "0.5"), ("410", "801", "0.5"))
    assert (found.runs, found.steps, found.points) == (1, 800, 80)
    assert found.first == pytest.approx(2.3881, abs=1e-3)


def test_the_failure_of_an_earlier_run_is_not_the_files(tmp_path: Path) -> None:
    dead = "10", "401", "0.5", "dies"
    found = appended(tmp_path, dead, ("10", "401", "1"), dead, ("10", "301", "0.5"))
    assert (found.runs, found.steps, found.failure) == (2, 300, None)


def test_a_run_that_failed_as_it_began_is_told_beside_what_was_trained(tmp_path: Path) -> None:
    found = appended(tmp_path, ("10", "401", "1"), ("10", "401", "1", "dies"))
    assert (found.runs, found.steps) == (1, 400)
    assert found.failure is not None
    assert found.failure.lines[-1].endswith("no such device")


def falling(counts: range, line: str = "Iteration [{n}/1000], loss: {loss:.4f}\n", start: float = 3.0) -> str:
    return "".join(line.format(n=n, loss=start / (1 + n / 40)) for n in counts)


def test_steps_and_a_loss_that_are_back_where_they_began_are_another_run() -> None:
    found = told((falling(range(10, 700, 10)) + falling(range(10, 300, 10))).encode())
    assert (found.runs, found.steps, found.trend) == (2, 290, Trend.CONVERGING)
    assert found.first == pytest.approx(2.0, abs=0.01)


def test_batches_of_epochs_that_are_not_printed_are_one_run() -> None:
    epochs = "".join(falling(range(0, 100, 10), "batch {n} loss {loss:.4f}\n", 3.0 / 2**e) for e in range(4))
    assert told(epochs.encode()).runs == 1


EPOCHS = "Loading shards\nShuffling them\nBuilding batches\n"


def test_what_each_epoch_prints_begins_no_run() -> None:
    rows = "".join(
        f"{EPOCHS}epoch {e} step {e * 100 + i} loss {3 - e / 2 - i / 200:.4f}\n"
        for e in range(4)
        for i in range(0, 100, 5)
    )
    found = told(rows.encode())
    assert (found.runs, found.points) == (1, 80)


def test_a_run_that_is_watched_is_one() -> None:
    reader = LogReader()
    for _ in range(2):
        reader.feed(EPOCHS.encode(), 1.0)
        for step in range(10, 100, 10):
            reader.feed(f"step {step} loss {3 - step / 50:.3f}\n".encode(), 1.0 + step)
    assert reader.summary().runs == 1


def test_a_long_opening_is_held_in_bounded_memory() -> None:
    opening = "".join(f"layer {i} of the model: Linear(in={i})\n" for i in range(30_000))
    run = opening + "".join(f"step {step} loss {3 - step / 50:.3f}\n" for step in range(10, 100, 10))
    found = told((run * 2).encode())
    assert (found.runs, found.steps, found.points) == (2, 90, 9)


MODULES = "Loaded module: python3/3.7.5\nLoaded dependency: cuda/10.0\nLoaded module: cudnn/7.6\n"


def died(*message: str) -> str:
    frame = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    main()\n'
    return MODULES + "".join(frame + line + "\n" for line in message)


def test_of_jobs_that_failed_as_they_began_the_last_is_told() -> None:
    jobs = died("RuntimeError: The size of tensor a (13) must match the size of tensor b (12)")
    jobs += died("TypeError: list indices must be integers") + died("ValueError: no such format")
    for log in (jobs, jobs + MODULES):
        found = told(log.encode()).failure
        assert found is not None and found.kind == "exception"
        assert found.lines[-1] == "ValueError: no such format"


def test_of_ranks_of_one_job_that_fail_the_first_is_told() -> None:
    found = told(died("RuntimeError: shape mismatch", "TypeError: list indices must be integers").encode())
    assert found.failure is not None and found.failure.kind == "shape"


def test_a_count_without_a_loss_that_begins_again_is_of_another_run() -> None:
    updates = "".join(f"Num updates: {n} fps: 33.7\n" for n in range(10, 210, 10))
    found = told((updates + updates[: updates.index("Num updates: 60")]).encode())
    assert (found.runs, found.steps) == (2, 50)
