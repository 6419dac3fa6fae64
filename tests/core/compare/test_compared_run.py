"""When a command that is compared is ended, and what is said of it."""

from __future__ import annotations

import pytest
from tests.support import trials
from tests.support.comparisons import run

from gpudebug.core.compare.compared_run import ComparedRun, announced, ended, plan, rates
from gpudebug.core.compare.faster import SpeedAnswer, compare
from gpudebug.core.records import PlannedEnd, RunRecord, SectionFigures, SectionsEvidence
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
    assert plan(run_for, [trials.run(outcome=first)] if first else []) == planned


def test_a_run_that_counts_nothing_goes_on() -> None:
    silent, counts = trials.run(30.0, None, window=35.0), trials.run(30.0, 5.0, window=35.0)
    assert next_look(AUTO, counts, None).seconds == 0
    assert next_look(AUTO, silent, None).seconds > 0
    assert next_look(RunPlan(30.0, learns=False), silent, None).seconds == 0


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


def figures(name: str, mean: float, calls: int = 100, share: float = 1.0) -> SectionFigures:
    total = mean * calls
    return SectionFigures(
        name=name, calls=calls, total_s=total, self_s=total, mean_s=mean, min_s=mean, max_s=mean, share=share
    )


def timed(*sections: SectionFigures, **more: object) -> ComparedRun:
    return run(rate=None, sections=SectionsEvidence(count=1, profiled_s=1.0, sections=sections), **more)


def test_the_section_with_the_most_time_of_both_is_the_iteration() -> None:
    a = [timed(figures("loop", 0.1), figures("load", 0.08, share=0.8), figures("setup", 5.0, calls=1))]
    b = [timed(figures("loop", 0.05), figures("load", 0.03, share=0.6))]
    found = rates([r.evidence for r in a], [r.evidence for r in b])
    assert found is not None
    assert (found.section, found.a, found.b) == ("loop", (pytest.approx(10),), (pytest.approx(20),))


def test_it_decides_where_there_is_no_other_rate() -> None:
    found = compare([timed(figures("loop", 0.1))] * 3, [timed(figures("loop", 0.02))] * 3)
    assert (found.figure.name, found.figure.unit) == ("throughput", "calls of 'loop'")
    assert found.answer is SpeedAnswer.FASTER
    assert found.ratio.value == pytest.approx(5)


def test_a_rate_of_the_log_is_more() -> None:
    both = SectionsEvidence(count=1, profiled_s=1.0, sections=(figures("loop", 0.1),))
    found = compare([run(rate=10.0, sections=both)], [run(rate=11.0, sections=both)])
    assert found.figure.unit != "calls of 'loop'"


def test_nothing_in_common_tells_nothing() -> None:
    one, other = timed(figures("x", 0.1)).evidence, timed(figures("y", 0.1)).evidence
    assert rates([one], [other]) is None
    assert rates([one], [timed().evidence]) is None
    assert rates([timed(figures("x", 0.1, calls=9)).evidence], [one]) is None
