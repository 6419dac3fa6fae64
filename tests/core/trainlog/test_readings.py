"""The readings of one line."""

from __future__ import annotations

from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.readings import LineReadings
from gpudebug.core.trainlog.sections import LogSection
from gpudebug.core.trainlog.timing import Timing


def test_a_line_of_evaluation_has_losses_but_no_steps() -> None:
    section = LogSection()
    section.read("train", begun=True)
    section.read("val", begun=True)
    line = LineReadings(None, losses=[((":", "", "loss"), 0, 0.5), ((":", "", "train loss"), 0, 0.4)])
    line.positions.append((("", "step"), "step", 1.0, 10, 20))
    line.duration("total", 0, 0.1)
    line.within(section)
    assert [key[1] for key, _, _ in line.losses] == ["val", ""]
    assert (line.positions, line.total) == ([], None)


def test_of_several_durations_by_one_name_the_first_counts() -> None:
    line = LineReadings(None)
    for kind, value in (("data", 0.1), ("data", 0.9), ("update", 0.3), ("update", 0.9)):
        line.duration(kind, 0, value)
    timing = Timing()
    line.time_steps(timing, None)
    assert (timing.data_s(), timing.update_s()) == (0.1, 0.3)


def test_a_time_since_1970_is_a_clock_and_no_duration() -> None:
    reader = LogReader()
    for i in range(12):
        row = f"time: {1_700_000_000.25 + 40 * i}, step: {100 * i}, train loss: {3 - i / 10:.2f}\n"
        reader.feed(row.encode())
    found = reader.summary()
    assert (found.steps_per_s, found.rate_source, found.durations) == (2.5, "stamps", ())
