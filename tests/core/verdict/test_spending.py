"""What a command says that it will spend, before it does."""

from __future__ import annotations

import pytest

from gpudebug.core.verdict.spending import of_baseline, of_trial, span
from gpudebug.core.verdict.turns import NextRun


@pytest.mark.parametrize(
    ("first", "most", "text"),
    [
        (NextRun.TRIAL, 8, "runs: trial, trial, baseline, …, at most 13; 1 to 5 are likely"),
        (NextRun.BASELINE, 8, "runs: baseline, trial, trial, …, at most 14; 2 to 6 are likely"),
        (NextRun.TRIAL, 3, "runs: trial, trial, baseline, …, at most 5; 1 to 5 are likely"),
        (NextRun.TRIAL, 2, "runs: trial, trial, baseline; 1 to 3 are likely"),
    ],
)
def test_a_trial_names_its_first_runs_and_how_many_there_may_be(first: NextRun, most: int, text: str) -> None:
    assert of_trial(first, [], most) == text


def test_what_runs_took_says_how_long() -> None:
    assert of_trial(NextRun.TRIAL, [70, 74], 8).endswith("1 to 5 are likely, 72 s to 6.0 min of the device")
    assert of_trial(NextRun.TRIAL, [], 8, least=2).endswith("2 to 5 are likely")
    assert of_trial(NextRun.BASELINE, [60], 8).endswith("2 to 6 are likely, 2.0 min to 6.0 min of the device")


def test_a_baseline_says_what_is_left_of_it() -> None:
    assert of_baseline(2, []) == "2 runs of the unchanged workload; how long one takes is not known yet"
    assert of_baseline(2, [60]) == "2 runs of about 60 s: 2.0 min of the device"
    assert of_baseline(4, [60, 64], made=3) == "1 more run of about 62 s: 62 s of the device"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (89.4, "89 s"), (222, "3.7 min"), (7560, "2.1 h")])
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text
