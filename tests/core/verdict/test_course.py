"""What a verdict shows: figures that add up, and the runs in their order."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.trials import BASE, GOOD, in_turns, measured, run, runs

from gpudebug.core.verdict.course import course_of, sides_of
from gpudebug.core.verdict.gates import Order, TrialSetting
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
