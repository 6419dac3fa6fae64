"""Durations, rates and clocks that a log prints of its steps."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.timing import Timing, rate

BAR = ("bar", "train", "100", "")


def test_bars_of_two_units_do_not_mix() -> None:
    timing = Timing()
    for epoch in range(4):
        timing.bar(("bar", "epochs", "3", "epoch"), epoch, 10.0 * epoch, 0.1)
        timing.bar(BAR, 100 * (epoch % 2), 20.0 * (epoch % 2), 5.0)
    assert timing.shown_per_s(("bar", "epochs", "3", "epoch")) == (0.1, "bar")
    assert timing.steps_per_s(BAR, 200) == (5.0, "bar")


def test_durations_of_epochs_are_none_of_steps() -> None:
    timing = Timing()
    for _ in range(3):
        timing.epoch(0.5, None)
    assert (timing.epochs_per_s(), timing.steps_per_s(None, None)) == (2.0, None)


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
    assert (timing.data_s(), timing.update_s(), timing.steps_per_s(BAR, 100)) == (None, None, None)


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
    assert timing.steps_per_s(BAR, 100) == ((rate, "printed") if rate else None)


def test_a_bars_own_clock_comes_first_over_all_its_turns() -> None:
    timing = Timing()
    for n, elapsed in ((0, 0.0), (100, 20.0), (0, 0.0), (100, 20.0)):
        timing.bar(BAR, n, elapsed, None)
    timing.rate(99.0)
    assert timing.steps_per_s(BAR, 100) == (5.0, "bar")


def test_a_bars_clock_of_whole_seconds_is_too_coarse_for_short_turns() -> None:
    timing = Timing()
    for n, elapsed in ((0, 0.0), (50, 2.0), (0, 0.0), (50, 2.0)):
        timing.bar(BAR, n, elapsed, 19.0)
    assert timing.steps_per_s(BAR, 100) == (19.0, "printed")


def test_a_bar_that_counts_something_else_says_nothing() -> None:
    timing = Timing()
    timing.bar(BAR, 0, 0.0, 200.0)
    timing.bar(BAR, 5000, 25.0, 200.0)
    assert timing.steps_per_s(None, 5000) is None
    assert timing.steps_per_s(BAR, 100) == (200.0, "bar")


def test_the_first_step_of_a_bar_is_its_warm_up() -> None:
    timing = Timing()
    for n, elapsed in ((0, 0.0), (1, 30.0), (61, 50.0)):
        timing.bar(BAR, n, elapsed, None)
    assert timing.steps_per_s(BAR, 61) == (3.0, "bar")


@pytest.mark.parametrize(
    ("shown", "rate"),
    [((20.0, 22.0, 21.0, 20.5), 20.75), ((59.0, 84.0, 92.0, 109.0, 36.0), None), ((20.0,), 20.0)],
)
def test_shown_rates_that_differ_much_are_none(shown: tuple[float, ...], rate: float | None) -> None:
    timing = Timing()
    for n, value in enumerate(shown, 1):
        for _ in range(2):
            timing.bar(BAR, 10 * n, float(n), value)
    assert timing.steps_per_s(BAR, 40) == ((rate, "printed") if rate else None)


def test_a_mean_over_few_steps_is_mostly_their_warm_up() -> None:
    timing = Timing()
    timing.rate(12.0)
    assert timing.steps_per_s(None, 12) is None
    assert timing.steps_per_s(None, 60) == (12.0, "printed")
    assert timing.steps_per_s(None, None) == (12.0, "printed")


def test_a_lone_rate_without_a_name_is_of_what_was_drawn_last() -> None:
    timing = Timing()
    timing.rate(44.5, named=False)
    assert timing.steps_per_s(None, 80) is None
    for value in (45.0, 45.5):
        timing.rate(value, named=False)
    assert timing.steps_per_s(None, 80) == (45.0, "printed")


def test_printed_rates_come_last() -> None:
    timing = Timing()
    for value in (3.0, 5.0, 4.0, 0.0):
        timing.rate(value)
    assert timing.steps_per_s(BAR, 100) == (4.0, "printed")


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


BY_EPOCH = """\
2025-01-01 10:0{i}:00.000000: Epoch {i}
2025-01-01 10:0{i}:00.000000: Current learning rate: 0.01
2025-01-01 10:0{i}:50.000000: train_loss {loss}
2025-01-01 10:0{i}:50.000000: val_loss -0.1
2025-01-01 10:0{i}:50.000000: Pseudo dice [0.31, 0.27]
2025-01-01 10:0{i}:50.000000: {took}
2025-01-01 10:0{i}:50.000000: Yayy! New best EMA pseudo Dice: 0.3
"""


@pytest.mark.parametrize(
    ("took", "epoch_s", "between_s"),
    [
        ("Epoch time: 50.0 s", 50.0, 10.0),
        ("This epoch took 50.0 s", 50.0, 10.0),
        ("epoch_duration=50000.0 ms", 50.0, 10.0),
        ("train epoch time 45.5 sec", 45.5, 14.5),
        # An epoch's own time is more than passes; a clock and two units are not read.
        ("Epoch time: 75.0 s", 75.0, None),
        ("Epoch time: 0:00:50", None, None),
        ("Epoch time: 1m 5s", None, None),
        ("val epoch time: 5.0 s", None, None),
        ("total time: 50.0 s", None, None),
    ],
)
def test_epochs_and_what_passes_between_them(
    took: str, epoch_s: float | None, between_s: float | None
) -> None:
    reader = LogReader()
    for i in range(6):
        reader.feed(BY_EPOCH.format(i=i, loss=-0.1 * i, took=took).encode())
    found = reader.summary()
    assert found.progress is not None and found.steps is None
    assert (found.progress.unit, found.progress.done, found.progress.epoch_s) == ("epochs", 6, epoch_s)
    assert found.progress.between_s == between_s
    assert found.progress.per_s == pytest.approx(1 / 60)
    assert (found.loss_name, found.points) == ("train_loss", 6)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], None),
        ([(1, 0.0), (2, 0.1)], None),
        ([(1, 5.0), (2, 5.0), (3, 5.0), (4, 5.0)], None),
        ([(0, 0.0), (10, 1.0), (20, 2.0)], 10.0),
        ([(10 * i, float(i)) for i in range(20)], 10.0),
        ([(10 * i, float(i)) for i in range(20)] + [(200, 60.0)], 10.0),
        ([(0, -30.0)] + [(10 * i, float(i)) for i in range(1, 20)], 10.0),
    ],
)
def test_rate(points: list[tuple[int, float]], expected: float | None) -> None:
    assert rate(points) == (None if expected is None else pytest.approx(expected))
