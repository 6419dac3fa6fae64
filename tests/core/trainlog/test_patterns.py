"""The user's own patterns."""

from __future__ import annotations

import pytest

from gpudebug.core.errors import ConfigError
from gpudebug.core.trainlog.reader import LogReader


@pytest.mark.parametrize(
    ("pattern", "says"), [("(", "not a regular expression"), (r"loss:([\d.]+)", "`value`")]
)
def test_a_broken_pattern_is_one_clear_line(pattern: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        LogReader({"loss": pattern})
    assert says in raised.value.message and "log.loss" in raised.value.message
    assert raised.value.next


def test_named_patterns_beat_the_built_in_reading() -> None:
    reader = LogReader({"loss": r"l1_loss:(?P<value>[\d.e+-]+)", "step": r"tick (?P<value>\d+)"})
    for tick in range(1, 6):
        reader.feed(f"tick {tick} step {100 - tick} loss: 9 l1_loss:{5 - tick}.5e-1 \n".encode(), float(tick))
    summary = reader.summary()
    assert (summary.first, summary.last, summary.points, summary.steps) == (0.45, 0.05, 5, 5)
    assert [(p.step, p.time) for p in summary.loss] == [(n, float(n)) for n in range(1, 6)]
    assert reader.step == 5 and reader.loss == 0.05


def test_a_pattern_that_never_matches_gives_nothing() -> None:
    reader = LogReader({"loss": r"never:(?P<value>\d+)"})
    reader.feed(b"step 1 loss 2.0\nstep 2 loss 1.0\n")
    summary = reader.summary()
    assert (summary.points, summary.first, str(summary.trend), summary.steps) == (0, None, "UNKNOWN", 2)


def test_other_names_are_series_of_their_own() -> None:
    reader = LogReader({"latency": r"latency=(?P<value>[\d.]+)ms"})
    reader.feed(b"step 1 latency=1.5ms\nstep 2 latency=2.5ms\nstep 3 latency=ms\n", 3.0)
    extra = reader.summary().extra["latency"]
    assert [(p.step, p.value, p.time) for p in extra] == [(1, 1.5, 3.0), (2, 2.5, 3.0)]
