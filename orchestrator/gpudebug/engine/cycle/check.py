"""`gpudebug check`: the accepted state measured again, against what it gained when it was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpudebug.core.answers.hypotheses import CombinedGain
from gpudebug.core.answers.verify import CANNOT_TELL, KEPT, REGRESSED, CheckAnswer
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Estimate
from gpudebug.core.verdict.course import unchanged, worse
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.turns import BASELINE_RUNS
from gpudebug.core.words import counted
from gpudebug.edges.host import now
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign, job_of, open_bench, remarks, stored_run
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial import recover
from gpudebug.engine.trial.original import CHECK, Originals, named, other_side, there_already
from gpudebug.engine.trial.together import NOT_YET, apart, contrast_of, differed, shown, together
from gpudebug.engine.trial.unmodified import run_once

COMMAND = "gpudebug check"


class NothingToCheck(GpudebugError):
    """What was accepted is not here, or was never measured."""

    code = "check"


@dataclass(frozen=True)
class _Expected:
    """What was gained, and of what that is the figure."""

    estimate: Estimate
    of: str


@dataclass
class _Measured:
    """The runs of the accepted state, and of the workload without it; None if nothing runs without."""

    cycle: Cycle
    bench: Bench
    job: PreparedRun
    beside: Originals | None
    made: list[MeasuredRun] = field(default_factory=list)

    def complete(self, wanted: int) -> None:
        while len(self.made) < wanted or (self.beside is not None and self.beside.lacks(wanted)):
            if self.beside is not None and self.beside.turn(len(self.made)):
                self.beside.run()
                if self.beside.ended is not None:
                    raise NothingToCheck(
                        f"the workload without the accepted changes cannot be measured: {self.beside.ended}",
                        next="gpudebug status",
                    )
            else:
                self.made.append(
                    run_once(self.cycle.place, self.bench, "accepted state", self.job, self.made)
                )


def check(directory: Path, report: Report) -> CheckAnswer:
    """Measure the accepted state again, twice; up to `max_runs` times a side if that would be a regression.
    For a person and CI: no budget bounds it.

    Raises NothingToCheck if nothing is accepted, or its runs are not here; BaselineFailed if the accepted
    state does not complete any more.
    """
    with claimed_campaign(directory, report, COMMAND) as claimed:
        cycle = recover.recovered(claimed)
        loaded = cycle.loaded
        expected = _expected(loaded)
        there = there_already(loaded.setup, loaded.code)
        measured = _begin(cycle, without=not there)
        count, most = BASELINE_RUNS, loaded.setup.config.protocol.max_runs
        remarks(report)(f"check: {_announced(count, paired=not there)}")
        measured.complete(count)
        answer = _answer(loaded, measured, expected, there)
        while answer.result != KEPT and measured.beside is not None and count < most:
            count += 1
            remarks(report)(f"check: one more run of both sides: {answer.why}")
            measured.complete(count)
            answer = _answer(loaded, measured, expected, there)
        record(loaded.setup.workspace.root, None, cycle.command)
    return answer


def _announced(runs: int, *, paired: bool) -> str:
    sides = "of the accepted state" + (", and as many without it, in turn" if paired else "")
    return f"{counted(runs, 'run')} {sides}"


def _expected(loaded: Loaded) -> _Expected:
    """What was gained together as both sides ran in turn; else the verdict of the only accepted change."""
    where = str(loaded.setup.progress_path)
    lines = [h.number for h in loaded.entries.document.hypotheses if h.accepted is not None]
    if not loaded.entries.recorded and not lines:
        raise NothingToCheck("nothing is accepted yet", file=where, next="gpudebug accept H")
    if not loaded.entries.recorded or len(loaded.entries.accepted) < len(loaded.entries.recorded):
        raise NothingToCheck(
            "what was accepted has no runs here, or is not as it was: a fresh clone has neither",
            file=where,
            next="gpudebug verify; in CI keep runs/ and .git between jobs",
        )
    verdict = loaded.entries.trials[loaded.entries.recorded[0].number].verdict
    found = together(loaded, verdict) if verdict else CombinedGain(metric="", runs_before=(), runs_after=())
    if found.paired and found.delta is not None:
        return _Expected(found.delta, "all that is accepted, measured together")
    if len(loaded.entries.recorded) == 1 and verdict and verdict.get("delta"):
        number = loaded.entries.recorded[0].number
        return _Expected(Estimate.model_validate(verdict["delta"]), f"the verdict on hypothesis {number}")
    raise NothingToCheck(
        f"what was accepted was not measured together: {found.why or 'its sides were not run in turn'}",
        file=where,
        next="gpudebug next" if found.why == NOT_YET else "gpudebug baseline workload",
    )


def _begin(cycle: Cycle, *, without: bool) -> _Measured:
    loaded = cycle.loaded
    workload = loaded.setup.config.workload
    bench, paired = open_bench(cycle, workload), f"{CHECK}-{now()}"
    job = job_of(cycle, workload, CHECK, CHECK, loaded.history.identities["workload"])
    beside = other_side(cycle, bench, paired) if without else None
    return _Measured(cycle, bench, replace(job, paired=paired), beside)


def _answer(loaded: Loaded, measured: _Measured, expected: _Expected, there: Sequence[int]) -> CheckAnswer:
    before = measured.beside.runs if measured.beside is not None else []
    notes: list[str] = []
    if measured.beside is None:
        before = [
            stored_run(loaded.setup.workspace, name) for name in loaded.history.baselines["workload"].runs
        ]
        numbers_there = ", ".join(map(str, there))
        notes.append(
            f"hypothesis {numbers_there} is part of gpudebug.yaml or the checkout now, so it cannot be "
            "switched off: today's speed is compared with that of the recorded baseline"
        )
    if not before:
        raise NothingToCheck("there is no baseline to compare with", next="gpudebug baseline workload")
    paired = measured.beside is not None
    found = (
        contrast_of(loaded.setup, loaded.code, before, measured.made)
        if paired
        else apart(loaded.setup, before, measured.made)
    )
    result, why = _judged(found, expected) if paired else _against_recorded(found, before, measured.made)
    return CheckAnswer(
        campaign=loaded.setup.config.campaign,
        result=result,
        why=why,
        text=shown(found.metric, found.delta) if found.delta is not None else None,
        delta=found.delta,
        expected=expected.estimate if paired else None,
        of=expected.of if paired else "the recorded baseline",
        paired=paired,
        runs_before=named(before),
        runs_after=named(measured.made),
        notes=tuple(notes),
        files=tuple(str(m.folder.path) for m in measured.made),
    )


def _judged(found: TrialCase, expected: _Expected) -> tuple[str, str]:
    if found.delta is None:
        return CANNOT_TELL, f"a run lacks {found.metric.name}"
    today, then = (shown(found.metric, each) for each in (found.delta, expected.estimate))
    if worse(found.metric, found.delta, expected.estimate):
        return REGRESSED, f"the gain is {today}, it was {then}: less, beyond both intervals"
    return KEPT, f"the gain is {today}, it was {then}"


def _against_recorded(
    found: TrialCase, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]
) -> tuple[str, str]:
    """Today's speed against that of the recorded baseline: another machine shows nothing."""
    if found.delta is None:
        return CANNOT_TELL, f"a run lacks {found.metric.name}"
    text, level = shown(found.metric, found.delta), 0.0 if found.metric.points else 1.0
    if unchanged(found.metric, found.delta) or found.delta.value > level:
        return KEPT, f"against the recorded baseline: {text}"
    other = differed(before, after)
    if other.startswith("what was otherwise"):
        return CANNOT_TELL, f"against the recorded baseline: {text}; {other}"
    return REGRESSED, f"against the recorded baseline: {text}, beyond its interval; {other}"
