"""A metric's value of one run, and how two values are compared."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import run

from gpudebug.core.config.values import METRICS
from gpudebug.core.records import SectionFigures, SectionsEvidence, WorkRate
from gpudebug.core.statistics.metrics import Metric

RATE = Metric("steps_per_s")
TIME = Metric("latency_p50", lower=True)
UTILISATION = Metric()
POSITIVE = st.floats(1e-6, 1e6)


def told(*names: str, count: int | None = None) -> SectionsEvidence:
    """Sections of these names, each 12 ms a call."""
    times = {"total_s": 1.2, "self_s": 1.2, "mean_s": 0.012, "min_s": 0.01, "max_s": 0.02, "share": 0.5}
    sections = tuple(SectionFigures(name=name, calls=100, **times) for name in names)
    return SectionsEvidence(count=count or len(names), profiled_s=2.4, sections=sections)


FIGURES = {
    "gpu_util": ({"utilisation": 61.5}, 61.5, "%"),
    "steps_per_s": ({"steps_per_s": 6.1}, 6.1, "steps/s"),
    "samples_per_s": ({"samples_per_s": 97.6}, 97.6, "samples/s"),
    "work_per_s": (
        {
            "work": (
                WorkRate(unit="log:own", per_s=9, source="own"),
                WorkRate(unit="tokens", per_s=7, source="x"),
            )
        },
        7.0,
        "",
    ),
    "step_time_p50": ({"step_time_p50_s": 0.16}, 0.16, "s"),
    "step_time_p95": ({"step_time_p95_s": 0.31}, 0.31, "s"),
    "latency_p50": ({"latency_p50_s": 0.012}, 0.012, "s"),
    "latency_p95": ({"latency_p95_s": 0.018}, 0.018, "s"),
    "latency_p99": ({"latency_p99_s": 0.024}, 0.024, "s"),
    "joules_per_step": ({"joules_per_step": 412.0}, 412.0, "J"),
    "log:fps": ({"logged": {"fps": 24.0}}, 24.0, ""),
    "section:load": ({"sections": told("forward", "load")}, 0.012, "s"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_its_value_of_one_run_and_of_its_record(name: str) -> None:
    facts, value, unit = FIGURES[name]
    evidence = run(None, None).model_copy(update=facts)
    metric = Metric(name)
    assert metric.value(evidence) == value
    assert metric.recorded(evidence.model_dump(mode="json")) == value
    assert metric.unit == unit
    assert metric.value(run(None, None)) is None


def test_every_metric_of_the_configuration_is_known() -> None:
    assert {*METRICS, "log:fps", "section:load"} == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_absent_says_why_and_what_to_do(name: str) -> None:
    assert len(Metric(name).absent()) > 20


LACKING = {
    "none": (None, 'the training recorded no sections; put `with gpudebug.profile_section("load"):`'),
    "a broken report": (SectionsEvidence(count=0, profiled_s=0, notes=("cut off",)), "no sections (cut off)"),
    "others": (told("forward", "step"), "no section 'load' was recorded, but forward, step; put"),
    "many": (told(*"abcdefgh"), "but a, b, c, d, e, f and 2 more; put"),
    "too many": (told("a", count=90), "or it is not among the 1 that took the most time"),
}


@pytest.mark.parametrize(("sections", "says"), LACKING.values(), ids=LACKING)
def test_a_section_that_was_not_recorded_names_what_was(sections: SectionsEvidence, says: str) -> None:
    metric = Metric("section:load", lower=True)
    evidence = run().model_copy(update={"sections": sections})
    assert metric.value(evidence) is None
    assert says in metric.absent(evidence)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, True, "6.1"])
def test_what_has_no_ratio_is_no_value(value: object) -> None:
    facts = {"logged": {"fps": value}, "steps_per_s": value}
    assert (Metric("log:fps").recorded(facts), RATE.recorded(facts)) == (None, None)


def test_a_record_of_an_earlier_version_lacks_it() -> None:
    assert (RATE.recorded({}), Metric("log:fps").recorded({})) == (None, None)


@given(POSITIVE, POSITIVE)
def test_above_one_is_better_whatever_the_direction(before: float, after: float) -> None:
    gain = RATE.improvement(RATE.scale(after) - RATE.scale(before))
    loss = TIME.improvement(TIME.scale(after) - TIME.scale(before))
    assert gain == pytest.approx(after / before)
    assert loss == pytest.approx(before / after)


@given(POSITIVE, st.floats(1, 100))
def test_a_threshold_is_met_exactly_by_its_own_factor(before: float, factor: float) -> None:
    difference = TIME.scale(before / factor) - TIME.scale(before)
    assert difference == pytest.approx(TIME.threshold(factor), abs=1e-9)


@given(st.floats(0, 100), st.floats(0, 100))
def test_utilisation_is_compared_in_points(before: float, after: float) -> None:
    found = UTILISATION.improvement(UTILISATION.scale(after) - UTILISATION.scale(before))
    assert found == after - before
    assert UTILISATION.threshold(20.0) == 20.0


@given(st.lists(POSITIVE, min_size=1, max_size=6))
def test_a_mean_lies_among_the_values_and_within_its_bounds(values: list[float]) -> None:
    for metric in (UTILISATION, RATE):
        mean = metric.mean(values)
        assert mean is not None
        assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    low, high = RATE.bounds(values)
    assert low <= (RATE.mean(values) or 0) <= high


def test_nothing_has_no_mean() -> None:
    assert (UTILISATION.mean([]), RATE.mean([])) == (None, None)


@given(POSITIVE, POSITIVE, st.floats(0.01, 100))
def test_the_ratio_of_means_does_not_depend_on_the_unit(a: float, b: float, unit: float) -> None:
    assert (RATE.mean([a * unit, b * unit]) or 0) == pytest.approx(unit * (RATE.mean([a, b]) or 0))


@pytest.mark.parametrize(
    ("metric", "value", "target", "reached"),
    [
        (RATE, 12.0, 12.0, True),
        (RATE, 11.9, 12.0, False),
        (TIME, 0.010, 0.010, True),
        (TIME, 0.011, 0.010, False),
    ],
)
def test_a_target_is_reached_from_the_right_side(
    metric: Metric, value: float, target: float, reached: bool
) -> None:
    assert metric.reached(value, target) is reached


def test_an_infinite_gain_is_still_a_number() -> None:
    assert math.isfinite(RATE.improvement(1e9))
