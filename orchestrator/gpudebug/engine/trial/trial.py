"""All runs of one trial: change applied, launched, judged until more runs would not help, recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gpudebug.core.answers.next import RecordedVerdict
from gpudebug.core.answers.probe import ProbeSide
from gpudebug.core.errors import GitError, GpudebugError, InterventionError
from gpudebug.core.progress.claims import Claim
from gpudebug.core.records import Lengthened, Terms, Verdict
from gpudebug.core.samples.window import least_pooled
from gpudebug.core.statistics import numbers
from gpudebug.core.verdict.protocol import NextRun
from gpudebug.core.verdict.spending import beside
from gpudebug.core.words import Status
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.change_files import NoSuchPatch
from gpudebug.engine.campaign.changes import TrialChange, change_of, refuse_before_running
from gpudebug.engine.campaign.claims import LATE, forget, free, holds, new_claim, start
from gpudebug.engine.campaign.confirmation import confirmed_of
from gpudebug.engine.campaign.worktrees import WorkingTree, place_of_patch
from gpudebug.engine.run import adapters
from gpudebug.engine.run.around import surroundings_of
from gpudebug.engine.run.environment import Surroundings
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun
from gpudebug.engine.run.measure import measure, set_aside
from gpudebug.engine.run.prepare import (
    CodeChanged,
    Cycle,
    job_of,
    open_bench,
    remarks,
    stored_run,
    with_same_code,
)
from gpudebug.engine.run.smaller import redundant
from gpudebug.engine.trial import baseline, crashes
from gpudebug.engine.trial.judge import certain, evidence_of, is_fresh, judge_runs, step_after, terms_of
from gpudebug.engine.trial.lengthen import announce, first_needed, lengthened, longer, pooled, renoted
from gpudebug.engine.trial.premises import Unready, apply_change, refuse_outdated, refuse_without_figure
from gpudebug.engine.trial.result import record_result
from gpudebug.engine.trial.reuse import left_out_of, left_out_text, newest, reusable, shared
from gpudebug.engine.trial.sides import of_runs
from gpudebug.engine.trial.spending import of_trial
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
    likely: Callable[[], bool] = bool
    patched: bool = False
    crashes: list[MeasuredRun] = field(default_factory=list)
    after: list[MeasuredRun] = field(default_factory=list)
    spoilt: list[MeasuredRun] = field(default_factory=list)
    recorded: tuple[MeasuredRun, ...] = ()
    lengthened: Lengthened | None = None
    spent: float = 0.0
    spending: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and what the runs so far have changed in linked folders."""
        linked = self.place.linked
        return (*self.notes, *(linked.changed() if linked is not None else ()))

    @property
    def early_stop(self) -> bool:
        return self.cycle.loaded.config.protocol.early_stop


def run_trial(cycle: Cycle, number: int, why: str, likely: Callable[[], bool] = bool) -> RecordedVerdict:
    """Test one hypothesis and record its verdict. What can be checked is checked before the first run.

    `likely` says whether the diagnosis ranks its cause first; only a REJECTED asks it.
    Raises BaselineOutdated, before anything is launched, if the baseline knew other surroundings, and
    Unready if the change itself is in the way. CodeCrashed, once for a hypothesis, if code of the change
    crashed: it is still TESTING under the same claim.
    """
    with ExitStack() as stack:
        try:
            change = _readable_change(cycle.loaded, number)
            place = stack.enter_context(_place(cycle, number, change))
            trial = _prepare(cycle, number, change, place)
            trial.likely = likely
        except (GitError, InterventionError, NoSuchPatch) as e:
            raise Unready(e) from e
        waits = crashes.is_unanswered(
            cycle.loaded, number, trial.crashes, change.digest, written=change.written
        )
        start(cycle.loaded, number, trial.claim, change.intervention.text if change.written else None)
        try:
            if waits:
                raise crashes.CodeCrashed(number, trial.crashes[0])
            verdict = _run_until_decided(trial)
        except crashes.CodeCrashed:
            crashes.keep_claim(cycle.loaded, number, trial.claim, change.intervention)
            raise
        except GpudebugError:
            free(cycle.loaded, number, trial.claim)
            raise
        late = not record_result(cycle.loaded, number, verdict.model_dump(mode="json"))
    forget(cycle.loaded, number)
    return _answer(trial, verdict, why, late=late)


def _readable_change(loaded: Loaded, number: int) -> TrialChange:
    """What the trial changes, if it may be tested at all."""
    if number in loaded.problems:
        raise loaded.problems[number]
    change = change_of(loaded, number)
    config = loaded.config
    synonyms = adapters.locks_of(
        loaded.workspace.root, config.workload, config.locked, change.intervention.names
    )
    refuse_before_running(loaded, number, change.intervention, synonyms)
    return change


@contextmanager
def _place(cycle: Cycle, number: int, change: TrialChange) -> Iterator[WorkingTree]:
    """Where the trial runs: a worktree of its own for a patch, else where the baseline runs."""
    if change.patch is None:
        yield cycle.place
        return
    file = str(cycle.loaded.workspace.root / str(change.intervention.patch))
    with place_of_patch(cycle.loaded, number, change.patch, file) as place:
        yield place


def _prepare(cycle: Cycle, number: int, change: TrialChange, place: WorkingTree) -> _Trial:
    loaded = cycle.loaded
    workload = loaded.config.workload
    bench = open_bench(cycle, workload)
    claim = new_claim(loaded, number)
    role = f"h{number}"
    job = job_of(cycle, workload, role, role, loaded.identities["workload"], place)
    before = [stored_run(loaded.workspace, name) for name in loaded.baselines["workload"].runs]
    around = surroundings_of(bench, job)
    refuse_outdated(before, around)
    refuse_without_figure(cycle, before)
    if (room := baseline.no_room_for(loaded, [m.evidence for m in before])) is not None:
        remarks(cycle.report)(room)
    before += shared(loaded, around)
    applied, server = apply_change(loaded, number, change.intervention, job)
    variables = {k for k, v in applied.env.items() if v != job.env.get(k)}
    changed = replace(
        job,
        argv=applied.argv,
        env=applied.env,
        server=server,
        env_names=tuple(sorted({*job.env_names, *variables})),
        hypothesis=number,
        least_window=least_pooled(bench.interval),
        change=change.intervention.text,
        change_digest=change.digest,
        claim=claim.note,
        redundant=redundant(loaded, loaded.document.hypothesis(number).cause),
    )
    lines = (*job.notes, *applied.notes, *change.notes, *(place.notes if change.patch is not None else ()))
    notes = tuple(loaded.workspace.scrub(note) for note in lines)
    confirmed = confirmed_of(loaded, number, change.digest)
    terms = terms_of(loaded.config, before)
    trial = _Trial(cycle, number, claim, place, bench, changed, notes, terms, before, confirmed)
    trial.patched = change.patch is not None
    trial.crashes += crashes.earlier(loaded, number, role) if trial.patched else ()
    trial.recorded = tuple(before)
    _take_up(trial, around)
    return trial


def _take_up(trial: _Trial, around: Surroundings) -> None:
    """Runs that this very trial has measured already, before it was cut off: they are not run again."""
    loaded = trial.cycle.loaded
    ended = [
        name
        for name, record in loaded.records.items()
        if record.get("hypothesis") == trial.number and loaded.workspace.run(name).has("verdict.json")
    ]
    after = newest([*ended, *loaded.document.hypothesis(trial.number).runs])
    crashed = {m.folder.name for m in trial.crashes}
    trial.notes = (*trial.notes, *left_out_of(loaded, trial.number, after))
    found = reusable(
        loaded,
        trial.job.role,
        newer_than=after,
        surroundings=around,
        identity=loaded.identities["workload"],
        hypothesis=trial.number,
        change_digest=trial.job.change_digest,
    )
    trial.after += [m for m in found if m.folder.name not in crashed]
    made = trial.after[-1].record.lengthened if trial.after else None
    if made is not None:
        trial.after = [m for m in trial.after if m.record.lengthened == made]
        trial.lengthened, trial.before = made, shared(loaded, around, made)
        trial.notes = renoted(trial.notes, None, made)


def _run_until_decided(trial: _Trial) -> Verdict:
    step = _first_step(trial)
    _say(trial, of_trial(trial.cycle.loaded.config.protocol, trial.recorded))
    while True:
        measured = _launch(trial, step)
        trial.spent += measured.record.duration_s or 0.0
        side = trial.before if step is NextRun.BASELINE else trial.after
        side.append(measured)
        if (following := _before_judging(trial)) is not None:
            trial.bench.workspace.seal(measured.folder)
            step = following
            continue
        verdict = _judged(trial)
        if _to_be_mended(trial, verdict, measured):
            trial.bench.workspace.seal(measured.folder)
            raise crashes.CodeCrashed(trial.number, measured)
        if step is NextRun.TRIAL and (longer := _longer(trial, verdict)) is not None:
            _leave_out(trial, measured, f"too short to judge: made again with {longer.text}")
            step = _lengthen(trial, longer)
            continue
        if step is NextRun.TRIAL:
            _note_pooling(trial, verdict)
        if trial.notes and trial.notes[-1] not in verdict.notes:
            verdict = _judged(trial)
        step, made = _next_step(trial, verdict), step
        if verdict.status is Status.INVALID and step is NextRun.DONE and not trial.spoilt:
            trial.spoilt.append(side.pop())
            _leave_out(trial, measured, verdict.why)
            step = made
            continue
        if step is NextRun.DONE:
            kept = holds(trial.cycle.loaded, trial.number, trial.claim)
            measured.folder.write("verdict.json" if kept else LATE, verdict)
        trial.bench.workspace.seal(measured.folder)
        if step is NextRun.DONE:
            return verdict
        if step is NextRun.BASELINE:
            _say(trial, beside(verdict.status, sum(is_fresh(m, trial.after) for m in trial.before)))


def _leave_out(trial: _Trial, measured: MeasuredRun, why: str) -> None:
    """Seal a run that counts for nothing, and say so in the verdict's notes."""
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
    return first and holds(trial.cycle.loaded, trial.number, trial.claim)


def _longer(trial: _Trial, verdict: Verdict) -> Lengthened | None:
    """How the trial's runs have to be lengthened to be judged; None if they are not, and why in its notes."""
    found = longer(trial.cycle.loaded, verdict, trial.recorded, trial.after, trial.spent)
    if isinstance(found, str):
        if found not in trial.notes:
            trial.notes = (*trial.notes, trial.bench.workspace.scrub(found))
        return None
    return found


def _note_pooling(trial: _Trial, verdict: Verdict) -> None:
    """Say once what becomes of runs that are too short and may not be lengthened."""
    text = pooled(verdict, trial.before, trial.after)
    if text is None or any(note.partition(":")[0] == text.partition(":")[0] for note in trial.notes):
        return
    trial.notes = (*trial.notes, text)
    remarks(trial.cycle.report)(f"hypothesis {trial.number}: {text}")


def _lengthen(trial: _Trial, by: Lengthened) -> NextRun:
    """Begin the trial again with longer runs, and compare them with baseline runs of that length alone."""
    trial.notes = renoted(trial.notes, trial.lengthened, by)
    announce(trial.cycle.report, by)
    trial.lengthened, trial.after = by, []
    trial.before = shared(trial.cycle.loaded, surroundings_of(trial.bench, trial.job), by)
    return _before_judging(trial) or NextRun.TRIAL


def _before_judging(trial: _Trial) -> NextRun | None:
    if trial.lengthened is None:
        return None
    return first_needed(trial.before, trial.after, trial.cycle.loaded.config.protocol.min_window)


def _judged(trial: _Trial) -> Verdict:
    sides = trial.before, trial.after
    return judge_runs(
        trial.number, trial.terms, *sides, trial.remarks, confirmed=trial.confirmed, crashes=trial.crashes
    )


def _next_step(trial: _Trial, verdict: Verdict) -> NextRun:
    likely = verdict.status is Status.REJECTED and trial.likely()
    return step_after(verdict, trial.before, trial.after, likely=likely)


def _first_step(trial: _Trial) -> NextRun:
    """What a trial goes on with, after the runs of it that were made before it was cut off."""
    if not trial.after:
        return NextRun.TRIAL
    if (first := _before_judging(trial)) is not None:
        return first
    verdict = _judged(trial)
    step = _next_step(trial, verdict)
    if step is not NextRun.DONE:
        return step
    # Sealed runs take no verdict any more: one more run brings it.
    left = len(trial.after) < trial.cycle.loaded.config.protocol.max_runs
    return NextRun.TRIAL if left else NextRun.BASELINE


def _launch(trial: _Trial, step: NextRun) -> MeasuredRun:
    """One run of the trial, or of the baseline beside it, that is not sealed yet."""
    if step is NextRun.BASELINE:
        job = lengthened(baseline.job_beside(trial.cycle, trial.number, trial.claim.note), trial.lengthened)
        measured = launch(trial.bench, "workload", job)
    else:
        job = lengthened(trial.job, trial.lengthened)
        measured = measure(trial.bench, _watched(trial, job) if trial.early_stop else job)
    if by_the_user(measured):
        trial.bench.workspace.seal(measured.folder)
        raise interrupted(measured)
    return _of_same_code(trial, measured)


def _watched(trial: _Trial, job: PreparedRun) -> PreparedRun:
    """The trial's job, ended early if the run under way has decided it."""

    def seen(run: MeasuredRun) -> bool:
        sides = trial.before, [*trial.after, run]
        return certain(trial.number, trial.terms, *sides, trial.confirmed)

    return replace(job, certain=seen)


def _of_same_code(trial: _Trial, measured: MeasuredRun) -> MeasuredRun:
    place = trial.cycle.place if measured.record.role.startswith("baseline-") else trial.place
    try:
        return with_same_code(place, measured, trial.recorded)
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
        campaign=loaded.config.campaign,
        hypothesis=number,
        title=loaded.document.hypothesis(number).title,
        verdict=verdict["status"],
        late=False,
        why=verdict["why"],
        decided=decided,
        gates=numbers.gates(verdict["gates"]),
        figures=numbers.result_fields(verdict),
        notes=tuple(verdict["notes"]),
        probe=sides,
        files=(*(str(loaded.workspace.run(name).path) for name in runs), str(loaded.progress_path)),
    )
