"""All runs of one trial: change applied, launched, judged until more runs would not help, recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gpudebug.core.answers.next import RecordedVerdict
from gpudebug.core.answers.show import ProbeSide
from gpudebug.core.errors import GitError, GpudebugError, InterruptedRun, InterventionError
from gpudebug.core.progress.claims import Claim
from gpudebug.core.records import Terms, Verdict
from gpudebug.core.statistics import numbers
from gpudebug.core.verdict import turns
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.verdict.gates.figures import improvement_text
from gpudebug.core.verdict.protocol import first_run, forecast, next_step
from gpudebug.core.verdict.turns import NextRun, following
from gpudebug.core.words import OWN_CODE, Result, Status
from gpudebug.engine.campaign.campaign import Entries, Loaded, MeasuredCode, Setup
from gpudebug.engine.campaign.changes import TrialChange, change_of, refuse_before_running
from gpudebug.engine.campaign.claims import LATE, forget, free, holds, new_claim, start
from gpudebug.engine.campaign.confirmation import confirmed_of
from gpudebug.engine.campaign.measured_code import NoSuchPatch
from gpudebug.engine.campaign.worktrees import WorkingTree, place_of_patch
from gpudebug.engine.run import adapters
from gpudebug.engine.run.around import surroundings_of
from gpudebug.engine.run.environment import Surroundings
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun, RunChange
from gpudebug.engine.run.measure import CodeChanged, measure, set_aside, with_same_code
from gpudebug.engine.run.prepare import (
    Cycle,
    job_of,
    open_bench,
    remarks,
    stored_run,
)
from gpudebug.engine.run.smaller import redundant
from gpudebug.engine.trial import baseline, crashes
from gpudebug.engine.trial.judge import asked, evidence_of, order_of, terms_of, trial_case, verdict_of
from gpudebug.engine.trial.premises import Unready, apply_change, refuse_outdated, refuse_without_figure
from gpudebug.engine.trial.result import record_result
from gpudebug.engine.trial.reuse import left_out_of, left_out_text, newest, of_change, shared, void
from gpudebug.engine.trial.sides import of_runs
from gpudebug.engine.trial.unmodified import by_the_user, interrupted, launch


@dataclass
class _Trial:
    cycle: Cycle
    number: int
    claim: Claim
    place: WorkingTree
    bench: Bench
    job: PreparedRun
    notes: tuple[str, ...]
    terms: Terms
    before: list[MeasuredRun]
    confirmed: str | None = None
    patched: bool = False
    more: int = 0
    crashes: list[MeasuredRun] = field(default_factory=list)
    after: list[MeasuredRun] = field(default_factory=list)
    void: int = 0
    spoilt: bool = False
    recorded: tuple[MeasuredRun, ...] = ()
    spending: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and what the runs so far have changed in linked folders."""
        return (*self.notes, *self.place.changed_in_links())


def run_trial(cycle: Cycle, number: int, why: str) -> RecordedVerdict:
    """Test one hypothesis and record its verdict. What can be checked is checked before the first run.

    Raises BaselineOutdated, before anything is launched, if the baseline knew other surroundings, and
    Unready if the change itself is in the way. CodeCrashed, once for a hypothesis, if code of the change
    crashed: it is still TESTING under the same claim.
    """
    with ExitStack() as stack:
        try:
            change = _readable_change(cycle.setup, cycle.loaded.entries, cycle.loaded.code, number)
            place = stack.enter_context(_place(cycle, number, change))
            trial = _prepare(cycle, number, change, place)
        except (GitError, InterventionError, NoSuchPatch) as e:
            raise Unready(e) from e
        waits = crashes.is_unanswered(
            cycle.setup.workspace,
            cycle.loaded.entries,
            number,
            trial.crashes,
            change.digest,
            written=change.written,
        )
        start(cycle.setup, number, trial.claim, change.intervention.text if change.written else None)
        try:
            if waits:
                raise crashes.CodeCrashed(number, trial.crashes[0])
            verdict = _run_until_decided(trial)
        except crashes.CodeCrashed:
            crashes.keep_claim(cycle.setup, number, trial.claim, change.intervention)
            raise
        except GpudebugError as error:
            begun = turns.begun(len(trial.after))
            free(cycle.setup, number, trial.claim, begun)
            if begun and isinstance(error, InterruptedRun):
                error.message += f"; {begun}"
            raise
        late = not record_result(cycle.setup, number, verdict.model_dump(mode="json"))
    forget(cycle.setup, number)
    return _answer(trial, verdict, why, late=late)


def _readable_change(setup: Setup, entries: Entries, code: MeasuredCode, number: int) -> TrialChange:
    """Return what the trial changes, if it may be tested at all."""
    if number in entries.problems:
        raise entries.problems[number]
    change = change_of(setup, entries, code, number)
    config = setup.config
    synonyms = adapters.locks_of(
        setup.workspace.root, config.workload, config.locked, change.intervention.names
    )
    refuse_before_running(setup, entries.document, number, change.intervention, synonyms)
    return change


@contextmanager
def _place(cycle: Cycle, number: int, change: TrialChange) -> Iterator[WorkingTree]:
    """Where the trial runs: a worktree of its own for a patch, else where the baseline runs."""
    if change.patch is None:
        yield cycle.place
        return
    file = str(cycle.setup.workspace.root / str(change.intervention.patch))
    with place_of_patch(cycle.setup, cycle.loaded.code, number, change.patch, file) as place:
        yield place


def _prepare(cycle: Cycle, number: int, change: TrialChange, place: WorkingTree) -> _Trial:
    loaded = cycle.loaded
    workload = loaded.setup.config.workload
    bench = open_bench(cycle, workload)
    claim = new_claim(loaded.setup, loaded.entries, number)
    role = f"h{number}"
    job = job_of(cycle, workload, role, role, loaded.history.identities["workload"], place)
    before = [stored_run(loaded.setup.workspace, name) for name in loaded.history.baselines["workload"].runs]
    around = surroundings_of(bench, job)
    refuse_outdated(before, around)
    refuse_without_figure(cycle, before)
    for room in baseline.without_room(loaded.setup, loaded.campaign, [m.evidence for m in before]):
        remarks(cycle.report)(room)
    before += shared(loaded.setup, loaded.history, around)
    applied, server = apply_change(loaded, number, change.intervention, job)
    variables = {k for k, v in applied.env.items() if v != job.env.get(k)}
    changed = replace(
        job,
        argv=applied.argv,
        env=applied.env,
        server=server,
        env_names=tuple(sorted({*job.env_names, *variables})),
        change=RunChange(
            hypothesis=number,
            text=change.intervention.text,
            digest=change.digest,
            claim=claim.note,
            redundant=redundant(loaded.setup.workspace, loaded.entries.document.hypothesis(number).cause),
        ),
    )
    lines = (*job.notes, *applied.notes, *change.notes, *(place.notes if change.patch is not None else ()))
    notes = tuple(loaded.setup.workspace.scrub(note) for note in lines)
    confirmed = confirmed_of(loaded.setup, number, change.digest)
    terms = terms_of(asked(loaded.setup.config), before)
    trial = _Trial(cycle, number, claim, place, bench, changed, notes, terms, before, confirmed)
    trial.patched = change.patch is not None
    trial.crashes += (
        crashes.earlier(loaded.setup, loaded.entries.document, loaded.history, number, role)
        if trial.patched
        else ()
    )
    trial.recorded = tuple(before)
    _take_up(trial, around)
    return trial


def _take_up(trial: _Trial, around: Surroundings) -> None:
    """Runs with this very change that are in the baseline's record: they are not run again."""
    loaded = trial.cycle.loaded
    judged = [
        name
        for name in loaded.history.judged
        if loaded.history.records[name].get("hypothesis") == trial.number
    ]
    listed = loaded.entries.document.hypothesis(trial.number).runs
    trial.notes = (
        *trial.notes,
        *left_out_of(loaded.setup, loaded.history.records, trial.number, newest([*judged, *listed])),
    )
    crashed = {m.folder.name for m in trial.crashes}
    found, trial.more = of_change(loaded.setup, loaded.history, trial.job.change.digest, around)
    trial.after += [m for m in found if m.folder.name not in crashed]
    others = dict.fromkeys(
        f"hypothesis {m.record.hypothesis}" for m in trial.after if m.record.hypothesis != trial.number
    )
    if others:
        trial.notes = (*trial.notes, f"the record of this change goes on from {', '.join(others)}")


def _run_until_decided(trial: _Trial) -> Verdict:
    step = _first_step(trial)
    like = trial_case(0, trial.terms, trial.before, trial.after or trial.before, more=trial.more)
    least = 2 if like.short and not trial.after else 1
    _say(trial, turns.of_trial(step, _seconds(trial.recorded), like.most, least=least))
    begun = time.monotonic()
    while True:
        measured = _launch(trial, step)
        side = trial.before if step is NextRun.BASELINE else trial.after
        side.append(measured)
        if not trial.after:
            why = void(trial.cycle.setup.metric, measured)
            if why is None:
                trial.bench.workspace.seal(measured.folder)
            else:
                side.pop()
                trial.void += 1
                _leave_out(trial, measured, why)
            if why is None or trial.void > 1:
                step = NextRun.TRIAL
            continue
        case = _case(trial)
        verdict = _judged(trial, case)
        if _to_be_mended(trial, verdict, measured):
            trial.bench.workspace.seal(measured.folder)
            raise crashes.CodeCrashed(trial.number, measured)
        itself = (measured.record.reason or "").startswith(OWN_CODE)
        if verdict.status is Status.INVALID and not (trial.spoilt or itself) and trial.place.stands:
            side.pop()
            trial.spoilt = True
            _leave_out(trial, measured, verdict.why)
            continue
        step = next_step(verdict, case)
        if step is not NextRun.DONE and (late := _too_late(trial, step, time.monotonic() - begun)):
            trial.notes = (*trial.notes, late)
            verdict, step = _judged(trial, case), NextRun.DONE
        if step is not NextRun.DONE:
            remarks(trial.cycle.report)(f"hypothesis {trial.number}: {_so_far(trial, verdict, case, step)}")
        if step is NextRun.DONE:
            kept = holds(trial.cycle.setup, trial.number, trial.claim)
            measured.folder.write("verdict.json" if kept else LATE, verdict)
        trial.bench.workspace.seal(measured.folder)
        if step is NextRun.DONE:
            return verdict


def _so_far(trial: _Trial, verdict: Verdict, case: TrialCase, step: NextRun) -> str:
    """Return in one line what is known, what is missing, and how long that is likely to take."""
    unknown = [gate.name for gate in verdict.gates if gate.result is Result.UNKNOWN]
    missing = "" if "delta" in unknown else ", ".join(unknown)
    known = improvement_text(case.metric, case.delta) if case.delta is not None else UNKNOWN
    runs = [step] if missing else forecast(case, step)
    return turns.so_far(len(trial.after), known, missing, runs, _last(trial))


def _last(trial: _Trial) -> dict[NextRun, float]:
    """Return how long the last run of each kind took, in seconds."""
    sides = {NextRun.BASELINE: trial.before, NextRun.TRIAL: trial.after}
    return {kind: took[-1] for kind, runs in sides.items() if (took := _seconds(runs))}


def _too_late(trial: _Trial, step: NextRun, elapsed: float) -> str | None:
    """Say that the next run would end after what a person allows; None if it would not."""
    within = trial.cycle.within_s
    if within is None or elapsed + _last(trial).get(step, 0.0) <= within:
        return None
    return f"no further run fits into --within {turns.span(within)}: gpudebug next --more {trial.number}"


def _leave_out(trial: _Trial, measured: MeasuredRun, why: str) -> None:
    """Seal a run that counts for nothing, and say so in the verdict's notes. It is made again."""
    set_aside(measured, why)
    trial.bench.workspace.seal(measured.folder)
    trial.notes = (*trial.notes, trial.bench.workspace.scrub(left_out_text(measured.folder.name, why)))


def _say(trial: _Trial, text: str) -> None:
    """Tell now what is about to be spent, and again in the answer."""
    trial.spending = (*trial.spending, text)
    remarks(trial.cycle.report)(f"hypothesis {trial.number}: {text}")


def _to_be_mended(trial: _Trial, verdict: Verdict, measured: MeasuredRun) -> bool:
    """Whether code of the change crashed for the first time, and whoever wrote it still has the claim."""
    first = trial.patched and not trial.crashes and crashes.is_first(verdict, measured)
    return first and holds(trial.cycle.setup, trial.number, trial.claim)


def _case(trial: _Trial) -> TrialCase:
    return trial_case(
        trial.number, trial.terms, trial.before, trial.after, confirmed=trial.confirmed, more=trial.more
    )


def _judged(trial: _Trial, case: TrialCase) -> Verdict:
    return verdict_of(case, trial.terms, trial.before, trial.after, trial.remarks, trial.crashes)


def _seconds(runs: Sequence[MeasuredRun]) -> list[float]:
    return [m.record.duration_s for m in runs if m.record.duration_s]


def _first_step(trial: _Trial) -> NextRun:
    """Return what a trial begins with, or goes on with after the runs of this change that are made already.

    Sealed runs take no verdict any more: where these decide, one more run brings it.
    """
    order = order_of(trial.before, trial.after, time.time())
    if not trial.after:
        return first_run(order)
    case = _case(trial)
    case = replace(case, setting=replace(case.setting, order=order))
    step = next_step(_judged(trial, case), case)
    if step is not NextRun.DONE:
        return step
    closed = max(order.before) > max(order.after)
    return following(len(trial.after), case.most, closed=closed, since=order.next - max(order.before))


def _launch(trial: _Trial, step: NextRun) -> MeasuredRun:
    """One run of the trial, or of the baseline beside it, that is not sealed yet."""
    if step is NextRun.BASELINE:
        job = baseline.job_beside(trial.cycle, trial.number, trial.claim.note)
        measured = launch(trial.bench, "workload", job)
    else:
        measured = measure(trial.bench, trial.job)
    if by_the_user(measured):
        trial.bench.workspace.seal(measured.folder)
        raise interrupted(measured)
    return _of_same_code(trial, measured)


def _of_same_code(trial: _Trial, measured: MeasuredRun) -> MeasuredRun:
    ours = not measured.record.role.startswith("baseline-")

    def did_itself(what: str) -> bool:
        """In a worktree of its own, and where a run of the hypothesis did the same before."""
        records = trial.cycle.loaded.history.records.values()
        before = (str(r.get("set_aside")) for r in records if r.get("hypothesis") == trial.number)
        return ours and (trial.patched or any(why.startswith(what) for why in before))

    try:
        return with_same_code(
            trial.place if ours else trial.cycle.place, measured, trial.recorded, did_itself=did_itself
        )
    except CodeChanged:
        trial.bench.workspace.seal(measured.folder)
        raise


def _answer(trial: _Trial, verdict: Verdict, decided: str, *, late: bool) -> RecordedVerdict:
    sides = of_runs("baseline", evidence_of(trial.before)), of_runs("trial", evidence_of(trial.after))
    runs = [m.folder.name for m in trial.after]
    loaded, data = trial.cycle.loaded, verdict.model_dump(mode="json")
    answer = answer_of(loaded, trial.number, data, decided, runs, sides)
    answer = replace(answer, notes=(*answer.notes, *trial.spending))
    if not late:
        return answer
    why = f"not recorded: the claim on hypothesis {trial.number} was released or taken over during the run"
    return replace(answer, verdict=None, late=True, why=why)


def answer_of(
    loaded: Loaded,
    number: int,
    verdict: Mapping[str, Any],
    decided: str,
    runs: Sequence[str],
    sides: tuple[ProbeSide, ...],
) -> RecordedVerdict:
    """Return `next`'s answer for a verdict; `runs` are the trial's own."""
    return RecordedVerdict(
        campaign=loaded.setup.config.campaign,
        hypothesis=number,
        title=loaded.entries.document.hypothesis(number).title,
        verdict=verdict["status"],
        late=False,
        why=verdict["why"],
        decided=decided,
        gates=numbers.gates(verdict["gates"]),
        figures=numbers.result_fields(verdict),
        notes=tuple(verdict["notes"]),
        probe=sides,
        files=(
            *(str(loaded.setup.workspace.run(name).path) for name in runs),
            str(loaded.setup.progress_path),
        ),
    )
