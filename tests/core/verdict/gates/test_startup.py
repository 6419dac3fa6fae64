"""What start-up takes longer is held against what the steps of the planned length save."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import Conditions, Evidence, ProbeEvidence
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.words import Outcome, Result, Status

PLANNED = TrialSetting(planned_steps=400)
ENDED = {"outcome": Outcome.ENDED_BY_PLAN, "exit_status": None}


def side(level: float, rate: float, first: float | None, *, times: int = 4, **more: Any) -> list[Evidence]:
    """Runs that gpudebug ended; `first` is when their first step ended, None if no probe told."""
    probe = ProbeEvidence(pid=1, steps=200, steps_per_s=rate, first_step_s=first) if first else None
    return [run(level + i / 2, rate, probe=probe, run=f"000{i}-x", **{**ENDED, **more}) for i in range(times)]


# 400 steps in 80 s, and in 36 s: 44 s are saved.
BEFORE = side(30, 5.0, 4.0)


@pytest.mark.parametrize(
    ("first", "setting", "status"),
    [
        pytest.param(4.5, PLANNED, Status.VALIDATED, id="as before"),
        pytest.param(20.0, PLANNED, Status.VALIDATED, id="a third of it"),
        pytest.param(48.0, PLANNED, Status.INCONCLUSIVE, id="all of it"),
        pytest.param(30.0, PLANNED, Status.INCONCLUSIVE, id="more than half of it"),
        pytest.param(
            48.0, TrialSetting(planned_steps=40_000), Status.VALIDATED, id="of a real training little"
        ),
        pytest.param(48.0, TrialSetting(), Status.VALIDATED, id="of a length that nobody knows"),
        pytest.param(
            48.0,
            TrialSetting(planned_steps=400, confirmed="it compiles"),
            Status.VALIDATED,
            id="a person knows",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["gpu_util", "steps_per_s"])
def test_a_wait_that_is_moved_before_the_first_step_is_none_saved(
    first: float, setting: TrialSetting, status: Status, metric: str
) -> None:
    terms = {} if metric == "gpu_util" else {"success": 1.2, "failure": 1.05}
    found = verdict(BEFORE, side(61, 11.0, first, times=2), setting, metric=metric, **terms)
    assert found.status is status, found.why
    if status is Status.INCONCLUSIVE:
        assert "s longer, and the steps of the planned length save 44 s" in found.why
        assert gate(found, "throughput").result is Result.UNKNOWN


def test_without_a_probe_nobody_knows_when_start_up_ended() -> None:
    after = side(61, 11.0, None, times=2)
    assert "start-up" not in (gate(verdict(BEFORE, after, PLANNED), "throughput").note or "")


def test_a_host_that_was_busy_makes_start_up_long_and_the_change_does_not() -> None:
    busy = Conditions(foreign_procs=0, foreign_share=0.0, foreign_cpu=50.0, cpu_stolen=85.0, cpu_cores=0.15)
    after = side(61, 11.0, 28.0, times=2, conditions=busy)
    assert "start-up" not in (gate(verdict(BEFORE, after, PLANNED), "throughput").note or "")
    quiet = side(61, 11.0, 28.0, times=2)
    assert "start-up" in (gate(verdict(BEFORE, quiet, PLANNED), "throughput").note or "")


def test_runs_that_completed_are_as_long_as_they_were() -> None:
    before = side(30, 5.0, 4.0, outcome=Outcome.COMPLETED, exit_status=0, steps=400)
    after = side(61, 11.0, 48.0, times=2, outcome=Outcome.COMPLETED, exit_status=0, steps=400)
    assert "start-up takes 44 s longer" in (gate(verdict(before, after), "throughput").note or "")
