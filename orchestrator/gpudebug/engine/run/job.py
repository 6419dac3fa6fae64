"""What is to be run, where, and what came of it: the records that the modules of this room share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpudebug.core.command.synonyms import Synonyms
from gpudebug.core.inside.torch_profile import TorchProfile
from gpudebug.core.records import DeviceInfo, Evidence, RunRecord
from gpudebug.core.verdict.run_plan import RunPlan
from gpudebug.core.words import device_kind
from gpudebug.edges import git, store
from gpudebug.engine.run.import_paths import Trees
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.nodes import OtherNodes


@dataclass(frozen=True)
class PreparedServer:
    """A server as it is to be started: `{port}` and `{run}` not yet replaced. `port` None: a free one."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    env_names: tuple[str, ...]
    ready: Mapping[str, str | int]
    port: int | None
    timeout: float
    shell: bool = False


@dataclass(frozen=True)
class AttachedJob:
    """A job that runs already: the process `pid` and all below it; `argv` starts what follows it."""

    pid: int
    argv: tuple[str, ...]


@dataclass(frozen=True)
class RunLimits:
    """What ends a run that does not end by itself: seconds in all, seconds without a step, bytes of output.

    With `plan` it is ended once its planned window is full; `least_window` says how short that may be.
    """

    timeout: float | None = None
    stall: float | None = None
    output: int | None = None
    plan: RunPlan | None = None
    least_window: float | None = None


@dataclass(frozen=True)
class RunCode:
    """The code of a run: what a baseline of it is valid for, the tree as it lies there, and its patch.

    `base_env` is the environment before `trees` were put into it.
    """

    identity: Mapping[str, str] = field(default_factory=dict)
    checkout: git.Checkout | None = None
    commit: str | None = None
    patch: bytes | None = None
    trees: Trees | None = None
    base_env: Mapping[str, str] | None = None


@dataclass(frozen=True)
class RunChange:
    """The hypothesis that a run belongs to, under which claim, and what of it the run changes."""

    hypothesis: int | None = None
    text: str | None = None
    digest: str | None = None
    claim: str | None = None
    redundant: str | None = None


@dataclass(frozen=True)
class PreparedRun:
    """What to run: the command as the user wrote it, applied changes included, `{run}` not yet replaced.

    `torch_profile` says what PyTorch's profiler records, `layer` which layer the probe replaces. With
    `attached` it runs already: `argv`, `cwd` and `env` are what it was started with. The files of the run are
    looked at every `poll` seconds. `watched` are variables whose values are recorded, set or not.
    """

    label: str
    role: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    env_names: tuple[str, ...] = ()
    shell: bool = False
    limits: RunLimits = field(default_factory=RunLimits)
    code: RunCode = field(default_factory=RunCode)
    change: RunChange = field(default_factory=RunChange)
    notes: tuple[str, ...] = ()
    torch_profile: TorchProfile | None = None
    layer: str | None = None
    server: PreparedServer | None = None
    synonyms: Synonyms = ()
    attached: AttachedJob | None = None
    paired: str | None = None
    poll: float = 0.5
    watched: tuple[str, ...] = ()


def replanned(job: PreparedRun, plan: RunPlan | None) -> PreparedRun:
    """Return the run with another plan."""
    return replace(job, limits=replace(job.limits, plan=plan))


@dataclass(frozen=True)
class Bench:
    """What all runs of one command share: where they go, on which device, with which claim held.

    `settings` is the digest of the pinned settings that are in force, `others` are the other nodes that the
    runs span, `phase` is the one that is judged.
    """

    workspace: store.Workspace
    campaign: str | None
    device: Mapping[str, object]
    devices: tuple[DeviceInfo, ...]
    interval: float
    warmup: float | None
    patterns: Mapping[str, str]
    hold_fds: tuple[int, ...]
    report: Report
    notes: tuple[str, ...] = ()
    require_sampler: bool = True
    session: str | None = None
    settings: str | None = None
    others: OtherNodes | None = None
    phase: str | None = None

    @property
    def replays(self) -> bool:
        """Whether recordings are played back instead of commands being run."""
        return device_kind(self.device["kind"]).is_recording


@dataclass(frozen=True)
class MeasuredRun:
    """A run that has ended, or what is known of one that goes on. `patch` is its change and `marks` how the
    files of its code looked before the launch; None of a run that is read from its folder."""

    folder: store.RunFolder
    record: RunRecord
    evidence: Evidence
    patch: bytes | None = None
    marks: git.FileMarks | None = None
