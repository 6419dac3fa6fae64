"""The level and what a change adds to it, against the same model solved at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import run, runs, verdict

from gpudebug.core.answers.show import VerdictCourse
from gpudebug.core.records import Evidence, Terms, Verdict
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.intervals import t_quantile
from gpudebug.core.statistics.level import (
    MOST,
    POINTS,
    RATIOS,
    WANDER,
    Effect,
    Noise,
    Seen,
    course,
    drawing,
    follow,
    places,
    relative_variance,
    sentence,
)


def seen(
    order: str, values: Sequence[float], at: Sequence[int] | None = None, **more: Sequence[float]
) -> list[Seen]:
    shares = more.get("others", [None] * len(order))
    variances = more.get("variance", [1.0] * len(order))
    rows = zip(at or range(len(order)), order, values, shares, variances, strict=True)
    return [Seen(place, letter == "T", value, other, v) for place, letter, value, other, v in rows]


def solved(runs: Sequence[Seen]) -> tuple[np.ndarray, np.ndarray, float]:
    """Generalised least squares: level, effect and share's cost with their covariance, and the sum of squares
    of what is left, in units of noise."""
    place = np.array([r.place for r in runs], float)
    wandered = WANDER * (np.minimum.outer(place, place) - place[0])
    covariance = wandered + np.diag([r.variance for r in runs])
    shared = all(r.others is not None for r in runs)
    design = np.array([[1.0, r.changed, (r.others or 0.0) if shared else 0.0] for r in runs])
    weight = np.linalg.inv(covariance)
    # A prior on the share alone: level and effect are unknown.
    prior = np.diag([0.0, 0.0, POINTS.sd**2])
    spread = np.linalg.inv(design.T @ weight @ design + prior)
    values = np.array([r.value for r in runs])
    found = spread @ design.T @ weight @ values
    left = values - design @ found
    return found, spread, float(left @ weight @ left + found @ prior @ found)


ORDERS = st.sampled_from(["AAT", "AATTA", "AATTATA", "AAAATTATATTATA", "TATA", "ATTT"])


@st.composite
def campaigns(draw: st.DrawFn) -> list[Seen]:
    order = draw(ORDERS)
    count = len(order)
    values = draw(st.lists(st.floats(0, 100), min_size=count, max_size=count))
    steps = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    variance = draw(st.lists(st.floats(1, 6), min_size=count, max_size=count))
    others = draw(st.none() | st.lists(st.floats(0, 60), min_size=count, max_size=count))
    at = list(np.cumsum(steps))
    return seen(order, values, at, variance=variance, **({"others": others} if others else {}))


@given(campaigns())
def test_it_is_the_least_squares_solution_of_all_runs_at_once(runs: list[Seen]) -> None:
    found = follow(runs, POINTS)
    expected, spread, squares = solved(runs)
    assert found.value == pytest.approx(expected[1], abs=1e-3)
    assert found.spread == pytest.approx(math.sqrt(spread[1][1]), rel=1e-4)
    # The first run, and the first of the other kind, are no surprise.
    assert found.freedom == POINTS.runs + len(runs) - 2
    assert found.noise**2 * found.freedom == pytest.approx(
        POINTS.runs * POINTS.sd**2 + squares, rel=1e-3, abs=1e-2
    )


def test_two_and_two_runs_by_hand() -> None:
    """Both sides' means have half a run's variance, and the level wanders between them."""
    found = follow(seen("AATT", [20.0, 20.0, 50.0, 50.0]), POINTS)
    assert found.value == pytest.approx(30.0)
    assert 1.0 < found.spread < math.sqrt(1 / 2 + 1 / 2 + 3 * WANDER)
    assert found.noise == pytest.approx(POINTS.sd * math.sqrt(6 / 8))
    low, high = found.bounds(0.95)
    assert high - found.value == pytest.approx(t_quantile(0.975, 8) * found.error)
    assert low + high == pytest.approx(2 * found.value)
    assert (found.trials, found.closed) == (2, False)


@given(campaigns(), st.floats(-50, 50))
def test_what_all_runs_have_more_changes_nothing(runs: list[Seen], more: float) -> None:
    one, other = follow(runs, POINTS), follow([r._replace(value=r.value + more) for r in runs], POINTS)
    assert (one.value, one.error) == pytest.approx((other.value, other.error), abs=1e-3)


@given(st.sampled_from("AT"), st.integers(1, 5))
def test_each_further_run_narrows_it_and_a_pause_does_not(kind: str, pause: int) -> None:
    def spread(order: str, at: Sequence[int]) -> float:
        return follow(seen(order, [0.0] * len(order), at), POINTS).spread

    assert spread("AAT" + kind, [0, 1, 2, 3]) < spread("AAT", [0, 1, 2])
    assert spread("AAT", [0, 1, 2 + pause]) > spread("AAT", [0, 1, 2])


def test_turns_bear_a_drift_that_two_blocks_take_for_an_effect() -> None:
    def value(order: str) -> float:
        return follow(seen(order, [2.0 * i for i in range(len(order))]), POINTS).value

    assert value("AAATTT") > 2 * abs(value("ATATAT"))


def test_without_a_change_there_is_no_effect() -> None:
    found = follow(seen("AAA", [20.0, 21.0, 19.0]), POINTS)
    assert (found.value, found.spread, found.trials, found.closed) == (0.0, math.inf, 0, True)
    assert [stand.place for stand in found.stands] == [0, 1, 2]
    assert found.stands[-1].value == pytest.approx(20.0, abs=0.5)
    assert found.stands[2].spread < found.stands[1].spread < found.stands[0].spread


def test_a_share_that_explains_the_values_is_believed() -> None:
    """Runs of both kinds that lost a point a percent."""
    others = [0.0, 20.0, 0.0, 20.0, 0.0, 20.0]
    values = [60.0 - share for share in others]
    order = "AATTAT"
    with_share = follow(seen(order, values, others=others), POINTS)
    without = follow(seen(order, values), POINTS)
    assert abs(with_share.value) < 1.0
    assert with_share.error < without.error
    lacking = [*others[:-1], None]
    half = follow([r._replace(others=o) for r, o in zip(seen(order, values), lacking, strict=True)], POINTS)
    assert half.value == without.value


def test_a_rate_goes_by_what_others_leave() -> None:
    """A doubled rate; a process that is left 50, 25 or 10 % of its time gets as much done in it."""
    others = [50.0, 75.0, 90.0, 75.0, 50.0]
    left = [1 - share / 100 for share in others]
    values = [
        math.log(part * (2 if letter == "T" else 1)) for part, letter in zip(left, "AATTA", strict=True)
    ]
    found = follow(seen("AATTA", values, others=others), RATIOS)
    assert math.exp(found.value) == pytest.approx(2.0, rel=0.1)
    assert found.noise < RATIOS.sd
    assert math.isfinite(follow(seen("AATTA", values, others=[100.0] * 5), RATIOS).value)


def test_the_level_beside_others_is_known_though_not_the_one_without_them() -> None:
    alike = seen("AATTA", [10, 11, 40, 41, 10], others=[70.0] * 5)
    alone = seen("AATTA", [10, 11, 40, 41, 10])
    shared, plain = follow(alike, POINTS), follow(alone, POINTS)
    assert [s.spread for s in shared.stands[1:]] == pytest.approx(
        [s.spread for s in plain.stands[1:]], rel=1e-3
    )
    assert shared.earlier_spread == pytest.approx(plain.earlier_spread, rel=1e-3)


def test_a_share_that_only_the_change_met_leaves_it_open() -> None:
    order, others = "AATTA", [0.0, 0.0, 30.0, 30.0, 0.0]
    found = follow(seen(order, [50.0, 50.0, 20.0, 20.0, 50.0], others=others), POINTS)
    unknown = follow(seen(order, [50.0, 50.0, 20.0, 20.0, 50.0]), POINTS)
    assert found.spread > 2 * unknown.spread
    assert found.bounds()[1] > 0 > unknown.bounds()[1]


def test_a_surprise_widens_and_agreement_narrows_what_is_assumed() -> None:
    quiet, loud = (follow(seen("AATTA", v), POINTS) for v in ([20, 20, 50, 50, 20], [20, 40, 50, 70, 20]))
    assert quiet.noise < POINTS.sd < loud.noise
    assert follow(seen("AATTA", [20, 20, 50, 50, 20]), Noise(4.5, 60)).noise > quiet.noise


def test_short_runs_vary_more() -> None:
    assert relative_variance(None) == relative_variance(30.0) == relative_variance(300.0) == 1.0
    assert relative_variance(0.0) == 1.0
    assert relative_variance(10.0) > relative_variance(20.0) > 1.0
    # 3.2 pp within a run of 30 s, of the 4.5 that are assumed.
    assert relative_variance(15.0) == pytest.approx(1 + (3.2 / 4.5) ** 2)
    assert relative_variance(30.0, 2.0) == 5.0
    weighed = follow(seen("AAT", [20.0, 26.0, 50.0], variance=[1.0, 9.0, 1.0]), POINTS)
    alike = follow(seen("AAT", [20.0, 26.0, 50.0]), POINTS)
    assert weighed.value > alike.value


def left_behind(after: float) -> Effect:
    """A trial that gains nothing over the level before it; the baseline behind it shows `after`."""
    return follow(seen("AAATTAT", [50.0, 50.0, 50.0, 51.0, 51.0, after, 51.0]), POINTS)


def test_a_trial_that_spoils_its_own_baseline_gains_nothing_over_the_level_before() -> None:
    spoilt, plain = left_behind(10.0), left_behind(50.0)
    assert spoilt.value > 10 > plain.value
    assert spoilt.earlier == pytest.approx(1.0, abs=0.1)
    assert spoilt.earlier_below(20.0, 0.95)
    gain = follow(seen("AAATTA", [20.0, 20.0, 20.0, 60.0, 60.0, 20.0]), POINTS)
    assert not gain.earlier_below(20.0, 0.95)


def test_how_far_it_may_move_shrinks_to_nothing() -> None:
    found = follow(seen("AATTA", [20.0, 21.0, 50.0, 51.0, 20.0]), POINTS)
    assert found.left_open(8) > found.left_open(3) > 0 == found.left_open(2)


PLACES = {
    "one after the other": ([0, 60, 120], [60, 60, 60], (0, 1, 2)),
    "a pause of two runs and a half": ([0, 60, 270], [60, 60, 60], (0, 1, 4)),
    "a clock that went back": ([100, 60, 120], [60, 60, 60], (0, 1, 2)),
    "the one to come": ([0, 60, 300], [60, 60], (0, 1, 5)),
    "unknown lengths": ([0, 60, 900], [0, 0, 0], (0, 1, 2)),
    "none": ([], [], ()),
}


@pytest.mark.parametrize(("starts", "durations", "expected"), PLACES.values(), ids=PLACES)
def test_places(starts: list[float], durations: list[float], expected: tuple[int, ...]) -> None:
    assert places(starts, durations) == expected


def test_a_pause_may_be_bounded() -> None:
    assert places([0.0, 1e9], [60.0, 60.0], 10) == (0, 11)
    assert places([0.0, 1e9], [60.0, 60.0]) == (0, 10_001)


PP = {"success": 20.0, "failure": 10.0}
TIMES = {"success": 1.2, "failure": 1.1}


def judged(before: Sequence[Evidence], after: Sequence[Evidence], **criteria: Any) -> Verdict:
    """A verdict with its terms; each run is numbered within its side, the trial's from 101 on."""
    named = [
        [one.model_copy(update={"run": f"{first + i:04}-x"}) for i, one in enumerate(side)]
        for first, side in ((1, before), (101, after))
    ]
    metric, direction = criteria.get("metric", "gpu_util"), criteria.get("direction", "higher")
    bars = {name: criteria[name] for name in PP}
    terms = Terms(metric=metric, direction=direction, criteria=bars, protocol={})
    return verdict(*named, **criteria).model_copy(update={"terms": terms})


def picture(before: Sequence[Evidence], after: Sequence[Evidence], **criteria: Any) -> VerdictCourse:
    found = course(judged(before, after, **criteria).model_dump(mode="json"))
    assert found is not None
    return found


def column(line: str, mark: str) -> int:
    """Where a mark is; it occurs once in the drawn part of a line."""
    assert line[17:].count(mark) == 1, line
    return line.rindex(mark)


SLOW = [run(30, 5, step_time_p50_s=s) for s in (0.2, 0.21, 0.19)]
FAST = [run(60, 15, step_time_p50_s=s) for s in (0.07, 0.06)]
LESS: dict[str, Any] = {"metric": "step_time_p50", "direction": "lower", **TIMES}


def test_a_gain_is_drawn_right_of_both_thresholds() -> None:
    found = picture(runs(28, 27, 29, 28), runs(61, 62, rate=11.0), **PP)
    assert drawing(found, 80) == [
        "                 20.2%                                                     71.2%",
        "0001 A    28.0%  ----------A---------  :           :",
        "0002 A    27.0%    ------A|-------    :           :",
        "0003 A    29.0%      ------|A-----     :           :",
        "0101 T    61.0%     -------|-------    :           :               T",
        "0102 T    62.0%    --------|--------   :           :                T",
        "0004 A    28.0%     -------A------     :           :",
        "effect  +33.4pp            |           :           :   ============T============",
        "A unchanged, T changed; | level, - 95% band; : failure 10pp and success 20pp",
    ]
    assert sentence(found) == (
        "Level 28.1% during the trial, 61.5% with the change (95% CI 51.8 to 71.2); "
        "failure is at 38.1%, success at 48.1%."
    )


def test_the_effect_stands_at_the_level_as_the_entry_has_both() -> None:
    found = judged(runs(28, 27, 29, 28), runs(61, 62, rate=11.0), **PP)
    shown = course(found.model_dump(mode="json"))
    assert shown is not None and shown.effect is not None and found.delta is not None
    assert shown.effect.before == found.metric_before
    assert shown.effect.after == pytest.approx(found.metric_after)
    assert shown.effect.text == numbers.improvement(found.model_dump(mode="json")).split(" ")[0]
    assert (shown.effect.low, shown.effect.high) == pytest.approx(
        [shown.effect.before + end for end in (found.delta.low, found.delta.high)]
    )


def test_the_thresholds_follow_the_level() -> None:
    found = picture(runs(20, 40, 30), runs(31), **PP)
    assert len({p.level for p in found.points}) > 2
    for p in found.points:
        assert (p.failure, p.success) == pytest.approx((p.level + 10, p.level + 20))


def test_better_is_to_the_right_also_if_less_is_better() -> None:
    found = picture(SLOW, FAST, **LESS)
    lines = drawing(found, 80)
    assert lines[0].split() == ["246", "ms", "49.8", "ms"]
    effect = lines[-2]
    assert column(effect, "|") < effect.index(":") < effect.rindex(":") < column(effect, "T")
    assert [p.success for p in found.points] == pytest.approx([p.level / 1.2 for p in found.points])
    assert lines[-1].endswith(": failure 1.1x and success 1.2x")
    assert "64.8 ms with the change (95% CI 49.8 to 84.3)" in sentence(found)


@pytest.mark.parametrize("columns", [32, 40, 80])
def test_it_fits_and_needs_ascii_alone(columns: int) -> None:
    gains = runs(28, 27, 29, 28), runs(61, 62, rate=11.0)
    for found in (picture(*gains, **PP), picture(SLOW, FAST, **LESS)):
        *rows, _ = drawing(found, columns)
        assert max(map(len, rows[1:])) <= columns
        assert all(row.isascii() for row in rows)
        assert len(drawing(found, columns)[-1]) <= 80


def test_a_rate_has_its_unit() -> None:
    found = picture(runs(28, 27, 29), runs(61, 62, rate=15.0), metric="steps_per_s", **TIMES)
    assert "Level 5 steps/s during the trial, 15 steps/s with the change" in sentence(found)


def test_of_many_runs_the_newest_are_drawn() -> None:
    found = picture(runs(*[28.0, 27.0] * 15), runs(61, 62, rate=11.0), **PP)
    names = [line.split()[0] for line in drawing(found, 80)[1:-2]]
    assert names == [p.run[:4] for p in found.points][-MOST:]


def test_runs_that_are_all_alike_are_drawn() -> None:
    found = picture(runs(28), runs(28), **PP)
    same = dict.fromkeys(("value", "level", "low", "high", "failure", "success"), 28.0)
    points = [replace(p, **same) for p in found.points]
    assert drawing(replace(found, points=points, effect=None), 80)[1:-1] == [
        "0101 T  28.0%  T",
        "0001 A  28.0%  A",
    ]


@pytest.mark.parametrize("lacking", ["course", "terms"])
def test_a_verdict_of_an_older_rule_has_none(lacking: str) -> None:
    old = judged(runs(28, 27), runs(61), **PP).model_dump(mode="json")
    assert course(old) is not None
    del old[lacking]
    assert course(old) is None and course(None) is None


@pytest.mark.parametrize(
    "criteria",
    [None, [], {"failure": 2.0}, {"failure": 2.0, "success": "5"}, {"failure": True, "success": 5}],
)
def test_one_whose_terms_name_no_bars_has_none(criteria: object) -> None:
    verdict = judged(runs(28, 27), runs(61), **PP).model_dump(mode="json")
    assert course({**verdict, "terms": {**verdict["terms"], "criteria": criteria}}) is None
    assert course({name: value for name, value in verdict.items() if name != "metric"}) is None


@pytest.mark.parametrize("lacking", ["value", "low", "high"])
def test_without_an_end_of_the_difference_no_effect_is_drawn(lacking: str) -> None:
    verdict = judged(runs(28, 27), runs(61), **PP).model_dump(mode="json")
    del verdict["delta"][lacking]
    found = course(verdict)
    assert found is not None and found.effect is None


def test_without_the_metric_there_is_none() -> None:
    assert course(judged(runs(28, 27), [run(None, None)], **PP).model_dump(mode="json")) is None
