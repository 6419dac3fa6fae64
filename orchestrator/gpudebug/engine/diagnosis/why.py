"""`gpudebug why`: one look at a training, and why its device waits, without a campaign."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.answers.diagnosis import RunPhases, WhyAnswer
from gpudebug.core.answers.sample import SampledRate
from gpudebug.core.command.reach import BeyondReach
from gpudebug.core.diagnosis.look_problem import LookProblem, disturbances, is_blind, problem_of
from gpudebug.core.diagnosis.model import Diagnosis
from gpudebug.core.diagnosis.ofprobe import step_parts
from gpudebug.core.diagnosis.rank import diagnose
from gpudebug.core.diagnosis.run_phases import phases_of
from gpudebug.core.errors import GpudebugError
from gpudebug.core.evidence import devices, program
from gpudebug.core.inside.stacks.lines import read_stacks
from gpudebug.core.inside.stacks.window import stacks_evidence, start_up_stacks
from gpudebug.core.records import Evidence
from gpudebug.core.statistics.across import across
from gpudebug.core.verdict.run_plan import LEAST_WINDOW_S, SOON_S, RunPlan
from gpudebug.core.words import Outcome, SignalValue
from gpudebug.edges import launcher, store
from gpudebug.engine.campaign.files import REPLAYED_NOTE, read_config
from gpudebug.engine.diagnosis.premises_of_look import note_code, with_premises
from gpudebug.engine.diagnosis.room import is_full
from gpudebug.engine.diagnosis.single import diagnosed, known_causes, single_run
from gpudebug.engine.run import catalogue
from gpudebug.engine.run.devices import devices_in, failure_in, window_in
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun, replanned
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.measure import measure
from gpudebug.engine.run.prepare import claim_of, devices_held, lone_bench
from gpudebug.engine.run.reach import OutOfReach, beyond_reach
from gpudebug.engine.run.sample import lone_job, workload_job
from gpudebug.engine.run.server import redactor_of

ROLE = "why"
FOLDER = "gpudebug-why"
COMMAND = "gpudebug why"
TO_THE_END = math.inf
"""How long a look goes on that ends with its training."""
MOST_S = 90.0
"""Nobody waits longer for an answer: a run that has not shown its steady window by then is ended too."""
POLL_S = 1.0
"""How often the files of a look are read: twice as often took 0.1 % of a core more (docs/benchmarks.md)."""
_SLACK_S = 2.0
"""Of a full window, by which its end may lie before the last look."""
_MOST = 5
_LEAST = 0.03
_LIKELY = 0.05
_LOG_END = 4096


@dataclass(frozen=True)
class LookedAt:
    """What is looked at: `job` is what gpudebug launches to see it, the training itself or a follower of one
    that runs already; its argv, cwd and variables are those of the training. `root` is the campaign's.

    `bench.workspace` is where the evidence goes; `notes` are remarks for the answer. `beyond` says that the
    training does not run below the command, `workload` that it is the campaign's.
    """

    bench: Bench
    job: PreparedRun
    root: Path | None
    notes: tuple[str, ...] = ()
    beyond: BeyondReach | None = None
    workload: bool = False


def why(
    directory: Path,
    command: Sequence[str],
    report: Report,
    *,
    most: float | None = None,
    interval: float = 0.2,
    device: str = "auto",
) -> WhyAnswer:
    """Run `command` until its steady window shows enough, at most `MOST_S`, and say why its device waits.

    Without one it is the campaign's workload. With `most` it is ended after so many seconds, with
    `TO_THE_END` by itself. The evidence is a sealed run folder: `runs/NNNN-why` in a campaign, else the first
    free `gpudebug-why-N` of `directory`. OutOfReach if the training would run on another host.
    """
    root = store.find_root(directory)
    job = lone_job(directory, command) if command else workload_job(directory, root, ROLE)
    plan = plan_for(most)
    job = replace(replanned(job, plan), label=ROLE, role=ROLE, poll=POLL_S)
    launcher.find_command(job.argv, str(job.cwd), job.env)
    beyond = beyond_reach(job.argv, job.cwd)
    if beyond is not None and not beyond.here:
        raise OutOfReach(beyond)
    if root is None:
        job = with_premises(job, directory, device, interval)
    bench = lone_bench(root or directory, device, job.env, directory, interval, report)
    bench = replace(bench, workspace=workspace_of(directory, root))
    if root is not None and not command:
        config = read_config(bench.workspace)
        bench = replace(bench, patterns=config.patterns, phase=config.phase)
        job = replanned(job, replace(plan, phase=config.phase) if plan is not None else None)
    with devices_held([bench], directory, COMMAND) as (held,), _claimed(held, root) as ready:
        return explain(LookedAt(ready, job, root, beyond=beyond, workload=not command))


def _ended_soon(plan: RunPlan | None, evidence: Evidence) -> tuple[str, ...]:
    """Return what a look that ended early cannot have seen."""
    seen = evidence.window.duration_s if evidence.window is not None else 0.0
    if plan is None or plan.soon_s is None or evidence.outcome is not Outcome.ENDED_BY_PLAN:
        return ()
    if not plan.soon_s <= seen < plan.window_s - _SLACK_S:
        return ()
    return (f"all {seen:.0f} s of steady training were alike; what begins later shows with --for 2m",)


def plan_for(most: float | None) -> RunPlan | None:
    """How long a look goes on: until its window is full, `most` seconds, or to the training's end (None)."""
    if most == TO_THE_END:
        return None
    if most is not None:
        return RunPlan(most, learns=False, most_s=most)
    return RunPlan(LEAST_WINDOW_S, learns=False, most_s=MOST_S, soon_s=SOON_S)


def workspace_of(directory: Path, root: Path | None) -> store.Workspace:
    """Return where the folder of evidence goes."""
    return store.Workspace(root) if root is not None else store.LoneFolders(directory, FOLDER)


@contextmanager
def _claimed(bench: Bench, root: Path | None) -> Iterator[Bench]:
    """The bench with the campaign's claim held, if it is one's."""
    if root is None:
        yield bench
        return
    with claim_of(bench.workspace, COMMAND) as claim:
        yield replace(bench, hold_fds=(claim.fd, *bench.hold_fds))


def explain(looked_at: LookedAt) -> WhyAnswer:
    """Look at it, seal the evidence and diagnose it."""
    bench = looked_at.bench
    measured = measure(bench, looked_at.job)
    note_code(measured, bench.workspace.root)
    bench.workspace.seal(measured.folder)
    notes = (*((REPLAYED_NOTE,) if bench.replays else ()), *bench.notes, *looked_at.notes)
    return answer_of(measured, replace(looked_at, notes=notes))


def answer_of(measured: MeasuredRun, looked_at: LookedAt) -> WhyAnswer:
    """Return what one run shows and the causes that explain it, the most probable first.

    None is named if the run shows no steady window, or of a training beyond the command.
    """
    root, beyond = looked_at.root, looked_at.beyond
    record, evidence = measured.record, measured.evidence
    facts = evidence.model_dump(mode="json")
    single = single_run(facts, record.model_dump(mode="json"), root)
    causes = catalogue.load(root)
    found = diagnose(causes.causes, single.facts, full=is_full(evidence.utilisation, [facts]))
    problem = problem_of(record, evidence, log_end(measured.folder))
    if beyond is not None:
        problem = LookProblem(f"{beyond.unseen}: {beyond.instead}")
    blind = beyond is not None or is_blind(evidence)
    shown = [] if blind else [c for c in found.causes if c.probability >= _LEAST][:_MOST]
    failure = evidence.failure
    return WhyAnswer(
        command=record.command,
        outcome=str(evidence.outcome),
        why=evidence.reason,
        exit_status=record.exit_status,
        duration_s=evidence.duration_s,
        window=window_in(evidence),
        reason=evidence.window_reason,
        devices=devices_in(evidence, record.devices),
        across=across(evidence.devices),
        throughput=SampledRate(steps_per_s=evidence.steps_per_s),
        step=step_parts(evidence),
        failure=failure_in(failure),
        problem=problem.text if problem else None,
        kind=found.kind,
        framework=single.facts.framework,
        abstains=problem.text if problem and blind else found.abstains,
        gates=known_causes(found),
        causes=tuple(diagnosed(c, single.test_of(c, causes.cause(c.id))) for c in shown),
        missing=found.missing,
        notes=(
            *(() if blind else found.no_help),
            *devices.notes(evidence),
            *(() if blind else program.notes(evidence.program)),
            *disturbances(evidence),
            *looked_at.notes,
            *_ended_soon(looked_at.job.limits.plan, evidence),
        ),
        replayed=bool(record.replayed),
        folder=str(measured.folder.path),
        next_command=_next(measured, looked_at, problem, found if not blind else Diagnosis()),
        ranks=None if blind else single.facts.ranks,
        phases=_phases(measured, looked_at, single.facts.signals),
    )


def _phases(
    measured: MeasuredRun, looked_at: LookedAt, signals: Mapping[str, SignalValue]
) -> RunPhases | None:
    """Return the phases, with what the training did before its first step and in each named one."""
    evidence, path = measured.evidence, measured.folder.path / launcher.PROBE
    first = evidence.first_step_s
    record = read_stacks(store.read_file(path).decode("utf-8", "replace")) if path.exists() else None
    if record is None or first is None:
        return phases_of(evidence, signals)
    scrub, named = redactor_of(looked_at.job).redact, {}
    for phase in evidence.phases:
        found = stacks_evidence(record, phase.window, scrub=scrub) if phase.window else None
        if found is not None and found.training is not None:
            named[phase.name] = found.training
    return phases_of(evidence, signals, start_up_stacks(record, first, scrub), named)


def log_end(folder: store.RunFolder) -> str:
    """Return the last lines of a run's log; nothing if it cannot be read."""
    try:
        return store.read_tail(folder.log, _LOG_END).decode("utf-8", "replace")
    except GpudebugError:
        return ""


def _next(measured: MeasuredRun, looked_at: LookedAt, problem: LookProblem | None, found: Diagnosis) -> str:
    shown = [] if found.abstains else [c for c in found.causes[:_MOST] if c.probability >= _LEAST]
    if problem is not None and not shown:
        if problem.for_s is None:
            # The same command would show the same.
            if measured.evidence.window is not None:
                return f"gpudebug diagnose {measured.folder.name}"
            return f"gpudebug analyze {shlex.quote(str(measured.folder.log))}"
        again = "" if looked_at.workload else f" -- {measured.record.command}"
        return f"{COMMAND} --for {problem.for_s}s{again}"
    if looked_at.root is None:
        return f"gpudebug init --from {measured.folder.name}"
    if not looked_at.workload:
        return f"gpudebug diagnose {measured.folder.name}"
    likely = [c for c in shown if c.probability >= _LIKELY]
    return f"gpudebug propose --from-catalogue {likely[0].id}" if likely else "gpudebug next"
