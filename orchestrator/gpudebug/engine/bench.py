"""From a loaded campaign to what a run needs: its job, its device, its criteria."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core import frameworks, progress
from gpudebug.core.config import Config, Workload
from gpudebug.core.errors import ConfigError, StoreError
from gpudebug.core.models import DeviceInfo, Evidence, RunRecord
from gpudebug.core.redact import Redactor
from gpudebug.core.verdict import Criteria
from gpudebug.edges import launcher, store, templates
from gpudebug.engine.campaign import Loaded, find, load, read_progress, training_environment
from gpudebug.engine.measure import Bench, Job, Measured, Report, now, resolve_device

_RETRIES = 3


@dataclass(frozen=True)
class Cycle:
    """One command's hold on a campaign: everything read, the claim held, somebody to report to."""

    loaded: Loaded
    claim: store.Claim
    report: Report


def claim_of(workspace: store.Workspace, command: str) -> store.Claim:
    """The right to run something here, or BusyError naming who has it."""
    return workspace.claim({"pid": os.getpid(), "command": command, "since": now()})


@contextmanager
def claimed_campaign(directory: Path, report: Report, command: str) -> Iterator[Cycle]:
    """Hold the campaign's claim and read it. BusyError where another command runs something in it."""
    workspace = find(directory)
    with claim_of(workspace, command) as claim:
        loaded = load(directory)
        secrets = Redactor(training_environment(loaded.config.workload), loaded.config.workload.argv())
        loaded.workspace.scrub = secrets.redact
        yield Cycle(loaded, claim, report)


def splice(loaded: Loaded, edit: Callable[[progress.ProgressFile], bytes]) -> None:
    """Apply one edit to the progress file as it is now, under its lock; a blank one gets its head first.

    A save in between is kept.
    """
    lock = loaded.workspace.progress_lock(loaded.progress_path)
    for attempt in range(_RETRIES):
        with store.locked(lock):
            document = read_progress(loaded.progress_path)
            data = edit(_headed(loaded, document))
            if data == document.data:
                return
            before = store.digest(document.data) if loaded.progress_path.exists() else None
            try:
                store.replace_file(loaded.progress_path, data, root=loaded.workspace.root, expected=before)
            except store.SavedInBetween:
                if attempt + 1 == _RETRIES:
                    raise
            else:
                return


def _headed(loaded: Loaded, document: progress.ProgressFile) -> progress.ProgressFile:
    if document.data.strip():
        return document
    head = templates.render("progress.md.j2", campaign=loaded.config.campaign, goal=loaded.config.goal)
    return progress.with_heading(document, head)


def open_bench(cycle: Cycle, workload: Workload) -> Bench:
    """Find the device and check what can be checked before device time is spent."""
    config = cycle.loaded.config
    if config.metric != "gpu_util":
        raise ConfigError(
            f"metric {config.metric} is not measured by this version",
            file=str(cycle.loaded.workspace.config),
            next="use metric: gpu_util",
        )
    env = training_environment(workload)
    spec, infos, notes = resolve_device(config.device, env, cycle.loaded.workspace.root)
    cwd = str(cycle.loaded.workspace.root / workload.cwd)
    launcher.find_command(workload.argv(), cwd, env)
    return Bench(
        workspace=cycle.loaded.workspace,
        campaign=config.campaign,
        device=spec,
        devices=infos,
        interval=config.protocol.interval,
        warmup=config.protocol.warmup,
        patterns=config.log,
        commit=cycle.loaded.checkout.commit,
        hold_fds=(cycle.claim.fd,),
        report=cycle.report,
        notes=notes,
    )


def job_of(cycle: Cycle, workload: Workload, role: str, label: str, identity: dict[str, str]) -> Job:
    return Job(
        label=label,
        role=role,
        argv=workload.argv(),
        cwd=cycle.loaded.workspace.root / workload.cwd,
        env=training_environment(workload),
        env_names=tuple(sorted(workload.env)),
        timeout=workload.timeout,
        stall_timeout=workload.stall_timeout,
        max_output=workload.max_output,
        shell=workload.shell,
        identity=identity,
    )


def criteria_of(config: Config) -> Criteria:
    c, p = config.criteria, config.protocol
    return Criteria(
        success=float(c.success),
        failure=float(c.failure),
        loss=c.loss,
        throughput=c.throughput,
        min_window=p.min_window,
        max_runs=p.max_runs,
    )


def stored_run(workspace: store.Workspace, name: str) -> Measured:
    """A run as its folder tells it. StoreError where its records are not what gpudebug writes."""
    folder = workspace.run(name)
    record, evidence = folder.read("run.json"), folder.read("evidence.json")
    try:
        return Measured(folder, RunRecord.model_validate(record), Evidence.model_validate(evidence))
    except ValueError:
        raise StoreError(
            "its records are not what gpudebug writes",
            file=str(folder.path),
            next="move this run folder away, then gpudebug next",
        ) from None


def window_advice(argv: tuple[str, ...], measured: Measured, needed: float) -> str | None:
    """The flag and the value that would make a run's window `needed` seconds long."""
    evidence = measured.evidence
    rate = evidence.steps_per_s
    option = frameworks.steps_option(argv)
    if rate and option is not None and option.value:
        shown = evidence.window.duration_s if evidence.window else 0.0
        steps = int(option.value) + round(rate * max(needed - shown, 0) * 1.1) + 1
        return f"{option.name}={steps} in gpudebug.yaml would suffice"
    return "train for more steps a run, or lower protocol.min_window in gpudebug.yaml"


def same_devices(recorded: tuple[DeviceInfo, ...], now: tuple[DeviceInfo, ...]) -> bool:
    return [d.uuid for d in recorded] == [d.uuid for d in now] and [d.cores for d in recorded] == [
        d.cores for d in now
    ]
