"""One run of the unmodified workload under PyTorch's profiler: for its trace alone, never for a verdict."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug.core.answers.next import RecordedProfile
from gpudebug.core.errors import ConfigError, GpudebugError, UsageError
from gpudebug.core.inside.torch_profile import OPTION, TorchProfile, remarks
from gpudebug.engine.campaign.files import workload_of
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign, job_of, open_bench
from gpudebug.engine.run.traces import PREFIX, located
from gpudebug.engine.trial import recover
from gpudebug.engine.trial.unmodified import run_once

COMMAND = f"gpudebug baseline {OPTION}"


class NoTrace(GpudebugError):
    """The run completed, and PyTorch's profiler recorded nothing in it."""

    code = "trace"


def record_profile(
    directory: Path, role: str, spec: TorchProfile, report: Report, session: str | None = None
) -> RecordedProfile:
    """Run the `role`'s command once, where its baseline runs, with PyTorch's profiler in it.

    The run has a role of its own: no baseline, trial or noise figure takes it in, and its device time counts.
    Raises NoTrace if nothing was recorded, UsageError without such a command, ConfigError with
    `probe: false`, and what recording a baseline raises.
    """
    with claimed_campaign(directory, report, COMMAND, session) as claimed:
        cycle = recover.recovered(claimed)
        measured = _run(cycle, role, spec)
    trace = located(measured.evidence.trace, measured.folder.path)
    if trace is None:
        evidence = measured.evidence
        why = remarks(evidence.trace, trained=evidence.probe is not None)
        raise NoTrace(
            f"run {measured.folder.name} completed and has {'; '.join(why)}",
            file=str(measured.folder.log),
            next="train for more iterations, or name fewer",
        )
    return _answer(cycle, measured, trace)


def _run(cycle: Cycle, role: str, spec: TorchProfile) -> MeasuredRun:
    config, file = cycle.setup.config, str(cycle.setup.workspace.config)
    workload = workload_of(config, role)
    if workload is None:
        raise UsageError(
            f"this campaign has no {role}", file=file, next="name workload, or add `reference:` to it"
        )
    if not config.probe:
        raise ConfigError(
            f"probe is false: {OPTION} would have to put the profiler into the training",
            file=file,
            next="set probe: true",
        )
    name = PREFIX + role
    job = job_of(cycle, workload, name, name, cycle.loaded.history.identities[role])
    bench = open_bench(cycle, workload)
    return run_once(cycle.place, bench, role, replace(job, torch_profile=spec))


def _answer(cycle: Cycle, measured: MeasuredRun, trace: dict[str, Any]) -> RecordedProfile:
    folder = measured.folder
    return RecordedProfile(
        campaign=cycle.setup.config.campaign,
        role=measured.record.role,
        run=folder.name,
        trace=trace,
        notes=tuple(remarks(trace)),
        why=f"asked for by `{COMMAND}`",
        next_command=f"gpudebug analyze {shlex.quote(trace['path'])}",
        files=(trace["path"], str(folder.path)),
    )
