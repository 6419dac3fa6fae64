"""One measured run: folder, launch under the sampler, log and samples read back, evidence written."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from gpudebug import __version__
from gpudebug.core.command.synonyms import used_by
from gpudebug.core.config import expand
from gpudebug.core.errors import DeviceError, GitError, GpudebugError, LaunchError, StoreError
from gpudebug.core.evidence.build import EVIDENCE_RULE
from gpudebug.core.inside.imported_files import recorded, spoiling
from gpudebug.core.records import Counted, DeviceInfo, Evidence, PlannedEnd, RunRecord
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import LOST_TREE, OWN_CODE, Outcome, device_kind
from gpudebug.edges import devices, git, host, launcher, store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.worktrees import WorkingTree
from gpudebug.engine.run import counts, learning, nodes
from gpudebug.engine.run import server as serving
from gpudebug.engine.run.around import foreign_imports, surroundings_of
from gpudebug.engine.run.attempts import counted, ended_by_cluster, in_allocation, within_limit
from gpudebug.engine.run.environment import Surroundings, node_here, remarks_on
from gpudebug.engine.run.evidence import StartedRun, read_evidence
from gpudebug.engine.run.extras import collect
from gpudebug.engine.run.files import Files, files_of
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun
from gpudebug.engine.run.kept import GuardedFiles, Overwriting, became, guard, is_stopped, said_of
from gpudebug.engine.run.launch import launch_spec, node_order, probed
from gpudebug.engine.run.live_line import WOULD_OVERWRITE, Live, SoFar, Watch
from gpudebug.engine.run.planned import LEAST_S, ending_of


class CodeChanged(GpudebugError):
    """The checkout changed under a run."""

    code = "code"


def resolve_device(
    setting: str, env: Mapping[str, str], root: Path
) -> tuple[dict[str, object], tuple[DeviceInfo, ...], tuple[str, ...]]:
    """Specification, devices and remarks of the device that a run would use, found before it is used.

    `root` is what a relative replay folder is relative to. DeviceError says what to do next.
    """
    resolved = devices.resolve(setting, env, root)
    return dict(resolved.spec), tuple(DeviceInfo(**d) for d in resolved.devices), resolved.notes


def measure(bench: Bench, job: PreparedRun) -> MeasuredRun:
    """Run `job` once. The folder holds all evidence but the manifest when this returns.

    WouldOverwrite, and the folder is sealed, if the program was stopped before it overwrote a file.
    """
    launcher.raise_held()
    redactor = serving.redactor_of(job)
    marks = git.marks(job.code.checkout) if job.code.checkout is not None else None
    around, beside = surroundings_of(bench, job), _sharing(bench)
    folder = replace(bench.workspace.new_run(job.label), scrub=redactor.redact)
    record = _record(bench, job, folder, redactor, around)
    ours = {counts.RUN: folder.write(counts.RUN, record)}
    if folder.has(store.IGNORED):
        ours[store.IGNORED] = store.IGNORES
    if job.code.patch is not None:
        folder.keep(counts.PATCH, job.code.patch)
        ours[counts.PATCH] = job.code.patch
    for remark in (*job.notes, *remarks_on(record)):
        bench.report(Live(folder.name, 0.0, None, None, None, None, None, remark))
    try:
        ran = run_files(bench, job, replace(files_of(folder), ours=ours), folder.name, str(folder.path))
    except (DeviceError, LaunchError):
        # Nothing was started, so there is nothing to keep.
        bench.workspace.discard(folder)
        raise
    launched, evidence = ran.launched, ran.evidence
    if folder.replaced:
        folder, launched, evidence = _made_anew(bench, job, folder, launched, evidence)
    record = record.model_copy(
        update={
            "node": nodes.with_nodes(record.node, bench.others, ran.beside),
            "end": now(),
            "written": dict(ran.written),
            "duration_s": launched.duration_s,
            "outcome": launched.outcome,
            "reason": launched.reason,
            "failure": evidence.failure,
            **counts.ends(launched),
            "shared": None if beside is None else tuple(sorted({*beside, *(_sharing(bench) or ())})),
            "server": serving.recorded(job.server, redactor, launched.server),
            "overwritten": ran.files.changed or None,
            "planned": ran.planned if launched.outcome is Outcome.ENDED_BY_PLAN else None,
        }
    )
    folder.write("evidence.json", evidence)
    folder.write(counts.RUN, record)
    # A verdict is reached by what is kept: secrets are taken out of that.
    record = RunRecord.model_validate(folder.read(counts.RUN))
    evidence = Evidence.model_validate(folder.read("evidence.json"))
    if ran.files.stopped is not None:
        bench.workspace.seal(folder)
        raise ran.files.stopped
    return MeasuredRun(folder, record, evidence, job.code.patch, marks)


def _sharing(bench: Bench) -> tuple[str, ...] | None:
    """Who else measures on the CPU's cores now; None of another device."""
    own = bench.device.get("own", 0)
    if not device_kind(bench.device["kind"]).shares_cores:
        return None
    return store.sharing(bench.hold_fds, own if isinstance(own, int) else 0)


def set_aside(run: MeasuredRun, why: str) -> None:
    """Say in run.json that the run counts for nothing; before it is sealed."""
    run.folder.write("run.json", run.record.model_copy(update={"set_aside": why}))


def with_same_code(
    place: WorkingTree,
    run: MeasuredRun,
    beside: Sequence[MeasuredRun] = (),
    *,
    did_itself: Callable[[str], bool] = lambda what: False,
) -> MeasuredRun:
    """The run with what its record says of the code, once that is looked at again; before it is sealed.

    A run during which the code changed, or was written, is set aside, and CodeChanged says so: it is unknown
    which code it measured. `beside` are runs of the baseline. A run that left something else in place of its
    worktree is SAMPLER_LOST, with the reason; so is one whose training `did_itself` what the code met.
    """
    try:
        changed = place.changed()
    except (GitError, StoreError) as e:
        if place.worktree is None:
            raise
        return _without_its_tree(run, f"{LOST_TREE}: {e.message}")
    # Last: what is put back before the look at the contents has a new time in this one.
    written = recorded(git.written_since(run.marks)) if run.marks is not None else None
    fields = {"rewritten": written, "uncounted": _uncounted(place, run)}
    run = replace(run, record=run.record.model_copy(update=fields))
    run.folder.write("run.json", run.record)
    did, paths = "changed", changed
    if not changed:
        known = [m.record.rewritten for m in beside if m.record.hypothesis is None]
        paths = spoiling(written or (), known)
        did = "was written" if len(paths) == 1 else "were written"
    if paths:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        what = f"{', '.join(paths[:3])}{more} {did} while run"
        why = f"{what} {run.folder.name} was under way"
        if did_itself(what):
            return _without_its_tree(run, f"{OWN_CODE}: {why}")
        error = CodeChanged(
            f"{why}, so it does not count",
            file=str(place.top),
            next="gpudebug next; if the training writes that file itself, take it out of git",
        )
        set_aside(run, error.message)
        raise error
    return run


def _without_its_tree(run: MeasuredRun, why: str) -> MeasuredRun:
    """Return a run whose code cannot be looked at again: what it measured is unknown."""
    ended = {"outcome": Outcome.SAMPLER_LOST, "reason": why}
    record, evidence = run.record.model_copy(update=ended), run.evidence.model_copy(update=ended)
    run.folder.write("evidence.json", evidence)
    run.folder.write("run.json", record)
    return replace(run, record=record, evidence=evidence)


def _uncounted(place: WorkingTree, run: MeasuredRun) -> dict[str, str] | None:
    """Return what the run imported from its tree beyond its counted part; None if it reported no imports."""
    loaded = run.evidence.loaded
    if run.marks is None or loaded is None or Path(loaded.tree) != place.top.resolve():
        return None
    return git.uncounted(run.marks, loaded.files)


def _made_anew(
    bench: Bench, job: PreparedRun, folder: store.RunFolder, launched: launcher.Launched, evidence: Evidence
) -> tuple[store.RunFolder, launcher.Launched, Evidence]:
    """A run whose folder was replaced while it was under way: all that was measured went with the folder."""
    anew, aside = bench.workspace.made_anew(folder)
    became = f"; what took its place is runs/{aside.name} now" if aside else ""
    launched = counts.ending(launched, {f"runs/{folder.name}": f"the folder was moved or removed{became}"})
    blank = Evidence(
        run=evidence.run,
        role=evidence.role,
        outcome=launched.outcome,
        reason=launched.reason,
        duration_s=launched.duration_s,
    )
    if job.code.patch is not None:
        anew.keep(counts.PATCH, job.code.patch)
    return anew, launched, blank


@dataclass(frozen=True)
class Ran:
    """What came of a launch, what was counted of the files that it could write, where gpudebug ended it, the
    samplers of its other nodes, and what it did to files of the user."""

    launched: launcher.Launched
    evidence: Evidence
    written: Mapping[str, Counted]
    planned: PlannedEnd | None = None
    beside: nodes.NodeSamplers | None = None
    files: Overwriting = field(default_factory=Overwriting)


def run_files(bench: Bench, job: PreparedRun, files: Files, name: str, marker: str) -> Ran:
    """Launch `job` with its output and samples going to `files`; what came of it.

    A file that the job altered is not read.
    """
    assert files.job is not None
    run_dir = files.job if files.folder is not None else files.samples.parent
    argv = expand(job.argv, run=name, run_dir=str(run_dir))
    redactor = serving.redactor_of(job)

    asked = StartedRun(
        name=name,
        role=job.role,
        argv=redactor.redact_argv(argv),
        patterns=bench.patterns,
        warmup_s=bench.warmup,
        devices=bench.devices,
        probed=probed(job),
        cpu_quota=host.cpu_quota(),
        synonyms=job.synonyms,
        least_window_s=job.limits.least_window,
        phase=bench.phase,
    )
    follow = LogReader(dict(bench.patterns), perf_counter)

    def so_far(elapsed: float) -> Evidence:
        shorter = replace(asked, least_window_s=LEAST_S)
        return read_evidence(
            files.underway(), shorter, SoFar(elapsed), redactor=redactor, followed=follow.summary()
        )

    # A recording that is played back has its own end.
    plan = None if bench.replays else job.limits.plan
    ending = ending_of(plan, so_far, argv)
    watch = Watch(files, name, follow, bench.report, job.limits.stall, ending, lambda: is_stopped(files))
    files = replace(files, served=job.server is not None)
    if bench.others is not None and job.attached is None:
        files = replace(files, nodes=tuple(bench.others.devices))
    # What a job that runs already has written lies where it was told to, and stays there.
    ours = job.attached is None
    guarded = guard(bench, job, files, argv)
    keep = guarded.variable if guarded is not None else None
    spec = launch_spec(bench, job, files, argv, marker, name, str(run_dir), keep=keep)
    before = learning.standing(files.folder, argv, job.cwd) if files.folder is not None and ours else {}
    with nodes.sampled_beside(bench.others, files, node_order(bench, marker)) as beside:
        launched = launcher.launch(spec, beside.seeing(watch.observe), job.poll)
        beside.end(launched.duration_s, hurried=launched.outcome is Outcome.INTERRUPTED)
    launched = within_limit(in_allocation(launched, node_here()), argv)
    overwriting, launched = _overwriting(bench, guarded, files, name, launched)
    found = counts.compare(files, launched, beside.counted)
    launched = counts.unread(counts.ending(launched, found.altered), files.samples)
    beside.lose(found.short)
    notes = (launched.sampler or {}).get("notes") or {}
    if files.reports is not None and not files.lost:
        counts.tidy(files, found.altered, found.written)
        counts.take_over(files.reports, found.altered)
        if files.folder is not None:
            store.copy_into(files.notes, json.dumps(notes, indent=1).encode() + b"\n")
        if files.folder is not None and ours:
            collect(files.folder, argv, job.cwd, redactor)
            learning.collect(files.folder, argv, job.cwd, redactor, before, notes.get("written") or ())
    read_from = files.without({*found.altered, *found.short})
    if files.lost:
        read_from = replace(read_from, reports=None)
    planned = ending.end if ending and launched.outcome is Outcome.ENDED_BY_PLAN else None
    unsampled = {**(bench.others.unsampled if bench.others is not None else {}), **beside.unsampled}

    def evidence_of(ended: launcher.Launched) -> Evidence:
        return read_evidence(
            read_from, asked, ended, redactor=redactor, notes=notes, planned=planned, unsampled=unsampled
        )

    evidence = evidence_of(launched)
    crashed = launched.outcome is Outcome.CRASHED
    tried = counted(node_here(), bench.workspace, job) if crashed else None
    if tried is not None:
        launched = ended_by_cluster(launched, evidence, files.log, beside.silent, tried.attempt or 1)
        if launched.outcome is not Outcome.CRASHED:
            evidence = evidence_of(launched)
    return Ran(launched, evidence, found.written, planned, beside, overwriting)


def _overwriting(
    bench: Bench, guarded: GuardedFiles | None, files: Files, name: str, launched: launcher.Launched
) -> tuple[Overwriting, launcher.Launched]:
    """Return what a run did to files of the user, and how it ended by that. One that had shown all it was
    meant to show, and would have saved as it was ended, is none that was stopped."""
    found = became(bench, guarded, files)
    if found.changed:
        bench.report(Live(name, launched.duration_s, None, None, None, None, None, said_of(found.changed)))
    if found.stopped is None or launched.outcome is Outcome.ENDED_BY_PLAN:
        return replace(found, stopped=None), launched
    return found, replace(launched, outcome=Outcome.INTERRUPTED, reason=WOULD_OVERWRITE)


def _record(
    bench: Bench, job: PreparedRun, folder: store.RunFolder, redactor: Redactor, around: Surroundings
) -> RunRecord:
    argv = redactor.redact_argv(expand(job.argv, run=folder.name, run_dir=str(folder.job)))
    return RunRecord(
        gpudebug=__version__,
        evidence_rule=EVIDENCE_RULE,
        name=folder.name,
        campaign=bench.campaign,
        role=job.role,
        hypothesis=job.change.hypothesis,
        command=argv[-1] if job.shell else shlex.join(argv),
        argv=tuple(argv),
        shell=job.shell,
        cwd=str(job.cwd),
        environment=job.env_names,
        commit=job.code.commit,
        change=job.change.text,
        change_digest=job.change.digest,
        session=bench.session,
        claim=job.change.claim,
        redundant=job.change.redundant,
        replayed=bench.replays,
        settings=bench.settings,
        synonyms=used_by(job.argv, job.synonyms),
        least_window_s=job.limits.least_window,
        identity=dict(job.code.identity),
        interpreter=around.interpreter,
        packages=dict(around.packages),
        imports=foreign_imports(bench, job),
        checked_out=job.code.checkout.tree if job.code.checkout is not None else None,
        probed=probed(job),
        knobs=None if around.knobs is None else dict(around.knobs),
        variables=None if around.variables is None else dict(around.variables),
        host=around.host,
        node=counted(around.node, bench.workspace, job),
        boot=around.boot,
        cpu_quota=around.cpu_quota,
        devices=around.devices,
        interval_s=bench.interval,
        warmup_s=bench.warmup,
        patterns=dict(bench.patterns),
        start=now(),
        attached=job.attached.pid if job.attached is not None else None,
        paired=job.paired,
        phase=bench.phase,
    )
