"""What others took of the cores: which runs are compared, and what the gate says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import CRITERIA, crashed, gate, run, verdict

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence
from gpudebug.core.verdict import load
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.judge import judge
from gpudebug.core.verdict.planned_work import SideWork
from gpudebug.core.words import Result, Status

CPU = (DeviceEvidence(index=0, uuid="CPU", name="x"),)


def under(
    demand: float | None,
    stolen: float | None,
    *,
    level: float = 28.0,
    rate: float = 5.0,
    name: str = "0001-x",
    used: float = 1.0,
    foreign: float | None = None,
) -> Evidence:
    """A run beside others who wanted `demand` percent of its cores and kept it from `stolen` cores."""
    conditions = Conditions(
        foreign_procs=0,
        foreign_share=0.0,
        foreign_cpu=min(demand or 0.0, 95.0) if foreign is None else foreign,
        foreign_demand=demand,
        cpu_stolen=100 * stolen if stolen is not None else None,
        cpu_cores=used,
    )
    return run(level, rate, conditions=conditions, devices=CPU, run=name)


def device(before: Sequence[Evidence], after: Sequence[Evidence], fresh: int = 0) -> tuple[Result, str]:
    found = verdict(before, after, TrialSetting(fresh=fresh))
    shown = gate(found, "device_to_itself")
    return shown.result, shown.value


GAIN: dict[str, Any] = {"level": 61.0, "rate": 11.0}


@pytest.mark.parametrize(
    ("before", "after", "result", "said"),
    [
        pytest.param(under(3, 0.0), under(4, 0.0, **GAIN), Result.PASS, "alone", id="nobody there"),
        pytest.param(
            under(50, 0.0), under(75, 0.001, **GAIN), Result.PASS, "alone enough: other", id="cores to spare"
        ),
        pytest.param(
            under(50, 0.1), under(75, 0.3), Result.FAIL, "other processes used 50%", id="50 and 75 %"
        ),
        pytest.param(
            under(75, 0.3), under(50, 0.1, **GAIN), Result.FAIL, "other processes used 75%", id="75 and 50 %"
        ),
        pytest.param(
            under(50, 0.1), under(75, 0.3, **GAIN), Result.PASS, "used 50%", id="better in spite of more"
        ),
        pytest.param(
            under(50, 0.2), under(52, 0.6, **GAIN), Result.PASS, "equal, but noisy", id="wants more"
        ),
        pytest.param(under(3, 0.0), under(100, 0.5), Result.FAIL, "used 3%", id="came later"),
        pytest.param(under(100, 0.5), under(3, 0.0, **GAIN), Result.FAIL, "used 95%", id="left before"),
        pytest.param(under(400, 0.7), under(440, 0.7, **GAIN), Result.PASS, "equal", id="a long queue"),
        pytest.param(
            under(100, 0.01), under(3, 0.0, **GAIN), Result.PASS, "alone enough", id="waits a little"
        ),
        pytest.param(
            under(100, 0.015, used=0.05),
            under(3, 0.0, **GAIN),
            Result.PASS,
            "alone enough",
            id="wants little",
        ),
        pytest.param(
            under(None, None, foreign=50), under(None, None, foreign=75), Result.FAIL, "50%", id="not counted"
        ),
        pytest.param(
            under(None, None, foreign=61), under(None, None, foreign=67), Result.PASS, "noisy", id="as before"
        ),
    ],
)
def test_what_the_gate_says(before: Evidence, after: Evidence, result: Result, said: str) -> None:
    found, value = device([before] * 2, [after] * 2)
    assert (found, said in value) == (result, True), value


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (under(50, 0.1), under(150, 0.4, **GAIN), Status.VALIDATED),
        # No gain, harm, a gain at the cost of throughput: they may be the neighbour's.
        (under(50, 0.1), under(150, 0.4), Status.INVALID),
        (under(50, 0.1), under(150, 0.4, level=15.0, rate=3.0), Status.INVALID),
        (under(50, 0.1), under(150, 0.4, level=61.0, rate=2.0), Status.INVALID),
        # Others wanted more and got less, or the other way round; it is not known.
        (under(50, 0.4), under(150, 0.1, **GAIN), Status.INVALID),
        (under(150, 0.1), under(50, 0.4, **GAIN), Status.INVALID),
        (under(50, None), under(150, 0.4, **GAIN), Status.INVALID),
    ],
)
def test_a_gain_in_spite_of_more_load_is_a_gain(before: Evidence, after: Evidence, status: Status) -> None:
    found = verdict([before] * 3, [after] * 2)
    assert found.status is status, found.why
    assert judge(1, CRITERIA, [before] * 3, [after] * 2, TrialSetting(), "4").status is Status.INVALID


def silent(**figures: Any) -> Evidence:
    """A run that does not tell what others did."""
    e = under(None, None, **figures)
    return e.model_copy(update={"conditions": e.conditions.model_copy(update={"foreign_cpu": None})})


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        # What a run waited for may have made the figures, and nothing shows that the other side met as much.
        (silent(), under(150, 0.4), Status.INVALID),
        (under(150, 0.4), silent(), Status.INVALID),
        (silent(), under(150, 0.4, level=61.0, rate=2.0), Status.INVALID),
        # No run waited, or none tells: there is nothing to hold against it.
        (silent(), under(3, 0.0), Status.REJECTED),
        (under(3, 0.0), silent(), Status.REJECTED),
        (silent(), silent(), Status.REJECTED),
        (silent(), silent(**GAIN), Status.VALIDATED),
    ],
)
def test_figures_beside_an_unknown_load_reject_nothing(
    before: Evidence, after: Evidence, status: Status
) -> None:
    found = verdict([before] * 4, [after] * 2)
    assert found.status is status, found.why
    if status is Status.INVALID:
        assert found.why.startswith("it is not known whether the load was alike: other processes kept run")
    old = judge(1, CRITERIA, [before] * 4, [after] * 2, TrialSetting(), "4").status
    assert old is (Status.REJECTED if status is Status.INVALID else status)


def test_a_gpu_beside_an_unknown_load_is_not_alone() -> None:
    gpu = (DeviceEvidence(index=0, uuid="GPU-0", name="x"),)
    before, after = (e.model_copy(update={"devices": gpu}) for e in (silent(), under(150, 0.4, **GAIN)))
    shown = gate(verdict([before] * 4, [after]), "device_to_itself")
    assert (shown.result, shown.value) == (Result.SKIPPED, "unknown")
    assert shown.note == (
        "other processes kept run 0001-x from 28.6% of its CPU time, "
        "and what they did beside run 0001-x is unknown"
    )


def test_the_programs_own_failure_is_one_beside_an_unknown_load_too() -> None:
    broken = crashed("exception", "ValueError", conditions=under(150, 0.4).conditions, devices=CPU)
    assert verdict([silent()] * 4, [broken]).status is Status.REJECTED


def test_an_old_rule_counts_what_others_used() -> None:
    before, after = [under(3, 0.0)] * 2, [under(95, 0.0, **GAIN)] * 2
    for rule, status in (("4", Status.INVALID), ("5", Status.VALIDATED)):
        assert judge(1, CRITERIA, before, after, TrialSetting(), rule).status is status


def test_a_run_that_is_left_out_takes_its_plan_with_it() -> None:
    recorded = [under(3, 0.0, name=f"000{n}-b") for n in (1, 2)]
    sides = [*recorded, under(98, 0.4, name="0004-b")], [under(100, 0.5, name="0003-h1", **GAIN)]
    before, after = ([e.model_copy(update={"occasions": {}}) for e in side] for side in sides)
    plans = SideWork(({"checkpoint": 1}, {"checkpoint": 2}, {"checkpoint": 3}), ({"checkpoint": 0},))
    found = judge(1, CRITERIA, before, after, TrialSetting(fresh=1, side_work=plans))
    assert next(g for g in found.gates if g.name == "side_work").value == "checkpoints 3, then none"


class TestChoose:
    def names(self, found: load.Chosen) -> tuple[list[str], list[str], int]:
        return [e.run for e in found.before], [e.run for e in found.after], found.fresh

    def test_recorded_runs_under_another_load_are_left_out_once_there_are_fresh_ones(self) -> None:
        recorded = [under(3, 0.0, name=f"000{n}-b") for n in (1, 2)]
        trial = [under(100, 0.5, name="0003-h1")]
        fresh = [under(98, 0.4, name="0004-b")]
        assert self.names(load.choose(recorded, trial, 0)) == (["0001-b", "0002-b"], ["0003-h1"], 0)
        found = load.choose([*recorded, *fresh], trial, 1)
        assert self.names(found) == (["0004-b"], ["0003-h1"], 1)
        assert load.left_out_text(found) == (
            "left out: 0001-b, 0002-b, under another load "
            "(others wanted 3% of the cores, 99% beside the trial)"
        )

    def test_a_trials_run_is_left_out_if_its_neighbour_was_there_once(self) -> None:
        before = [under(3, 0.0, name=f"000{n}-b") for n in (1, 2, 4)]
        after = [under(100, 0.5, name="0003-h1"), under(2, 0.0, name="0005-h1")]
        found = load.choose(before, after, 1)
        assert self.names(found) == (["0001-b", "0002-b", "0004-b"], ["0005-h1"], 1)

    def test_recorded_runs_of_an_unknown_load_are_left_out_once_there_are_fresh_ones(self) -> None:
        recorded = [silent(name=f"000{n}-b") for n in (1, 2)]
        trial, fresh = under(100, 0.5, name="0003-h1"), under(98, 0.4, name="0004-b")
        found = load.choose([*recorded, fresh], [trial], 1)
        assert self.names(found) == (["0004-b"], ["0003-h1"], 1)
        text = load.left_out_text(found)
        assert text == "left out: 0001-b, 0002-b, under a load that is not known, or another one"

    def test_what_crashed_is_never_left_out(self) -> None:
        loaded = under(100, 0.5)
        broken = crashed("exception", "ValueError", conditions=loaded.conditions, run="0003-h1")
        before = [under(3, 0.0), under(3, 0.0, name="0004-b")]
        found = load.choose(before, [broken, under(3, 0.0, name="0005-h1")], 1)
        assert "0003-h1" in [e.run for e in found.after]

    def test_loads_that_come_and_go_are_compared_as_they_were_met(self) -> None:
        recorded = [under(3, 0.0, name="0001-b")] * 3
        fresh = [under(d, d / 200, name=f"b{d}") for d in (40, 80)]
        after = [under(d, d / 200, name=f"h{d}") for d in (22, 100)]
        found = load.choose([*recorded, *fresh], after, 2)
        assert self.names(found) == (["b40", "b80"], ["h22", "h100"], 2)

    @given(
        st.lists(st.tuples(st.floats(0, 400), st.floats(0, 1)), min_size=2, max_size=6),
        st.lists(st.tuples(st.floats(0, 400), st.floats(0, 1)), min_size=1, max_size=4),
        st.data(),
    )
    def test_some_of_each_side_are_left_and_none_is_lost(
        self, old: list[tuple[float, float]], new: list[tuple[float, float]], data: st.DataObject
    ) -> None:
        fresh = data.draw(st.integers(0, len(old)))
        before = [under(d, s, name=f"b{n}") for n, (d, s) in enumerate(old)]
        after = [under(d, s, name=f"h{n}") for n, (d, s) in enumerate(new)]
        found = load.choose(before, after, fresh)
        assert found.before and found.after
        kept = [e.run for e in (*found.before, *found.after, *found.left_out)]
        assert sorted(kept) == sorted(e.run for e in (*before, *after))
        assert [e.run for e in found.before[len(found.before) - found.fresh :]] == [
            e.run for e in before[len(before) - fresh :] if e in found.before
        ]
        if found.left_out:
            assert load.comparable(found.before, found.after)
            assert found.fresh >= 1


def test_a_quota_is_never_silent() -> None:
    held = [run(28, conditions=Conditions(cpu_throttled=t, cpu_cores=1.0)) for t in (40.0, 50.0)]
    after = [run(61, 11, conditions=Conditions(cpu_throttled=50.0, cpu_cores=1.0))]
    note = "a CPU quota held the runs back: 45% of a core's time in the baseline, 50% in the trial"
    assert note in verdict(held, after).notes
    assert load.quota_text([run(28)], [run(61)]) is None


def test_what_others_wanted_is_said_where_it_decides() -> None:
    """They got as much of the cores beside both, and wanted twice as much beside the trial."""
    before, after = [under(100, 0.5, foreign=66)] * 4, [under(200, 0.5, foreign=67)]
    result, value = device(before, after)
    assert result is Result.FAIL
    assert value.startswith("other processes used 66% of the cores in the baseline, 67% in the trial, and ")
    assert value.endswith("; they wanted 100% of the cores in the baseline, 200% in the trial")
    unknown = under(None, 0.5, foreign=67)
    assert load.demand_text(before, [unknown]) is None
