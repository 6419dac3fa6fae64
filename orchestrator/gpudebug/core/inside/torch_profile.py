"""What PyTorch's profiler is to record in a training, as `--torch-profile` says it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpudebug.core.errors import UsageError
from gpudebug.core.lazy import regex
from gpudebug.core.text.json_lines import parse

OPTION = "--torch-profile"
DEFAULT = "default"
HIGH_OVERHEAD = 0.15
"""Above it the profiler has changed what it shows. Source: nsys-ai's profile health manifest."""

_COUNTS = ("wait", "warmup", "active")
_SWITCHES = ("record_shapes", "with_stack", "profile_memory")
# What is recorded is kept in memory until the last iteration, some 10,000 events of each.
_MOST_RECORDED = 1_000
_MOST_WAITED = 10_000_000
_TOLD = ("file", "steps", "active_step_s", "plain_step_s", "overhead", "why")
_LONGEST_LINE = 1 << 16
_TRACE = regex(r"trace(\.(rank|pid)\d+)*\.json\.gz")
_EXAMPLE = f"{OPTION} wait=2,warmup=2,active=4,record_shapes"


@dataclass(frozen=True)
class TorchProfile:
    """Iterations: the first `wait` are left alone, `warmup` are profiled and thrown away, `active` recorded.

    The rest are options of `torch.profiler.profile` of the same names.
    """

    wait: int = 2
    warmup: int = 2
    active: int = 4
    record_shapes: bool = False
    with_stack: bool = False
    profile_memory: bool = False

    def __str__(self) -> str:
        """Write it as the training's Python reads it."""
        counts = [f"{name}={getattr(self, name)}" for name in _COUNTS]
        return ",".join([*counts, *(name for name in _SWITCHES if getattr(self, name))])


def parse_torch_profile(text: str) -> TorchProfile:
    """`wait=2,warmup=2,active=4,record_shapes,with_stack,profile_memory`, in any order, each at most once.

    What is left out has its default; `default` alone leaves all out. UsageError says what is wrong.
    """
    if text.strip() == DEFAULT:
        return TorchProfile()
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (s.strip() for s in part.partition("="))
        if name in found:
            raise _refused(f"{name} is there twice")
        found[name] = _count(name, value) if equals and name in _COUNTS else _switch(name, equals, part)
    return TorchProfile(**found)


def _count(name: str, value: str) -> int:
    least, most = int(name == "active"), _MOST_WAITED if name == "wait" else _MOST_RECORDED
    if not (value.isascii() and value.isdecimal() and int(value[:20]) >= least):
        raise _refused(f"{name}={value}: expected a whole number of iterations, at least {least}")
    if int(value[:20]) > most:
        raise _refused(f"{name}={value}: at most {most:,} iterations")
    return int(value)


def _switch(name: str, equals: str, part: str) -> bool:
    if name in _SWITCHES and not equals:
        return True
    if name in _SWITCHES:
        raise _refused(f"{part.strip()}: {name} takes no value")
    if name in _COUNTS:
        raise _refused(f"{name} needs a number of iterations")
    if not name:
        raise _refused("a part of it is empty")
    from difflib import get_close_matches

    near = get_close_matches(name.lower().replace("-", "_"), (*_COUNTS, *_SWITCHES), n=1)
    known = ", ".join((*(f"{count}=N" for count in _COUNTS), *_SWITCHES))
    raise _refused(f"there is no {name!r}", f"did you mean {near[0]}?" if near else f"known are {known}")


def _refused(why: str, next: str | None = None) -> UsageError:
    return UsageError(f"{OPTION}: {why}", next=next or f"for example {_EXAMPLE}")


def read_profiles(text: str) -> dict[str, Any] | None:
    """Return what the processes of a run reported of their profiles in probe.jsonl; None if none of them did.

    `file` is the trace's name in the run folder, `steps` the iterations in it, `active_step_s` and
    `plain_step_s` what one took in the mean with the profiler and without, `overhead` the share by which the
    profiler made them longer at least, `why` what went wrong: each is there if it is known. Of several
    processes it is the first rank's; `files` are the traces of all.
    """
    last: dict[Any, dict[str, Any]] = {}
    for line in text.splitlines():
        if '"torch_profile"' in line and (entry := _entry(line)) is not None:
            last[entry.get("pid")] = entry
    if not last:
        return None
    records = sorted(last.values(), key=_first_rank_first)
    files = [e["file"] for e in records if "file" in e]
    return {
        **{key: records[0][key] for key in _TOLD if key in records[0]},
        **({"files": files} if files else {}),
    }


def _entry(line: str) -> dict[str, object] | None:
    try:
        entry = parse(line) if len(line) <= _LONGEST_LINE else None
    except ValueError:
        return None  # Cut off as the process was killed.
    if not isinstance(entry, dict) or entry.get("kind") != "torch_profile":
        return None
    if not _TRACE.fullmatch(str(entry.get("file"))):
        entry.pop("file", None)
    return entry


def _first_rank_first(entry: Mapping[str, Any]) -> tuple[bool, int, str]:
    name = entry.get("file", "")
    return not name, len(name), name


_WHOLE = (
    "truncated",
    "notes",
    "events",
    "span_s",
    "busy_share",
    "reason",
    "kernels_per_step",
    "mean_kernel_us",
)
_ROWS = {
    "devices": (("device", "busy_share", "idle_s"), 16),
    "memcpy": (("kind", "host_memory", "count", "seconds"), 6),
    "syncs": (("call", "kind", "count", "seconds"), 3),
    "operators": (("name", "calls", "self_s", "device_s"), 5),
}
_STEPS = ("count", "wall_p50_s", "busy_share", "data_wait_share")
_NCCL = ("seconds", "overlapped_share", "exposed_s")


def headline(analysis: Mapping[str, Any]) -> dict[str, object]:
    """Return what of `analyze`'s answer for a trace goes into a run's evidence, under the same names."""
    steps, nccl = analysis.get("steps"), analysis.get("nccl")
    return {
        **{key: analysis.get(key) for key in _WHOLE},
        **{
            name: [{key: row.get(key) for key in keys} for row in (analysis.get(name) or ())[:most]]
            for name, (keys, most) in _ROWS.items()
        },
        "steps": {key: steps.get(key) for key in _STEPS} if steps else None,
        "nccl": {key: nccl.get(key) for key in _NCCL} if nccl else None,
    }


def overhead_of(trace: Mapping[str, Any]) -> float | None:
    """By which share the profiler made the iterations longer; None if that is not known."""
    overhead = trace.get("overhead")
    return float(overhead) if isinstance(overhead, (int, float)) else None


def remarks(trace: Mapping[str, Any] | None, *, trained: bool = False) -> list[str]:
    """Return what is to be known before the trace of a profiled run is believed, one line each.

    `trained` says that the probe saw a training in it.
    """
    if trace is None and trained:
        return ["no trace: the training was ended, by a signal or os._exit, before it had recorded one"]
    if trace is None:
        return ["no trace: the probe saw no process of the command train with PyTorch"]
    lines = []
    if trace.get("why"):
        lines.append(f"{'the trace is not whole' if trace.get('file') else 'no trace'}: {trace['why']}")
    overhead = overhead_of(trace)
    if overhead is not None and overhead > HIGH_OVERHEAD:
        lines.append(
            f"the profiler made the iterations {overhead:.0%} longer, more than {HIGH_OVERHEAD:.0%}: in the "
            "trace the host's times are too long, and the device's gaps with them"
        )
    return lines
