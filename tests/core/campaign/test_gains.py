"""The gain of what was accepted, and the gap that is left, in each metric's own terms."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.campaign.gains import AcceptedStep, gain
from gpudebug.core.statistics.metrics import Metric

UTIL = Metric()
RATE = Metric("steps_per_s")
LATENCY = Metric("latency_p50", lower=True)


def verdict(
    before: float | None, after: float | None, metric: str = "gpu_util", **more: Any
) -> dict[str, Any]:
    return {
        "metric": metric,
        "metric_before": before,
        "metric_after": after,
        "delta": {"value": 40.0, "low": 38.0, "high": 42.0},
        **more,
    }


def told(
    metric: Metric, *steps: AcceptedStep, together: Any = None, **figures: float | None
) -> dict[str, Any]:
    figures = {"now": None, "reference": None, "target": None, **figures}
    found = gain(metric, steps, **figures, together=together)
    assert found is not None
    return found


def test_two_accepted_changes_and_what_is_missing() -> None:
    steps = [
        AcceptedStep(2, "Waits", "--set --a=1", verdict(20.0, 60.0)),
        AcceptedStep(5, "Syncs", "--set --b=1", verdict(60.0, 75.0)),
    ]
    measured = {"delta": {"value": 54.0, "low": 51.0, "high": 57.0}, "why": None}
    found = told(UTIL, *steps, now=74.0, reference=90.0, target=80.0, together=measured)
    assert (found["start"], found["now"], found["gained"]) == (20.0, 74.0, 54.0)
    assert [(s["hypothesis"], s["before"], s["after"]) for s in found["accepted"]] == [
        (2, 20.0, 60.0),
        (5, 60.0, 75.0),
    ]
    assert found["accepted"][0]["change_text"] == "+40.0pp (95% CI +38.0 to +42.0)"
    assert (found["gap"], found["gap_to"], found["gap_text"]) == (
        16.0,
        "reference",
        "16.0pp below the reference",
    )
    assert (found["gained_text"], found["now_text"]) == (
        "+54.0pp (95% CI +51.0 to +57.0)",
        "74.0%",
    )


def test_nothing_accepted_yet_is_a_gap_without_a_gain() -> None:
    found = told(UTIL, now=20.0, target=80.0)
    assert (found["start"], found["now"], found["gained_text"]) == (20.0, 20.0, None)
    assert (found["gap"], found["gap_to"]) == (60.0, "target")


def test_the_gap_is_closed_where_the_figure_is_as_good() -> None:
    found = told(UTIL, now=91.0, reference=90.0)
    assert found["gap"] == -1.0
    assert found["gap_text"] == "the reference is reached"


@pytest.mark.parametrize(
    ("metric", "now", "goal", "gap", "text"),
    [
        (RATE, 10.0, 25.0, 2.5, "2.50x to the reference"),
        (RATE, 25.0, 10.0, 0.4, "the reference is reached"),
        (LATENCY, 0.5, 0.25, 2.0, "2.00x to the reference"),
        (LATENCY, 0.25, 0.5, 0.5, "the reference is reached"),
    ],
)
def test_other_metrics_are_ratios(metric: Metric, now: float, goal: float, gap: float, text: str) -> None:
    found = told(metric, now=now, reference=goal)
    assert found["gap"] == pytest.approx(gap)
    assert (found["gap_text"], found["lower"]) == (text, metric.lower)


def test_a_ratio_of_latencies_above_one_is_a_gain() -> None:
    step = AcceptedStep(1, "Denoises", "--set --n=2", verdict(0.4, 0.2, "latency_p50"))
    found = told(LATENCY, step, now=0.2, together={"delta": {"value": 2.0}})
    assert found["gained"] == 2.0
    assert found["gained_text"] == "2.00x"
    assert (found["start_text"], found["gap_text"], found["gap_to"]) == ("400 ms", "unknown", None)


def test_what_is_not_known_stays_unknown() -> None:
    assert gain(UTIL, [], now=None, reference=90.0, target=80.0) is None
    unborne = AcceptedStep(3, "By hand", "--set --c=1", None)
    found = told(UTIL, unborne, now=60.0, target=80.0)
    assert (found["start"], found["gained"], found["gained_text"]) == (None, None, "unknown")
    assert found["accepted"][0]["before"] is None
    assert found["accepted"][0]["change_text"] == "unknown"
    unmeasured = told(UTIL, AcceptedStep(1, "Waits", "", verdict(20.0, 60.0)), target=80.0)
    assert (unmeasured["now"], unmeasured["gap"], unmeasured["gained"]) == (None, None, None)
    assert unmeasured["gap_text"] == "unknown"


def test_what_was_not_measured_together_is_no_gain_and_says_why() -> None:
    step = AcceptedStep(1, "Waits", "", verdict(20.0, 60.0))
    found = told(UTIL, step, now=60.0, together={"delta": None, "why": "other surroundings"})
    assert (found["gained"], found["gained_text"]) == (None, "unknown")
    assert found["gained_why"] == "other surroundings"


def test_a_trial_that_was_judged_by_another_metric_gives_no_figure() -> None:
    step = AcceptedStep(1, "Waits", "", verdict(10.0, 30.0, "steps_per_s"))
    found = told(UTIL, step, now=60.0)
    assert (found["start"], found["accepted"][0]["before"]) == (None, None)
    assert found["accepted"][0]["change_text"] == "40.00x (95% CI 38.00x to 42.00x)"


def test_an_older_verdict_keeps_its_figures_under_another_name() -> None:
    old = {"before": 20.0, "after": 60.0, "delta": {"value": 40.0}}
    found = told(UTIL, AcceptedStep(1, "Waits", "", old), now=60.0)
    assert (found["start"], found["accepted"][0]["after"]) == (20.0, 60.0)


def test_both_ends_are_those_that_the_gain_was_measured_between() -> None:
    steps = [AcceptedStep(1, "Waits", "--set --a=1", verdict(20.0, 60.0))]
    delta = {"value": 30.0, "low": 25.0, "high": 35.0}
    measured = {"delta": delta, "before": 25.0, "after": 55.0, "notes": ["the load differed"]}
    found = told(UTIL, *steps, now=56.0, together=measured)
    assert (found["start"], found["gained"], found["now"]) == (25.0, 30.0, 55.0)
    assert found["gained_notes"] == ["the load differed"]
    unknown = told(UTIL, *steps, now=56.0, together={**measured, "delta": None})
    assert (unknown["start"], unknown["gained"], unknown["now"]) == (20.0, None, 56.0)
