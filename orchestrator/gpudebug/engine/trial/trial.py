"""All runs of one trial: change applied, launched, judged until more runs would not help, recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gpudebug.core import progress
from gpudebug.core.answers.next import RecordedVerdict
from gpudebug.core.answers.probe import ProbeSide
from gpudebug.core.change.intervention import Applied, Intervention
from gpudebug.core.errors import (
    GitError,
    GpudebugError,
    InterruptedRun,
    InterventionError,
    ProgressError,
)
from gpudebug.core.progress.claims import Claim
from gpudebug.core.records import Terms, Verdict
from gpudebug.core.statistics import numbers
from gpudebug.core.verdict.protocol import NextRun
from gpudebug.core.words import Status
from gpudebug.edges import store, templates
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.change_files import NoSuchPatch, tested_change
from gpudebug.engine.campaign.changes import TrialChange, change_of, refuse_before_running
from gpudebug.engine.campaign.claims import LATE, forget, free, holds, new_claim, start, under
from gpudebug.engine.campaign.confirmation import confirmed_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.campaign.worktrees import WorkingTree, place_of_patch
from gpudebug.engine.run.environment import Surroundings, differences, recorded
from gpudebug.engine.run.measure import Bench, MeasuredRun, PreparedRun, measure, set_aside, surroundings_of
from gpudebug.engine.run.prepare import CodeChanged, Cycle, job_of, open_bench, stored_run, with_same_code
from gpudebug.engine.trial import baseline
from gpudebug.engine.trial.judge import certain, evidence_of, judge_runs, step_after, terms_of
from gpudebug.engine.trial.reuse import newest, reusable, shared
from gpudebug.engine.trial.sides import of_runs


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
    after: list[MeasuredRun] = field(default_factory=list)
    spoilt: list[MeasuredRun] = field(default_factory=list)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and what the runs so far have changed in linked folders."""
        linked = self.place.linked
        return (*self.notes, *(linked.changed() if linked is not None else ()))

    @property
    def early_stop(self) -> bool:
        return self.cycle.loaded.config.protocol.early_stop


class Unready(Exception):
    """A trial that cannot begin with its hypothesis as it is; `error` says why."""

    def __init__(self, error: GpudebugError) -> None:
        super().__init__(str(error))
        self.error = error


class BaselineOutdated(GpudebugError):
    """The surroundings are no longer the baseline's: it has to be recorded again before a trial counts."""

    code = "baseline"


def run_trial(cycle: Cycle, number: int, why: str) -> RecordedVerdict:
    """Test one hypothesis and record its verdict. What can be checked is checked before the first run.

    Raises BaselineOutdated, before anything is launched, if the baseline knew other surroundings, and
    Unready if the change itself is in the way.
    """
    with ExitStack() as stack:
        try:
            change = _readable_change(cycle.loaded, number)
            place = stack.enter_context(_place(cycle, number, change))
            trial = _prepare(cycle, number, change, place)
        except (GitError, InterventionError, NoSuchPatch) as e:
            raise Unready(e) from e
        start(cycle.loaded, number, trial.claim, change.intervention.text if change.written else None)
        try:
            verdict = _run_until_decided(trial)
        except GpudebugError:
            free(cycle.loaded, number, trial.claim)
            raise
        late = not record_result(cycle, number, verdict.model_dump(mode="json"))
    forget(cycle.loaded, number)
    return _answer(trial, verdict, why, late=late)


def _readable_change(loaded: Loaded, number: int) -> TrialChange:
    """What the trial changes, if it may be tested at all."""
    if number in loaded.problems:
        raise loaded.problems[number]
    change = change_of(loaded, number)
    refuse_before_running(loaded, number, change.intervention)
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
    intervention = change.intervention
    workload = loaded.config.workload
    bench = open_bench(cycle, workload)
    claim = new_claim(loaded, number)
    role = f"h{number}"
    job = job_of(cycle, workload, role, role, loaded.identities["workload"], place)
    before = [stored_run(loaded.workspace, name) for name in loaded.baselines["workload"].runs]
    around = surroundings_of(bench, job)
    _refuse_outdated(before, around)
    _refuse_without_figure(cycle, before)
    before += shared(loaded, around)
    applied = _applied(loaded, number, intervention, job)
    variables = {k for k, v in applied.env.items() if v != job.env.get(k)}
    changed = replace(
        job,
        argv=applied.argv,
        env=applied.env,
        env_names=tuple(sorted({*job.env_names, *variables})),
        hypothesis=number,
        change=intervention.text,
        change_digest=change.digest,
        claim=claim.note,
    )
    lines = (*job.notes, *applied.notes, *change.notes, *(place.notes if change.patch is not None else ()))
    notes = tuple(loaded.workspace.scrub(note) for note in lines)
    confirmed = confirmed_of(loaded, number, change.digest)
    terms = terms_of(loaded.config)
    trial = _Trial(cycle, number, claim, place, bench, changed, notes, terms, before, confirmed)
    _take_up(trial, around)
    return trial


def _refuse_outdated(before: list[MeasuredRun], around: Surroundings) -> None:
    outdated = list(dict.fromkeys(d for m in before for d in differences(recorded(m.record), around)))
    if any(not m.record.devices for m in before) and any(d.kind == "cpu" for d in around.devices):
        outdated.append("an imported run's device and the CPU used here")
    if outdated:
        raise BaselineOutdated(f"recorded elsewhere: {'; '.join(outdated)}", next="gpudebug baseline")


def _refuse_without_figure(cycle: Cycle, before: list[MeasuredRun]) -> None:
    """A trial has nothing to be compared with if no run of the baseline has the campaign's metric."""
    metric = cycle.loaded.metric
    if any(metric.value(m.evidence) is not None for m in before):
        return
    lines = baseline.advice(cycle.loaded, "workload", before)
    raise baseline.BaselineFailed(
        f"the baseline has no figure to compare with: {baseline.metric_text(metric, evidence_of(before))}",
        file=str(cycle.loaded.progress_path),
        next="; ".join([*lines, "then gpudebug baseline"]),
    )


def _take_up(trial: _Trial, around: Surroundings) -> None:
    """Runs that this very trial has measured already, before it was cut off: they are not run again."""
    loaded = trial.cycle.loaded
    ended = [
        name
        for name, record in loaded.records.items()
        if record.get("hypothesis") == trial.number and loaded.workspace.run(name).has("verdict.json")
    ]
    after = newest([*ended, *loaded.document.hypothesis(trial.number).runs])
    trial.after += reusable(
        loaded,
        trial.job.role,
        newer_than=after,
        surroundings=around,
        identity=loaded.identities["workload"],
        hypothesis=trial.number,
        change_digest=trial.job.change_digest,
    )


def _applied(loaded: Loaded, number: int, intervention: Intervention, job: PreparedRun) -> Applied:
    """The change applied to the command; a change that cannot be is refused with its place in the file."""
    try:
        return intervention.apply(job.argv, dict(job.env), loaded.config.allowed)
    except InterventionError as e:
        line = loaded.document.hypothesis(number).line
        raise InterventionError(
            f"hypothesis {number}: {e.message}", file=str(loaded.progress_path), line=line, next=e.next
        ) from None


def _run_until_decided(trial: _Trial) -> Verdict:
    step = _first_step(trial)
    while True:
        measured = _launch(trial, step)
        side = trial.before if step is NextRun.BASELINE else trial.after
        side.append(measured)
        verdict = _judged(trial)
        if verdict.status is Status.INVALID and not trial.spoilt:
            trial.spoilt.append(side.pop())
            set_aside(measured, verdict.why)
            trial.bench.workspace.seal(measured.folder)
            continue
        step = step_after(verdict, trial.before, trial.after)
        if step is NextRun.DONE:
            kept = holds(trial.cycle.loaded, trial.number, trial.claim)
            measured.folder.write("verdict.json" if kept else LATE, verdict)
        trial.bench.workspace.seal(measured.folder)
        if step is NextRun.DONE:
            return verdict


def _judged(trial: _Trial) -> Verdict:
    sides = trial.before, trial.after
    return judge_runs(trial.number, trial.terms, *sides, trial.remarks, confirmed=trial.confirmed)


def _first_step(trial: _Trial) -> NextRun:
    """What a trial goes on with, after the runs of it that were made before it was cut off."""
    if not trial.after:
        return NextRun.TRIAL
    verdict = _judged(trial)
    step = step_after(verdict, trial.before, trial.after)
    if step is not NextRun.DONE:
        return step
    # Sealed runs take no verdict any more: one more run brings it.
    left = len(trial.after) < trial.cycle.loaded.config.protocol.max_runs
    return NextRun.TRIAL if left else NextRun.BASELINE


def _launch(trial: _Trial, step: NextRun) -> MeasuredRun:
    """One run of the trial, or of the baseline beside it, that is not sealed yet."""
    if step is NextRun.BASELINE:
        measured = baseline.launch(trial.cycle, trial.bench, "workload", trial.number, claim=trial.claim.note)
    else:
        measured = measure(trial.bench, _watched(trial) if trial.early_stop else trial.job)
    if baseline.by_the_user(measured):
        trial.bench.workspace.seal(measured.folder)
        raise InterruptedRun(f"run {measured.folder.name} was interrupted", next="gpudebug next")
    return _of_same_code(trial, measured)


def _watched(trial: _Trial) -> PreparedRun:
    """The trial's job, ended early if the run under way has decided it."""

    def seen(run: MeasuredRun) -> bool:
        sides = trial.before, [*trial.after, run]
        return certain(trial.number, trial.terms, *sides, trial.confirmed)

    return replace(trial.job, certain=seen)


def _of_same_code(trial: _Trial, measured: MeasuredRun) -> MeasuredRun:
    place = trial.cycle.place if measured.record.role.startswith("baseline-") else trial.place
    try:
        return with_same_code(place, measured, trial.before)
    except CodeChanged:
        trial.bench.workspace.seal(measured.folder)
        raise


def record_result(cycle: Cycle, number: int, verdict: Mapping[str, Any]) -> bool:
    """Splice a verdict into the progress file. A run that is there already changes nothing.

    False if it comes too late: the hypothesis is under another claim by now, or under none. Raises
    ProgressError if the entry's change is no longer the one that was tested.
    """
    runs = runs_of(verdict)
    block = result_block(verdict, runs, cycle.loaded.workspace.scrub)
    status = Status(verdict["status"])
    kept: list[bool] = []

    def edit(document: progress.ProgressFile) -> bytes:
        listed = set(runs) <= set(document.hypothesis(number).runs)
        kept[:] = [listed or under(document, number, verdict.get("claim"))]
        if not kept[0]:
            return document.data
        _refuse_other_change(cycle.loaded.workspace, document, number, verdict["change_digest"], runs)
        return progress.set_result(document, number, status, block)

    splice(cycle.loaded, edit)
    return kept[0]


def runs_of(verdict: Mapping[str, Any]) -> list[str]:
    """The runs that were made for a verdict, in their order; the last one holds it."""
    made = (r["name"] for r in verdict["runs"] if r["part"] == "trial" or r["fresh"])
    return sorted(made, key=store.run_number)


def result_block(verdict: Mapping[str, Any], runs: Sequence[str], scrub: store.Scrub) -> str:
    """The lines of a Result as they are spliced into the progress file."""
    texts = {**numbers.result_fields(verdict), "notes": numbers.result_notes(verdict)}
    fields = {
        key.replace(" ", "_"): progress.harmless(scrub(text), limit=numbers.LONGEST)
        for key, text in texts.items()
    }
    return templates.render("result.md.j2", **fields, runs=runs)


def _refuse_other_change(
    workspace: store.Workspace,
    document: progress.ProgressFile,
    number: int,
    tested: str | None,
    runs: list[str],
) -> None:
    """A verdict belongs to the change that was tested, not to whatever has its number now."""
    entry = document.hypothesis(number)
    if tested_change(workspace, entry.intervention) != tested:
        raise ProgressError(
            f"hypothesis {number} has another change now than the one that {runs[-1]} tested; "
            "its result is not entered",
            file=document.file,
            line=entry.line,
            next="gpudebug next tests the new change; put the old one back to keep the result",
        )


def _answer(trial: _Trial, verdict: Verdict, decided: str, *, late: bool) -> RecordedVerdict:
    sides = of_runs("baseline", evidence_of(trial.before)), of_runs("trial", evidence_of(trial.after))
    runs = [m.folder.name for m in trial.after]
    loaded, data = trial.cycle.loaded, verdict.model_dump(mode="json")
    answer = answer_of(loaded, trial.number, data, decided, runs, sides)
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
