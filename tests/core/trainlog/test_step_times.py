"""Printed durations and rates."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.series import LIMIT
from gpudebug.core.trainlog.step_times import LONGEST_LINE, Timing, topics


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("step 7 loss 0.5 412.3 samples/s", ("samples",)),
        ("{'train_samples_per_second': '285.8', 'loss': 1}", ("samples",)),
        ("Speed: 118.2 img/sec", ("samples",)),
        ("throughput 12 sequences per second", ("samples",)),
        ("effective batch size: 16 x 2 = 32", ("batch",)),
        ("batch_size=8", ("batch",)),
        ("Inference latency: 12.3 ms", ("latency",)),
        ("forward pass time: 3 ms", ("latency",)),
        ("batch size 8: 412 samples/s, latency 19 ms", ("samples", "batch", "latency")),
        ("step 7 loss 0.5 12.3 it/s", ()),
        ("downloading samples", ()),
    ],
)
def test_what_a_line_speaks_of(line: str, about: tuple[str, ...]) -> None:
    assert topics(line.encode()) == about


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
    for count in range(10 * LIMIT):
        reader.feed(b"%d samples/s" % count + b" " * 2 * LONGEST_LINE + b"|\n", float(count))
    lines = reader.summary().speech["samples"]
    assert len(lines) <= LIMIT + 1
    assert max(len(text) for text, _ in lines) == LONGEST_LINE
    assert lines[0][1] == 0.0
    assert lines[-1][1] == float(10 * LIMIT - 1)


def test_means_of_data_and_update() -> None:
    timing = Timing()
    timing.add(0.1, 0.3, None)
    timing.add(0.3, 0.5, None)
    assert (timing.data_s(), timing.update_s()) == (pytest.approx(0.2), pytest.approx(0.4))


def test_update_is_what_the_whole_leaves() -> None:
    timing = Timing()
    timing.add(0.1, None, 0.5)
    assert (timing.data_s(), timing.update_s()) == (pytest.approx(0.1), pytest.approx(0.4))


def test_a_block_of_lines_is_put_together() -> None:
    timing = Timing()
    timing.add(0.4, None, None)
    timing.add(None, 0.05, None)
    assert (timing.data_s(), timing.update_s()) == (pytest.approx(0.4), pytest.approx(0.05))


def test_nothing_printed_is_unknown() -> None:
    timing = Timing()
    timing.add(None, None, 0.5)
    assert (timing.data_s(), timing.update_s(), timing.steps_per_s(True)) == (None, None, None)


@pytest.mark.parametrize(
    ("totals", "rate"),
    [
        ([0.5, 0.5, 0.5], 2.0),
        ([5.0, 0.5, 0.5, 0.5], 2.0),
        ([0.5, 0.5], None),
        ([1.0, 2.0, 3.0, 4.0, 5.0], None),
        ([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None),
    ],
)
def test_the_rate_from_durations_that_do_not_add_up(totals: list[float], rate: float | None) -> None:
    timing = Timing()
    for total in totals:
        timing.add(None, None, total)
    assert timing.steps_per_s(True) == ((rate, "printed") if rate else None)


def test_a_bars_own_clock_comes_first_over_all_its_turns() -> None:
    timing = Timing()
    for n, elapsed in ((0, 0.0), (100, 20.0), (0, 0.0), (100, 20.0)):
        timing.bar("epoch", n, elapsed)
    timing.rate(99.0)
    assert timing.steps_per_s(True) == (5.0, "bar")


def test_a_bars_clock_of_whole_seconds_is_too_coarse_for_short_turns() -> None:
    timing = Timing()
    for n, elapsed in ((0, 0.0), (50, 2.0), (0, 0.0), (50, 2.0)):
        timing.bar("epoch", n, elapsed)
    timing.bar_rate(19.0)
    assert timing.steps_per_s(True) == (19.0, "printed")


def test_a_bar_that_counts_something_else_says_nothing() -> None:
    timing = Timing()
    timing.bar("epoch", 0, 0.0)
    timing.bar("epoch", 5000, 25.0)
    timing.bar_rate(200.0)
    assert timing.steps_per_s(False) is None
    assert timing.steps_per_s(True) == (200.0, "bar")


def test_printed_rates_come_last() -> None:
    timing = Timing()
    for value in (3.0, 5.0, 4.0, 0.0):
        timing.rate(value)
    assert timing.steps_per_s(True) == (4.0, "printed")


def test_the_times_of_single_steps_with_their_arrival() -> None:
    timing = Timing()
    for at, total in ((1.0, 0.5), (2.0, 0.6), (3.0, 0.0), (4.0, 0.4)):
        timing.add(None, None, total, at)
    assert [(point.value, point.time) for point in timing.durations()] == [(0.5, 1.0), (0.6, 2.0), (0.4, 4.0)]


def test_data_and_update_make_a_step_where_no_whole_is_printed() -> None:
    timing = Timing()
    for _ in range(3):
        timing.add(0.125, 0.25, None)
    assert [point.value for point in timing.durations()] == [0.375] * 3


def test_a_clock_that_adds_up_tells_no_step_times() -> None:
    timing = Timing()
    for total in (1.0, 2.0, 3.0, 4.0, 5.0):
        timing.add(None, None, total)
    assert timing.durations() == ()
