"""No failure rests on what others kept the trial from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import CRITERIA, criteria, gate, run

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, Verdict
from gpudebug.core.verdict import load
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.gates.setting import Criteria
from gpudebug.core.verdict.judge import judge
from gpudebug.core.verdict.protocol import NextRun, next_step
from gpudebug.core.words import Result, Status

CPU = (DeviceEvidence(index=0, uuid="CPU", name="x"),)
RATE = criteria(metric="steps_per_s", success=1.2, failure=1.1)


def beside(share: float | None, *, rate: float = 5.0, level: float = 30.0, name: str = "0001-x") -> Evidence:
    """A run that others kept from `share` of the time that it wanted of one core."""
    conditions = Conditions(
        foreign_procs=0,
        foreign_share=0.0,
        foreign_cpu=79.0,
        foreign_demand=150.0,
        cpu_stolen=None if share is None else 100 * share,
        cpu_cores=None if share is None else 1 - share,
    )
    return run(level, rate, conditions=conditions, devices=CPU, run=name)


def judged(
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    terms: Criteria = RATE,
    fresh: int = 0,
    rule: str = "5",
) -> tuple[Verdict, NextRun]:
    setting = TrialSetting(fresh=fresh, rule=int(rule))
    found = judge(3, terms, before, after, setting, rule)
    return found, next_step(found, terms, before, after, setting)


@pytest.mark.parametrize(
    ("before", "after", "factor"),
    [
        pytest.param(0.6, 0.8, 2.0, id="a worker more to be held up"),
        pytest.param(0.8, 0.6, 1.0, id="the baseline was held up more"),
        pytest.param(0.0, 0.04, 1.0, id="both alone enough"),
        pytest.param(None, 0.8, 1.0, id="the baseline does not say"),
        pytest.param(0.6, None, 1.0, id="the trial does not say"),
        pytest.param(0.0, 1.0, 20.0, id="it got nothing at all"),
    ],
)
def test_how_much_faster_the_trial_may_be(before: float | None, after: float | None, factor: float) -> None:
    assert load.held_up([beside(before)], [beside(after)]) == pytest.approx(factor)


@given(st.floats(0, 1), st.floats(0, 1))
def test_it_is_never_slower_for_it(before: float, after: float) -> None:
    assert load.held_up([beside(before)], [beside(after)]) >= 1.0


def test_a_worker_that_met_a_neighbour_is_not_rejected_for_no_gain() -> None:
    """0.74x by 10 % and 45 % of the CPU time: without the neighbour 1.2x."""
    before = [beside(0.10, rate=r, name=f"000{i}-b") for i, r in enumerate((5.0, 5.1, 4.9))]
    after = [beside(0.45, rate=3.7, name="0004-h3")]
    found, step = judged(before, after)
    assert (found.status, gate(found, "delta").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert "kept the trial from 45.0% of its CPU time, the baseline from 10.0%" in found.why
    assert "gpudebug reopen 3" in found.why
    assert step is NextRun.BASELINE


def test_both_sides_are_made_again_once_and_no_more() -> None:
    before = [beside(0.10, rate=5.0, name=f"000{i}-b") for i in range(5)]
    after = [beside(0.45, rate=3.7, name="0006-h3"), beside(0.45, rate=3.7, name="0007-h3")]
    assert judged(before, after[:1], fresh=1)[1] is NextRun.TRIAL
    assert judged(before, after, fresh=1)[1] is NextRun.BASELINE
    found, step = judged(before, after, fresh=2)
    assert (found.status, step) == (Status.INCONCLUSIVE, NextRun.DONE)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(beside(0.10, rate=3.7, name="0004-h3"), id="held up alike"),
        pytest.param(beside(0.15, rate=3.7, name="0004-h3"), id="a little more, which does not explain it"),
    ],
)
def test_a_change_that_gains_nothing_beside_the_same_neighbour_is_rejected(after: Evidence) -> None:
    before = [beside(0.10, rate=r, name=f"000{i}-b") for i, r in enumerate((5.0, 5.1, 4.9))]
    found, _ = judged(before, [after])
    assert (found.status, gate(found, "delta").result) == (Status.REJECTED, Result.FAIL)


def test_points_of_utilisation_are_held_up_too() -> None:
    before = [beside(0.1, level=30, name=f"000{i}-b") for i in range(4)]
    after = [beside(0.6, level=31, name="0005-h3")]
    assert judged(before, after, CRITERIA)[0].status is Status.INCONCLUSIVE
    assert judged(before, [beside(0.12, level=31, name="0005-h3")], CRITERIA)[0].status is Status.REJECTED


def test_throughput_is_not_hollow_by_what_others_took() -> None:
    before = [beside(0.1, name=f"000{i}-b") for i in range(4)]
    after = [beside(0.5, level=62, rate=4.0, name="0005-h3")]
    throughput = gate(judged(before, after, CRITERIA)[0], "throughput")
    assert throughput.result is Result.UNKNOWN
    assert throughput.note is not None and "kept the trial from 50.0%" in throughput.note


def other_load(share: float, rate: float, name: str, **more: float) -> Evidence:
    """A run beside others who wanted less than those beside the baseline."""
    e = beside(share, rate=rate, name=name, **more)
    return e.model_copy(update={"conditions": e.conditions.model_copy(update={"foreign_demand": 80.0})})


@pytest.mark.parametrize(
    ("rate", "status"),
    [
        # From 44 % and 25 % of the time: 1.34x, and twice over 1.79x. The rest is the change's.
        pytest.param(27.0, Status.VALIDATED, id="5.4x"),
        pytest.param(9.0, Status.INVALID, id="1.8x"),
        pytest.param(6.7, Status.INVALID, id="no more than the load"),
        pytest.param(4.0, Status.INVALID, id="slower"),
    ],
)
def test_a_gain_beyond_all_that_the_baseline_lost_to_others_is_one(rate: float, status: Status) -> None:
    before = [beside(0.44, rate=r, name=f"000{i}-b") for i, r in enumerate((5.0, 5.1, 4.9, 5.0, 5.0))]
    after = [other_load(0.25, rate * r, f"001{i}-h3") for i, r in enumerate((1.0, 1.02, 0.98))]
    found, _ = judged(before, after, fresh=2)
    assert found.status is status, found.why
    if status is Status.VALIDATED:
        assert "gains more than they can have kept the baseline from" in (
            gate(found, "device_to_itself").note or ""
        )


@pytest.mark.parametrize(("level", "status"), [(95, Status.VALIDATED), (60, Status.INVALID)])
def test_points_beyond_the_load_are_a_gain(level: float, status: Status) -> None:
    before = [beside(0.3, level=30, name=f"000{i}-b") for i in range(5)]
    after = [other_load(0.1, 20.0, f"001{i}-h3", level=level) for i in range(3)]
    assert judged(before, after, CRITERIA, fresh=2)[0].status is status
    # A device that is busier for no more steps than the load explains is not one.
    hollow = [other_load(0.1, 7.0, f"001{i}-h3", level=level) for i in range(3)]
    assert judged(before, hollow, CRITERIA, fresh=2)[0].status is Status.INVALID


def test_a_load_that_one_run_does_not_tell_is_beyond_nothing() -> None:
    before = [beside(0.44, name=f"000{i}-b") for i in range(5)]
    after = [other_load(0.25, 27.0, "0010-h3"), other_load(0.25, 27.0, "0011-h3")]
    silent = after[0].conditions.model_copy(update={"cpu_stolen": None})
    assert judged(before, after)[0].status is Status.VALIDATED
    after[0] = after[0].model_copy(update={"conditions": silent})
    assert judged(before, after)[0].status is Status.INVALID


def test_older_verdicts_are_judged_as_they_were() -> None:
    before = [beside(0.61, rate=r, name=f"000{i}-b") for i, r in enumerate((5.0, 5.1, 4.9))]
    after = [beside(0.78, rate=3.9, name="0004-h3")]
    assert judged(before, after, rule="4")[0].status is Status.REJECTED
