"""The picture of a verdict: its figures, and how it is drawn in characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support.trials import run, runs, verdict

from gpudebug.core.answers.show import VerdictCourse
from gpudebug.core.records import Evidence, Terms, Verdict
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.course import MOST, course, drawing, sentence

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


def test_without_the_metric_there_is_none() -> None:
    assert course(judged(runs(28, 27), [run(None, None)], **PP).model_dump(mode="json")) is None
