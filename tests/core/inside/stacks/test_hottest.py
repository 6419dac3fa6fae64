"""The lines of a program in which its thread was longest."""

from __future__ import annotations

import pytest
from tests.support.stack_lines import FRAMES, evidence, told

from gpudebug.core.inside.stacks.hottest import Hot, hottest
from gpudebug.core.records import Stacks


def stacks(*entries: list[object], code: dict[str, str]) -> Stacks:
    found = evidence(told(s=2.0, stacks=[list(entry) for entry in entries], code=code)).training
    assert found is not None
    return found


def test_lines_come_by_the_time_that_they_took_with_all_that_they_call() -> None:
    found = stacks(
        ["data", [0, 1, 2], 7, 0.5, 0.4, 1],
        ["forward", [0, 1], 7, 0.25, 0.0, 1],
        ["other", [0], 30, 0.9, 0.1, 1],
        ["other", [2], 0, 0.2, 0.2, 1],
        code={"1:7": "image.resize(size)", "0:30": ""},
    )
    first, second, third = hottest(found)
    assert first == Hot("train.py:30", "<module>", pytest.approx(0.45), pytest.approx(0.05), "other", "")
    assert second[:3] == ("train.py:7", "main", pytest.approx(0.375))
    assert (second.phase, second.code, second.state) == ("data", "image.resize(size)", "runs")
    assert (third.site, third.function, third.state) == ("Image.py", "Image.resize", "runs")
    assert (first.state, FRAMES[2]) == ("waits", "PIL/Image.py:Image.resize")


def test_nothing_that_was_watched_has_no_lines() -> None:
    assert hottest(Stacks(seconds=0.0, cpu_s=0.0, samples=0)) == []
