"""When a command that is compared is ended, and what is said of it."""

from __future__ import annotations

import pytest
from tests.support.trials import run

from gpudebug.core.compare.planning import announced, ended, plan
from gpudebug.core.records import PlannedEnd, RunRecord
from gpudebug.core.verdict.run_plan import RunPlan, next_look
from gpudebug.core.words import Outcome

AUTO = RunPlan(30.0, may_complete=True, learns=False, counted=True)


@pytest.mark.parametrize(
    ("run_for", "first", "planned"),
    [
        (None, None, AUTO),
        (None, Outcome.ENDED_BY_PLAN, RunPlan(30.0, learns=False, counted=True)),
        (None, Outcome.COMPLETED, None),
        (90.0, None, RunPlan(90.0, learns=False)),
        (90.0, Outcome.COMPLETED, RunPlan(90.0, learns=False)),
        ("end", None, None),
        ("end", Outcome.ENDED_BY_PLAN, None),
    ],
)
def test_the_first_run_of_a_decides_for_both(
    run_for: float | str | None, first: Outcome | None, planned: RunPlan | None
) -> None:
    assert plan(run_for, [run(outcome=first)] if first else []) == planned


def test_a_run_that_counts_nothing_goes_on() -> None:
    silent, counts = run(30.0, None, window=35.0), run(30.0, 5.0, window=35.0)
    assert next_look(AUTO, counts, None) == 0
    assert next_look(AUTO, silent, None) > 0
    assert next_look(RunPlan(30.0, learns=False), silent, None) == 0


def test_what_is_said_before_and_after() -> None:
    assert announced("end") is None
    assert announced(90.0) == "each run is ended after 90 s of steady work"
    assert "is ended after 30 s of steady work, if it counts" in str(announced(None))
    record = RunRecord(
        name="0001-compare-a", campaign=None, role="compare", command="a", argv=("a",), cwd="/", start="x"
    )
    planned = record.model_copy(update={"planned": PlannedEnd(at_s=31.0, log_bytes=1, window_s=30.0)})
    assert ended([record]) == ()
    assert ended([record, planned]) == ("gpudebug ended 1 of 2 runs after 30 s of steady work (--run-for)",)
    assert ended([planned, planned]) == ("gpudebug ended each run after 30 s of steady work (--run-for)",)
