"""`gpudebug sample`: any command under the sampler, no campaign needed."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.sample import (
    SampleAnswer,
    SampledRate,
)
from gpudebug.core.errors import UsageError
from gpudebug.core.evidence import devices, program
from gpudebug.core.inside.torch_profile import TorchProfile, remarks
from gpudebug.core.records import Evidence
from gpudebug.core.redaction.records import scrubbed_record
from gpudebug.core.samples.row import parse_row
from gpudebug.core.statistics.across import across
from gpudebug.core.words import Outcome
from gpudebug.edges import host, launcher, store, temporary
from gpudebug.engine.campaign import settings
from gpudebug.engine.campaign.files import REPLAYED_NOTE, training_environment
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import elsewhere, refuse
from gpudebug.engine.campaign.session import NotAPerson, session_of
from gpudebug.engine.run import outputs, server
from gpudebug.engine.run.devices import devices_in, failure_in, latency_in, window_in
from gpudebug.engine.run.environment import knobs_in
from gpudebug.engine.run.files import Files, files_of
from gpudebug.engine.run.job import Bench, PreparedRun, RunLimits
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.measure import measure, run_files
from gpudebug.engine.run.prepare import claim_of, devices_held, lone_bench
from gpudebug.engine.run.server import prepared
from gpudebug.engine.run.traces import keep_beside, located

TIMED_OUT = 124
OWN_FAILURE = 125
_METHODS = "GPUDEBUG_PROFILE_METHODS"
_LINE = 100
_TAIL = 1 << 16
_VERBS = {"sample": "sample", "why": "look at"}


def sample(
    directory: Path,
    command: Sequence[str],
    report: Report,
    *,
    output: Path | None = None,
    interval: float = 0.2,
    device: str = "auto",
    timeout: float | None = None,
    torch_profile: TorchProfile | None = None,
    methods: Sequence[str] = (),
    force: bool = False,
) -> SampleAnswer:
    """Run `command` once and summarise its devices; without one, the campaign's workload as it is.

    Without `output`, a run folder in a campaign is used; `force` replaces an `output` that gpudebug did not
    write. What PyTorch's profiler records goes there too, or beside `output` as `F.trace.json.gz`; what else
    was seen is kept for `diagnose` and `analyze` of `output`. `methods` are the classes, `MODULE:CLASS`, of
    which each method is timed. Refuses a session whose workload is none that was recorded.
    """
    root = store.find_root(directory)
    job = lone_job(directory, command) if command else workload_job(directory, root)
    limits = replace(job.limits, timeout=timeout or job.limits.timeout)
    job = replace(job, limits=limits, torch_profile=torch_profile, env={**job.env, **_timed(methods)})
    launcher.find_command(job.argv, str(job.cwd), job.env)
    bench = lone_bench(root or directory, device, job.env, directory, interval, report)
    with devices_held([bench], directory, "gpudebug sample") as (bench,):
        if output is None and root is not None:
            return _in_campaign(bench, job)
        files = _files(directory, output, served=job.server is not None, force=force)
        launched, evidence, lost = _beside(bench, job, files)
    _keep_seen(files.samples, evidence, bench, job)
    remarks = [*lost, *_remarks(job, evidence)]
    return _answer(evidence, launched.exit_status, launched.signal, files, bench, remarks)


def _keep_seen(samples: Path, evidence: Evidence, bench: Bench, job: PreparedRun) -> None:
    """Keep what was seen of a run of which only samples and log have files."""
    redactor = server.redactor_of(job)
    record = {
        "argv": list(redactor.redact_argv(job.argv)),
        "cwd": str(job.cwd),
        "knobs": knobs_in(job.env),
        "cpu_quota": host.cpu_quota(),
        "devices": [d.model_dump(mode="json") for d in bench.devices],
        "replayed": bench.replays,
    }
    document = {"evidence": evidence.model_dump(mode="json"), "record": record}
    store.put_seen(samples, {k: scrubbed_record(v, redactor.redact) for k, v in document.items()})


def _timed(methods: Sequence[str]) -> dict[str, str]:
    """Return the variable by which the profiling library times the methods of these classes."""
    for name in methods:
        if not all(map(str.isidentifier, name.replace(":", ".", 1).split("."))):
            raise UsageError(
                f"--methods: {name[:_LINE]!r} is no MODULE:CLASS",
                next="e.g. --methods policies.act:ACTPolicy",
            )
    return {_METHODS: ",".join(methods)} if methods else {}


def lone_job(directory: Path, command: Sequence[str]) -> PreparedRun:
    """One run of `command` in `directory`, with the caller's variables."""
    return PreparedRun(
        label="sample",
        role="sample",
        argv=tuple(command),
        cwd=directory,
        env=dict(os.environ),
    )


def workload_job(directory: Path, root: Path | None, doing: str = "sample") -> PreparedRun:
    """The workload of gpudebug.yaml with what was accepted; for a session, as its baseline was recorded.

    `doing` is the command that looks at it. UsageError without a campaign.
    """
    if root is None:
        raise UsageError(f"no command to {_VERBS[doing]}", next=f"gpudebug {doing} -- python train.py")
    session = session_of()
    loaded = load(directory, session)
    cluster = elsewhere(loaded.setup.workspace, loaded.setup.config)
    if cluster is not None:
        refuse(cluster.title, f"gpudebug {doing}", loaded.setup.workspace)
    if session is not None:
        settings.admit(loaded.setup, loaded.history.records)
    if session is not None and (why := loaded.history.baselines["workload"].why) is not None:
        raise NotAPerson(
            f"session {session} samples the workload as its baseline was recorded: {why}",
            next="gpudebug next",
        )
    workload = loaded.setup.config.workload
    return replace(
        lone_job(root / workload.cwd, workload.argv()),
        env=training_environment(workload),
        env_names=tuple(sorted(workload.env)),
        server=prepared(workload.server, root),
        limits=RunLimits(workload.timeout, output=workload.max_output),
        shell=workload.shell,
    )


def _beside(bench: Bench, job: PreparedRun, files: Files) -> tuple[launcher.Launched, Evidence, list[str]]:
    """Run `job` outside a campaign, and remarks; the folder in which its processes report is
    removed."""
    # A trace may be too large for the system's temporary folder.
    where = files.samples.parent if job.torch_profile else None
    with temporary.workplace(".gpudebug-run-", where) as made:
        job_folder, records = made.path / "job", made.path / "records"
        for folder in (job_folder, records):
            os.mkdir(folder.name, 0o700, dir_fd=made.fd)
        files = replace(files, reports=made.path, job=job_folder, records=records, made=made.identity)
        ran = run_files(bench, job, files, files.samples.stem, str(files.samples))
        moved = (
            [f"{made.path} was moved away: what the training reported there is unknown"] if files.lost else []
        )
        if ran.files.stopped is not None:
            raise ran.files.stopped
        return ran.launched, keep_beside(ran.evidence, made.fd, files.samples), moved


def _remarks(job: PreparedRun, evidence: Evidence) -> list[str]:
    found = remarks(evidence.trace, trained=evidence.probe is not None) if job.torch_profile else []
    if job.env.get(_METHODS) and evidence.sections is None:
        found += [
            f"no method of {job.env[_METHODS]} was timed: does the program import that module and class?"
        ]
    return found


def _in_campaign(bench: Bench, job: PreparedRun) -> SampleAnswer:
    with claim_of(bench.workspace, "gpudebug sample") as claim:
        bench = replace(bench, hold_fds=(claim.fd, *bench.hold_fds))
        measured = measure(bench, job)
        bench.workspace.seal(measured.folder)
    folder, record = measured.folder, measured.record
    remarks = _remarks(job, measured.evidence)
    return _answer(measured.evidence, record.exit_status, record.signal, files_of(folder), bench, remarks)


def _files(directory: Path, output: Path | None, *, served: bool, force: bool) -> Files:
    """`F.csv` and `F.log` beside it; without a name, the first free `sample-N` of the folder. With `served`
    also `F.server.log`.

    StoreError if one of them is there and not of a run before.
    """
    free = (p for n in itertools.count(1) if not _taken(p := directory / f"sample-{n}.csv"))
    output = next(free) if output is None else directory / output
    if not output.name or output.suffix == ".log":
        raise UsageError(f"-o {output}: the log goes there", next="name the samples F.csv")
    if output.parent != directory:
        store.make_folder(output.parent)
    log = output.with_suffix(".log")
    size = _log_size(output)
    outputs.refuse(output, outputs.is_samples, force=force)
    outputs.refuse(log, lambda head, tail: log.stat().st_size == size, force=force)
    files = Files(output, log, output.with_suffix(".sampler.json"))
    if served:
        outputs.refuse(files.server_log, lambda head, tail: size is not None, force=force)
    for path in (output, log, *([files.server_log] if served else [])):
        store.start_file(path)
    return files


def _log_size(samples: Path) -> int | None:
    """Return how long the log of a run before was, by the last of its samples; None if they do not say."""
    if not samples.is_file():
        return None
    lines = store.read_tail(samples, _TAIL).decode("utf-8", "replace").splitlines()
    row = parse_row(lines[-1]) if lines else None
    return row.log_bytes if row else None


def _taken(output: Path) -> bool:
    return os.path.lexists(output) or os.path.lexists(output.with_suffix(".log"))


def _answer(
    evidence: Evidence,
    exit_status: int | None,
    signal_: int | None,
    files: Files,
    bench: Bench,
    remarks: Sequence[str],
) -> SampleAnswer:
    document = evidence.model_dump(mode="json", include={"loss", "probe", "sections", "stacks"})
    failure = evidence.failure
    return SampleAnswer(
        outcome=str(evidence.outcome),
        why=evidence.reason,
        exit_status=shell_status(evidence.outcome, exit_status, signal_),
        window=window_in(evidence),
        reason=evidence.window_reason,
        devices=devices_in(evidence, bench.devices),
        throughput=SampledRate(steps_per_s=evidence.steps_per_s),
        latency=latency_in(evidence.latency),
        **document,
        failure=failure_in(failure),
        probe_reason=evidence.probe_reason,
        trace=located(evidence.trace, files.samples.parent),
        missing=evidence.missing,
        notes=((REPLAYED_NOTE,) if bench.replays else ())
        + (*bench.notes, *devices.notes(evidence), *program.notes(evidence.program), *remarks),
        csv=str(files.samples),
        log=str(files.log),
        replayed=bench.replays,
        across=across(evidence.devices),
        joules_per_step=evidence.joules_per_step,
    )


def shell_status(outcome: Outcome, exit_status: int | None, signal_: int | None) -> int:
    """Return the status that `timeout` and `env` would give: the command's own, 124, or 128 + signal."""
    if outcome is Outcome.TIMED_OUT:
        return TIMED_OUT
    if outcome is Outcome.INTERRUPTED:
        return 128 + signal.SIGINT
    if exit_status is not None:
        return exit_status
    return 128 + signal_ if signal_ else OWN_FAILURE
