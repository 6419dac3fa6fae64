"""What a run ran in: interpreter, packages, host, quota, devices; and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from gpudebug.core.change import intervention as interventions
from gpudebug.core.errors import InterventionError
from gpudebug.core.records import DeviceInfo, RunNode, RunRecord
from gpudebug.core.redaction.alike import alike
from gpudebug.core.statistics.across import name
from gpudebug.core.words import counted
from gpudebug.edges import clusters, host, launcher

_NAMED = 5


@dataclass(frozen=True)
class Surroundings:
    """`interpreter` is path and version; `packages` is empty if the interpreter was not or could not be
    asked; `knobs` are the variables that steer libraries, `meant` those of them that the run's own change
    sets, `variables` others that are watched (None: not set), `boot` is the kernel's id of its boot; None is
    unknown, as for everything of an imported run."""

    interpreter: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None
    cpu_quota: float | None = None
    devices: tuple[DeviceInfo, ...] = ()
    knobs: Mapping[str, str] | None = None
    meant: frozenset[str] = frozenset()
    node: RunNode | None = None
    boot: str | None = None
    variables: Mapping[str, str | None] | None = None

    @property
    def allocation(self) -> str | None:
        return self.node.allocation if self.node is not None else None


def ask_anew() -> None:
    """A long-lived process asks every interpreter again, as each command does."""
    launcher.ask_anew()


# Prefixes of the variables by which libraries choose their threads, kernels and transports.
_STEERING = (
    *("OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "NUMEXPR_", "GOTO_", "MALLOC_"),
    *("CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_TF32", "NCCL_", "UCX_", "GLOO_", "TORCH_", "TORCHINDUCTOR_"),
    *("PYTORCH_", "TRITON_", "XLA_", "TF_", "JAX_", "FLASH_ATTENTION_", "TOKENIZERS_", "LD_PRELOAD"),
)
# These choose the device, which is compared by itself, or where files are and what is logged.
_STEERLESS = frozenset(
    {
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_CACHE_PATH"),
        *("TORCH_HOME", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"),
        *(
            "TF_CLI_CONFIG_FILE",
            "TF_CPP_MIN_LOG_LEVEL",
            "NCCL_DEBUG",
            "NCCL_DEBUG_FILE",
            "NVIDIA_VISIBLE_DEVICES",
        ),
    }
)


def knobs_in(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `env` that steer libraries."""
    return {k: v for k, v in sorted(env.items()) if k.startswith(_STEERING) and k not in _STEERLESS}


def here(
    interpreter: host.Interpreter | None,
    devices: tuple[DeviceInfo, ...],
    env: Mapping[str, str],
    watched: Iterable[str] = (),
) -> Surroundings:
    """Return the surroundings of a run that would start now in `env`."""
    knobs = knobs_in(env)
    return Surroundings(
        interpreter=f"{interpreter.path} {interpreter.version}".strip() if interpreter else None,
        packages=interpreter.packages if interpreter else {},
        host=host.host_name(),
        cpu_quota=host.cpu_quota(),
        devices=devices,
        knobs=knobs,
        node=node_here(),
        boot=host.boot_id(),
        variables={name: env.get(name) for name in watched if name not in knobs},
    )


def node_here() -> RunNode | None:
    """Return the node of a cluster's job that this process runs on; None outside of one."""
    found = clusters.inside()
    if found is None:
        return None
    return RunNode(
        name=found.node,
        allocation=found.allocation,
        nodes=found.nodes,
        boot=host.boot_id(),
        cores=host.allowed_cores(),
        memory_limit_mb=launcher.limit_mb(),
    )


def recorded(record: RunRecord) -> Surroundings:
    """Return the surroundings that run.json records."""
    try:
        changes = interventions.parse(record.change).changes if record.change else ()
    except InterventionError:  # An older version's: it took characters that are refused today.
        changes = ()
    return Surroundings(
        interpreter=record.interpreter,
        packages=record.packages,
        host=record.host,
        cpu_quota=record.cpu_quota,
        devices=record.devices,
        knobs=record.knobs,
        meant=frozenset(part.name for part in changes if part.kind == "env"),
        node=record.node,
        boot=record.boot,
        variables=record.variables,
    )


def differences(before: Surroundings, after: Surroundings) -> list[str]:
    """What differs, named. What either side does not know is not compared: unknown is not a difference."""
    found = []
    if before.packages and after.packages:
        if before.interpreter != after.interpreter:
            found.append(f"interpreter {before.interpreter} and {after.interpreter}")
        found += _packages(before.packages, after.packages)
    if before.node is not None and after.node is not None:
        found += _nodes(before.node, after.node)
    elif None not in (before.host, after.host) and before.host != after.host:
        found.append(f"host {before.host} and {after.host}")
    elif None not in (before.boot, after.boot) and before.boot != after.boot:
        found.append(f"host {before.host} before and after it was started again")
    if None not in (before.cpu_quota, after.cpu_quota) and before.cpu_quota != after.cpu_quota:
        found.append(f"CPU quota {before.cpu_quota:g} and {after.cpu_quota:g} cores")
    if before.devices and after.devices:
        found += _devices(before, after)
    meant = before.meant | after.meant
    if before.knobs is not None and after.knobs is not None:
        found += _variables(before.knobs, after.knobs, (before.knobs.keys() | after.knobs.keys()) - meant)
    if before.variables and after.variables:
        # What one side did not watch is not known of it.
        both = before.variables.keys() & after.variables.keys()
        found += _variables(before.variables, after.variables, both - meant)
    return found


def _nodes(before: RunNode, after: RunNode) -> Iterator[str]:
    """Yield what a job may use on two nodes, or on one whose job is another one."""
    if before.name != after.name:
        yield f"node {before.name} and {after.name}"
    elif None not in (before.boot, after.boot) and before.boot != after.boot:
        yield f"node {before.name} before and after it was started again"
    others = [sorted({*node.nodes} - {node.name}) for node in (before, after)]
    if before.nodes and after.nodes and others[0] != others[1]:
        yield f"other nodes {' and '.join(', '.join(names[:_NAMED]) or 'none' for names in others)}"
    if before.cores and after.cores and before.cores != after.cores:
        yield f"cores {ranges(before.cores)} and {ranges(after.cores)}"
    if before.memory_limit_mb != after.memory_limit_mb:
        yield f"memory limit {_limit(before)} and {_limit(after)}"


def _limit(node: RunNode) -> str:
    return "none" if node.memory_limit_mb is None else f"{node.memory_limit_mb:.0f} MB"


def ranges(numbers: Iterable[int]) -> str:
    """`0-3,8` of the numbers 0, 1, 2, 3 and 8."""
    runs = groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])
    ends = [[number for _, number in run] for _, run in runs]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends)


def _variables(
    before: Mapping[str, str | None], after: Mapping[str, str | None], compared: Iterable[str]
) -> list[str]:
    names = sorted(n for n in compared if not _same(before.get(n), after.get(n)))
    values = [["unset" if (v := side.get(n)) is None else v for side in (before, after)] for n in names]
    shown = [f"{n} {old} and {new}" for n, (old, new) in zip(names[:_NAMED], values, strict=False)]
    return [f"variable {', '.join(shown)}{' and more' if len(names) > _NAMED else ''}"] if names else []


def _same(before: str | None, after: str | None) -> bool:
    """Tell whether a recorded value is the present one, which nothing was taken out of."""
    return before == after or (None not in (before, after) and alike(str(before), str(after)))


def _packages(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    names = sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n))
    if not names:
        return []
    return [f"packages {', '.join(names[:_NAMED])}{' and more' if len(names) > _NAMED else ''}"]


def _devices(here: Surroundings, there: Surroundings) -> list[str]:
    before, after = here.devices, there.devices
    if [(d.uuid, d.cores) for d in before] != [(d.uuid, d.cores) for d in after]:
        return [f"device {_shown(before)} and {_shown(after)}{_unsampled(here, there)}"]
    found: dict[str, list[str]] = {}
    for what, key in _SETTINGS:
        for one, other in zip(before, after, strict=True):
            old, new = getattr(one, key), getattr(other, key)
            if None not in (old, new) and old != new:
                text = f"{what} {_setting(one, key)} and {_setting(other, key)}"
                found.setdefault(text, []).append(name(one))
    of_some = {text: len(where) < len(before) for text, where in found.items()}
    shown = [f"{text} ({', '.join(where)})" if of_some[text] else text for text, where in found.items()]
    return shown[:_NAMED]


def _unsampled(*sides: Surroundings) -> str:
    """Return which nodes' devices one side does not know, and why."""
    found = {node: why for side in sides if side.node for node, why in side.node.unsampled.items()}
    return "".join(f"; those of node {node} are unknown: {why}" for node, why in found.items())


_SETTINGS = (
    ("driver", "driver"),
    ("clocks", "clocks_mhz"),
    ("power limit", "power_limit_w"),
    ("link", "link"),
    ("NVLinks", "nvlinks"),
)


def _setting(device: DeviceInfo, key: str) -> str:
    value = getattr(device, key)
    if isinstance(value, tuple):
        return "/".join(f"{v:g}" for v in value) + " MHz"
    return f"{value:g} W" if isinstance(value, float) else str(value)


def _shown(devices: tuple[DeviceInfo, ...]) -> str:
    return ", ".join(d.uuid + (f" with {d.cores:g} cores" if d.cores else "") for d in devices)


def remarks_on(record: RunRecord) -> list[str]:
    """Warn of what will spoil a trial."""
    company = [
        f"{counted(len(d.processes), 'other process', 'other processes')} on {d.name} ({d.uuid}), "
        f"PID {', '.join(map(str, d.processes))}: its figures are not this training's alone"
        for d in record.devices
        if d.processes
    ]
    strays = sorted((record.imports or {}).items())
    return [*company, *(f"{name} is imported from {folder}, not from here" for name, folder in strays)]
