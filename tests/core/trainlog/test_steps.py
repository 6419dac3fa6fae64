"""Counters, their turns, and rates."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.core.trainlog.readings import LONGEST_LINE
from gpudebug.core.trainlog.series import LIMIT
from gpudebug.core.trainlog.steps import CounterReading, StepCounter, StepCounters


def run(*readings: CounterReading, key: str = "step") -> StepCounter:
    source = StepCounter(("", key), "step", 1.0, 0)
    for reading in readings:
        source.update(reading)
    return source


def test_a_counter_that_starts_again_each_epoch_goes_on() -> None:
    source = run(*(CounterReading(n, 60, None, float(epoch)) for epoch in (1, 2, 3) for n in (20, 40, 60)))
    assert (source.value, source.rolls, source.seen) == (180, 2, 9)


def in_batches(*printed: int, watched: bool = False) -> LogSummary:
    """What a log says of three epochs, counted from 0, of which these batches are printed."""
    reader, at = LogReader(), 0.0
    for epoch in range(3):
        for batch in printed:
            at += 1
            reader.feed(
                f"Epoch[{epoch}] Batch [{batch}] speed: 700 samples/sec accuracy=0.{batch}\n".encode(),
                at if watched else None,
            )
    return reader.summary()


def test_epochs_count_where_it_is_not_printed_how_many_batches_one_has() -> None:
    found = in_batches(50, 100, 150)
    assert found.progress is not None
    assert (found.steps, found.progress.unit, found.progress.done) == (None, "epochs", 3)
    assert in_batches(50, 100, 150, 164).steps == 3 * 164
    assert in_batches(1, 2, 3).steps == 9


def test_of_a_run_that_is_watched_batches_give_the_rate() -> None:
    found = in_batches(50, 100, 150, watched=True)
    assert found.steps_per_s == pytest.approx(50, rel=0.05)


def test_without_an_epoch_a_finished_counter_may_start_again() -> None:
    assert run(*(CounterReading(n, 30, None) for n in (0, 10, 20, 29, 0, 10, 29))).value == 59
    assert run(*(CounterReading(n, 60, None) for n in (0, 20, 40, 0, 20, 40))).value == 100


def test_lines_of_several_ranks_out_of_order_are_no_new_epoch() -> None:
    source = run(*(CounterReading(n, 200, None) for n in (10, 20, 10, 20, 30, 20, 40)))
    assert (source.value, source.rolls) == (40, 0)


def redrawn(epochs: int, steps: int, every: int) -> StepCounter:
    """A bar over all epochs, redrawn where a line with the epoch came between, as of HF Trainer."""
    total, epoch, readings = epochs * steps, None, []
    for n in range(1, total + 1):
        readings.append(CounterReading(n, total, None, epoch))
        if n % every == 0:
            epoch = n / steps
            readings.append(CounterReading(n, total, None, epoch))
    return run(*readings, key="bar")


@pytest.mark.parametrize("every", [5, 17, 34, 68])
def test_a_bar_over_all_epochs_that_is_redrawn_where_one_ends_goes_on(every: int) -> None:
    source = redrawn(4, 34, every)
    assert (source.value, source.rolls) == (136, 0)


def test_a_bar_of_one_line_an_epoch_counts_each() -> None:
    source = run(*(CounterReading(60, 60, None, float(epoch)) for epoch in (1, 2, 3)))
    assert (source.value, source.rolls) == (180, 2)


def test_a_redraw_is_no_step() -> None:
    assert run(CounterReading(5, 10, 1.0), CounterReading(5, 10, 2.0)).seen == 1


def test_the_first_step_may_be_zero() -> None:
    assert (
        run(CounterReading(0, None, None, loss=True), CounterReading(9, None, None, loss=True)).reached == 10
    )
    assert run(CounterReading(0, 10, None), CounterReading(10, 10, None)).reached == 10


def test_multiples_of_batches_are_samples() -> None:
    assert run(*(CounterReading(640 * i, 6000, None) for i in range(9)), key="#").samples
    assert not run(*(CounterReading(100 * i, 6000, None) for i in range(9)), key="#").samples


def test_the_number_of_counters_is_bounded() -> None:
    steps = StepCounters()
    found = [steps.source(("", str(i)), "step", 1.0) for i in range(1000)]
    assert sum(source is not None for source in found) == 64


def test_the_training_bar_leads_not_that_of_validation_or_download() -> None:
    reader = LogReader()
    for n in range(0, 101, 10):
        reader.feed(f"\rDownloading: 10%|# | {n * 9}/900 [00:01<00:01, 9.5it/s]\n".encode())
    for n in range(0, 61, 20):
        reader.feed(f"\rEpoch 0: 10%|# | {n}/60 [00:01<00:01, 9.5it/s, loss=0.{n}1]\n".encode(), float(n))
        reader.feed(b"".join(b"\rValidation: 1%%|# | %d/99 [00:01<00:01, 9it/s]\n" % i for i in range(99)))
    assert (reader.step, reader.total_steps) == (60, 60)
    assert reader.summary().step_times == tuple((n, float(n)) for n in range(0, 61, 20))


def test_a_bar_of_environment_steps_gives_way_to_updates() -> None:
    reader = LogReader()
    for i in range(1, 6):
        reader.feed(f"\r 10%|# | {i * 2048}/10240 [00:01<00:01, 9it/s]\n".encode())
        reader.feed(
            f"| total_timesteps | {i * 2048} |\n| n_updates | {i * 10} |\n| loss | 1.{i} |\n".encode()
        )
    assert (reader.summary().steps, reader.summary().step_unit) == (50, "step")


def test_samples_and_epochs_are_no_steps() -> None:
    reader = LogReader()
    for i in range(10):
        reader.feed(f"Train Epoch: 1 [{640 * i}/6000 ({i * 10}%)]\tLoss: 1.{i}\n".encode(), float(i))
    summary = reader.summary()
    assert (summary.steps, summary.steps_per_s, summary.step_unit) == (None, None, "samples")
    assert summary.progress_per_s == pytest.approx(640)


@pytest.mark.parametrize(("last", "total"), [(3, None), (5, 15)])
def test_a_run_that_ended_within_an_epoch_shows_no_plan(last: int, total: int | None) -> None:
    """Their number is unknown: a faster run that was ended after as long has seen more of them."""
    reader = LogReader()
    for n in [*range(1, 6), *range(1, 6), *range(1, last + 1)]:
        reader.feed(f"\r{20 * n}%|##  | {n}/5 [00:0{n}<00:05,  1.00it/s, loss=0.5]".encode())
    assert reader.summary(0).total_steps == total


def test_lines_are_kept_by_topic_with_their_times() -> None:
    reader = LogReader()
    reader.feed(b"batch_size: 8\n", 0.5)
    reader.feed(b"step 1 loss 2.0 100 samples/s\n", 1.0)
    reader.feed(b"step 2 loss 1.5 120 samples/s", 2.0)
    assert reader.summary().speech == {
        "batch": (("batch_size: 8", 0.5),),
        "samples": (("step 1 loss 2.0 100 samples/s", 1.0), ("step 2 loss 1.5 120 samples/s", 2.0)),
    }


def test_lines_of_one_shape_are_all_kept() -> None:
    reader = LogReader()
    reader.feed(b"".join(b"%d samples/s\n" % value for value in range(10, 20)))
    kept = [text for text, _ in reader.summary().speech["samples"]]
    assert kept == [f"{value} samples/s" for value in range(10, 20)]


def test_quoted_source_is_no_speech() -> None:
    reader = LogReader()
    reader.feed(
        b"Traceback (most recent call last):\n"
        b'  File "train.py", line 3, in <module>\n'
        b'    print("latency: 12 ms, 100 samples/s")\n'
        b"ValueError: broken\n"
    )
    assert reader.summary().speech == {}


def test_memory_is_bounded_in_lines_and_in_their_length() -> None:
    reader = LogReader()
    for count in range(3 * LIMIT):
        # Reading a long line takes longest, and a few show as much.
        padding = b" " * 2 * LONGEST_LINE if count % 16 == 0 else b""
        reader.feed(b"%d samples/s" % count + padding + b"|\n", float(count))
    lines = reader.summary().speech["samples"]
    assert len(lines) <= LIMIT + 1
    assert max(len(text) for text, _ in lines) == LONGEST_LINE
    assert lines[0][1] == 0.0
    assert lines[-1][1] == float(3 * LIMIT - 1)
