"""What a run was, how it ended and what was read of it: what its evidence is built from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpudebug.core.command.program import RunProcess
from gpudebug.core.inside import probe, stacks
from gpudebug.core.records import AttachedEvidence, DeviceInfo, Failure, LearningSeries, LoadedFiles
from gpudebug.core.samples.table import SampleTable
from gpudebug.core.trainlog.overrides import Settings
from gpudebug.core.words import Outcome

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogSummary


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    """What a run was and how it ended. None is not known.

    `planned_s` is when gpudebug ended it by its plan, `devices` are those that it was sampled on, `missing`
    says by a figure's name why it could not be read, `least_window_s` how short its window may be if not
    `MIN_RUN_WINDOW_S`, `batch_flags` are the command's flags that set its batch, `step_flags` others that set
    what a step takes, `environment_plans` how many steps of the environment it plans, `cpu_quota` is how many
    cores it was given. `over` is as `find_window` has it. `unsampled` says why a node was
    not sampled. `phase` is the one whose steady part is the window, None for that of the whole run, and
    `declared` are the phases that gpudebug.yaml names, with the expression of the line that begins each.
    """

    name: str
    role: str
    outcome: Outcome
    exit_status: int | None = None
    signal: int | None = None
    failure: Failure | None = None
    reason: str | None = None
    duration_s: float | None = None
    planned_s: float | None = None
    least_window_s: float | None = None
    devices: Sequence[DeviceInfo] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    batch_flags: Mapping[str, str] = field(default_factory=dict)
    step_flags: Mapping[str, str] = field(default_factory=dict)
    environment_plans: frozenset[int] = frozenset()
    cpu_quota: float | None = None
    unsampled: Mapping[str, str] = field(default_factory=dict)
    over: bool = True
    phase: str | None = None
    declared: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunReadings:
    """What was read of a run: samples, log (of `log_bytes` now) and the `settings` that it printed. `beside`
    are the samples of its other nodes.

    `loaded` is what its processes imported, `told` what they reported of training, `probe_reason` why none
    did, `watched` where their threads were, `written` the figures of learning in files that it wrote,
    `attached` what was seen of a job that ran already, `seen` what the processes below the command did.
    """

    samples: SampleTable
    log: LogSummary
    log_bytes: int | None = None
    settings: Settings = field(default_factory=Settings)
    loaded: LoadedFiles | None = None
    told: probe.ProbeRecord | None = None
    probe_reason: str | None = None
    watched: stacks.StacksRecord | None = None
    written: Sequence[LearningSeries] = ()
    written_notes: Sequence[str] = ()
    attached: AttachedEvidence | None = None
    beside: Sequence[SampleTable] = ()
    seen: Sequence[RunProcess] = ()
