"""What a verdict shows: figures that add up, and the runs in their order."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.powered import busy
from tests.support.trials import BASE, GOOD, in_turns, measured, run, runs

from gpudebug.core.records import Conditions, Estimate, Evidence
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.course import (
    compared,
    contradict,
    course_of,
    otherwise,
    sides_of,
    unchanged,
    worse,
)
from gpudebug.core.verdict.gates.setting import Order, TrialSetting
from gpudebug.core.verdict.judge import judge_case

RATIO = {"success": 1.2, "failure": 1.05}
TURNS = "AATTA"
LEVELS = st.lists(st.floats(5, 95), min_size=5, max_size=5)


@given(LEVELS)
def test_before_and_effect_make_after_in_points(levels: list[float]) -> None:
    found = judge_case(in_turns(TURNS, *levels))
    assert found.before is not None and found.after is not None and found.delta is not None
    assert found.before + found.delta.value == pytest.approx(found.after)
    assert found.after == pytest.approx((levels[2] + levels[3]) / 2)


@given(LEVELS)
@pytest.mark.parametrize(("metric", "direction"), [("steps_per_s", "higher"), ("step_time_p50", "lower")])
def test_before_and_effect_make_after_in_ratios(metric: str, direction: str, levels: list[float]) -> None:
    made = [run(40.0, level, step_time_p50_s=1 / level) for level in levels]
    setting = TrialSetting(order=Order((0, 1, 4), (2, 3), 5))
    case = measured(
        [made[i] for i in (0, 1, 4)], made[2:4], setting, metric=metric, direction=direction, **RATIO
    )
    found = judge_case(case)
    assert found.metric_before is not None and found.metric_after is not None and found.delta is not None
    gain = found.metric_after / found.metric_before
    assert found.delta.value == pytest.approx(gain if direction == "higher" else 1 / gain)


@given(LEVELS)
def test_throughput_is_one_figure(levels: list[float]) -> None:
    found = judge_case(in_turns(TURNS, *levels))
    assert found.throughput_before is not None and found.throughput_after is not None
    assert found.throughput_ratio is not None
    assert found.throughput_before * found.throughput_ratio.value == pytest.approx(found.throughput_after)


def test_before_is_the_level_during_the_trial_and_no_mean_of_long_ago() -> None:
    found = judge_case(in_turns("AAAATTA", 20, 23, 26, 29, 72, 75, 38))
    assert found.before is not None
    assert 28 < found.before < 38  # The mean of the baseline is 27.2.


def test_a_run_without_its_figure_leaves_means() -> None:
    after = [GOOD[0], run(None, 11.0)]
    case = measured(BASE, after)
    assert case.effect is None
    shown = sides_of(case)
    assert shown.utilisation == (pytest.approx(28), pytest.approx(61))
    assert course_of(case) == ()


def test_the_course_has_a_point_a_run_in_order() -> None:
    setting = TrialSetting(order=Order((0, 1, 7), (3, 4), 8))
    before = [run(level, run=f"000{i}-a") for i, level in enumerate((28, 29, 30), 1)]
    after = [run(level, 11.0, run=f"000{i}-h1") for i, level in enumerate((61, 62), 4)]
    found = judge_case(measured(before, after, setting)).course
    assert [(p.place, p.part, p.run, p.value) for p in found] == [
        (0, "baseline", "0001-a", 28),
        (1, "baseline", "0002-a", 29),
        (3, "trial", "0004-h1", 61),
        (4, "trial", "0005-h1", 62),
        (7, "baseline", "0003-a", 30),
    ]


@given(LEVELS)
def test_the_band_holds_the_level_and_widens_while_the_change_runs(levels: list[float]) -> None:
    found = course_of(in_turns(TURNS, *levels))
    assert all(p.low <= p.level <= p.high for p in found)
    widths = [p.high - p.low for p in found]
    assert widths[0] > widths[1] < widths[2] < widths[3] > widths[4]


@given(LEVELS)
def test_a_ratio_has_a_course_in_the_unit_of_its_metric(levels: list[float]) -> None:
    found = course_of(in_turns(TURNS, *levels, metric="steps_per_s", **RATIO))
    assume(found)
    assert [p.value for p in found] == pytest.approx([level / 5 for level in levels])
    assert all(0 < p.low <= p.level <= p.high for p in found)


def test_the_level_of_quiet_runs_is_what_they_show() -> None:
    levels = [p.level for p in course_of(in_turns(TURNS, 28, 28, 60, 60, 28))]
    assert levels == pytest.approx([28] * 5, abs=0.1)
    rates = course_of(measured(runs(30, 30, 30), runs(40, 40, rate=9.0), metric="steps_per_s", **RATIO))
    assert [p.level for p in rates] == pytest.approx([5] * 5, rel=0.01)


RATE, UTIL = Metric("steps_per_s"), Metric()
TURNS_of_apart = TrialSetting(order=Order((0, 3, 4, 7), (1, 2, 5, 6), 8))


def test_two_sides_in_turn() -> None:
    found = compared(UTIL, runs(19, 21, 20, 20, rate=5.0), runs(59, 61, 60, 60, rate=15.0), TURNS_of_apart)
    assert found.delta is not None and found.ratio is not None
    assert found.delta.value == pytest.approx(40.0, abs=0.2)
    assert found.delta.low is not None and found.delta.high is not None
    assert 30.0 < found.delta.low < 40.0 < found.delta.high < 50.0
    assert found.ratio.value == pytest.approx(3.0)
    shown = sides_of(found)
    assert shown.utilisation == pytest.approx((60 - found.delta.value, 60.0))
    assert (shown.throughput, found.rates.unit) == (pytest.approx((5.0, 15.0)), "step")


def test_another_metric_is_a_ratio_that_is_above_one_if_it_is_better() -> None:
    before, after = runs(20, 20, rate=5.0, latency_p50_s=0.2), runs(60, 60, rate=5.0, latency_p50_s=0.1)
    found = compared(Metric("latency_p50", lower=True), before, after, TrialSetting())
    assert found.delta is not None and found.delta.value == pytest.approx(2.0)
    assert sides_of(found).metric == (pytest.approx(0.2), pytest.approx(0.1))


def test_what_a_run_lacks_is_unknown() -> None:
    found = compared(UTIL, runs(20, 20), [run(60.0, 15.0), run(None, None)], TrialSetting())
    assert (found.delta, found.ratio) == (None, None)


def test_it_is_of_the_devices_that_trials_are_judged_by() -> None:
    """The fix of a straggler: the GPU that others waited for gains 60 points, the mean of both 28."""
    before = [run(64, 5.0, devices=(busy(30, 264.0), busy(98, 264.0, 1))) for _ in range(3)]
    after = [run(92, 15.0, devices=(busy(90, 492.0), busy(94, 492.0, 1))) for _ in range(3)]
    for devices, gain in ((None, 28), ("least", 60), ("working", 60)):
        found = compared(UTIL, before, after, TrialSetting(), devices)
        assert found.delta is not None and found.delta.value == pytest.approx(gain)


def ratio(value: float, spread: float) -> Estimate:
    return Estimate(value=value, low=value / spread, high=value * spread)


def points(value: float, half: float) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (ratio(2.11, 1.1), ratio(5.93, 1.2), True),
        (ratio(2.11, 1.3), ratio(2.73, 1.3), False),
        # Intervals that touch contradict all the same: both truths at their ends are unlikely at once.
        (ratio(2.0, 1.2), ratio(2.7, 1.2), True),
        (ratio(2.0, 1.2), Estimate(value=9.0), False),
        (ratio(2.0, 1.2), Estimate(value=9.0, low=0.0, high=20.0), False),
    ],
)
def test_ratios_contradict_beyond_what_both_intervals_leave_open(
    one: Estimate, other: Estimate, expected: bool
) -> None:
    assert contradict(RATE, one, other) is contradict(RATE, other, one) is expected


def test_points_are_compared_as_they_are() -> None:
    assert contradict(UTIL, points(50.0, 3.0), points(40.0, 3.0))
    assert not contradict(UTIL, points(50.0, 8.0), points(40.0, 8.0))


def test_only_a_smaller_gain_is_worse() -> None:
    assert worse(RATE, ratio(1.5, 1.1), ratio(2.5, 1.1))
    assert not worse(RATE, ratio(2.5, 1.1), ratio(1.5, 1.1))
    assert not worse(RATE, ratio(2.3, 1.1), ratio(2.5, 1.1))


def test_an_interval_that_holds_no_difference_is_unchanged() -> None:
    assert unchanged(RATE, ratio(1.1, 1.2)) and not unchanged(RATE, ratio(0.5, 1.2))
    assert unchanged(UTIL, points(1.0, 2.0)) and not unchanged(UTIL, points(-9.0, 2.0))
    assert unchanged(RATE, Estimate(value=3.0))


def met(**conditions: float | int) -> Evidence:
    return run().model_copy(update={"conditions": Conditions(**conditions)})


def test_the_clock_the_quota_and_others_share_are_named() -> None:
    quiet = met(cpu_stolen=1.0, cpu_cores=1.0, sm_clock_mhz=1410.0)
    assert otherwise([quiet], [quiet, quiet]) == []
    (kept,) = otherwise([quiet], [met(cpu_stolen=80.0, cpu_cores=1.0, sm_clock_mhz=1410.0)])
    assert kept == "others kept the runs from 1.0% of their CPU time then, 44.4% now"
    (clock,) = otherwise([met(sm_clock_mhz=1410.0)], [met(sm_clock_mhz=900.0)])
    assert "1410" in clock and "900" in clock
    (quota,) = otherwise([met(cpu_throttled=0.0)], [met(cpu_throttled=60.0)])
    assert quota == "a CPU quota held back 0.0% of a core then, 60.0% now"
    # What only one side recorded is no difference.
    assert otherwise([quiet], [met(sm_clock_mhz=1410.0)]) == []
