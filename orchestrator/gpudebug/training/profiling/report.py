"""The report: all threads' trees put together, by name and by place."""

from __future__ import annotations

import os
import re
import sys
import threading

from gpudebug.training.profiling import exits, sections
from gpudebug.training.profiling.state import state
from gpudebug.training.profiling.tree import NAMES, Figures, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    from gpudebug.training.profiling.tree import Node

_DEEPEST = 100
_FEW = 10
_MPS = "MPS"
_MB = 1 << 20
# Names that say how much work a call does, or how it is done; values are words, no paths and no secrets.
_NAME = re.compile(
    r"(?:^|[._-])(?:\w*horizon|chunk_size|n_action_steps|\w*batch_?size|\w*compile\w*|device|dtype|precision"
    r"|\w*denois\w*|num_envs|policy[._]type|n_obs_steps)$",
    re.I,
)
_VALUE = re.compile(r"[\w.+]{1,40}")
_OPTION = re.compile(r"-{0,2}([A-Za-z_][\w.-]{0,60})(?:=(.*))?$", re.S)
_MOST_SETTINGS = 40


class SectionCalls:
    """A section inside others, over all threads.

    A call inside one of the same name is counted with that, and what lies in it is shown there: where other
    sections lie between the two, the times of a place's children may add up to more than its own.
    """

    __slots__ = ("calls", "children", "name", "total")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.total = 0
        self.children: dict[str, SectionCalls] = {}


class Sums:
    """A section by its name: `total` of the outermost calls, `own` less what other sections took inside."""

    __slots__ = ("figures", "own", "total")

    def __init__(self) -> None:
        self.figures = Figures()
        self.own = self.total = 0


def build() -> dict[str, Any]:
    """Everything that a report holds; seconds, MB of 2**20 bytes, None if a peak was not looked at."""
    by_name, root, deep = gather()
    if state.warming_up:
        by_name, root = {}, SectionCalls("")
    measured = [_section(name, sums) for name, sums in by_name.items() if sums.figures.calls]
    return {
        "format": "gpudebug-sections",
        "version": 1,
        "pid": os.getpid(),
        "rank": exits.rank(),
        "python": sys.version.split()[0],
        "surroundings": surroundings(),
        **state.seconds(),
        "warmup": state.left_out,
        "iterations": registry.completed(),
        "sync": state.sync is not None,
        "categories": state.categories,
        "capped": registry.capped(),
        "open": sections.names_open(),
        "notes": [*_notes(measured, deep), *state.notes],
        "sections": sorted(measured, key=lambda s: -s["total_s"]),
        "tree": [_place(place) for place in root.children.values()],
    }


def gather() -> tuple[dict[str, Sums], SectionCalls, bool]:
    """Figures by name, the tree, and whether parts of it lay too deep to show."""
    by_name: dict[str, Sums] = {}
    root, deep = SectionCalls(""), False
    with registry.lock:
        for node in reversed(list(registry.all())):
            node.fold()
            if node.parent is not None:
                # What is held inside is held outside.
                node.parent.peaks(node.figures.mem_peak, node.figures.gpu_peak)
        for top in list(registry.roots.values()):
            for node, path, place in _walk(top, root):
                deep = deep or place is None
                _count(node, path, place, by_name)
    _prune(root)
    return by_name, root, deep


def _walk(top: Node, root: SectionCalls) -> Iterator[tuple[Node, tuple[str, ...], SectionCalls | None]]:
    """Each node, the names around it, and its place (None: too deep). Without recursion: trees are deep."""
    waiting: list[tuple[Node, tuple[str, ...], dict[str, SectionCalls], SectionCalls | None]] = [
        (top, (), {}, root)
    ]
    while waiting:
        node, path, around, place = waiting.pop()
        children = list(node.children.values())
        for child in children:
            inside = around.get(child.name)
            if inside is None and place is not None and len(around) < _DEEPEST:
                inside = place.children.setdefault(child.name, SectionCalls(child.name))
            yield child, path, inside
        for child in reversed(children):
            inside = around.get(child.name)
            if inside is None and place is not None:
                inside = place.children.get(child.name)
            beyond = around if inside is None else {**around, child.name: inside}
            waiting.append((child, (*path, child.name), beyond, inside))


def _count(node: Node, path: tuple[str, ...], place: SectionCalls | None, by_name: dict[str, Sums]) -> None:
    sums = by_name.get(node.name)
    if sums is None:
        sums = by_name[node.name] = Sums()
    inner = [child.figures for child in list(node.children.values())]
    figures = node.figures
    total = _unbiased(figures.total, figures.calls)
    outermost = node.name not in path
    sums.figures.add(figures)
    sums.total += total if outermost else 0
    # Tasks and threads that go on beside this section may take longer than it does.
    sums.own += max(total - sum(_unbiased(f.total, f.calls) for f in inner), 0)
    if place is not None:
        place.calls += figures.calls
        place.total += total if outermost else 0


def _prune(root: SectionCalls) -> None:
    """Drop places if nothing was measured: of sections that an event loop's tasks entered elsewhere."""
    order, waiting = [], [root]
    while waiting:
        place = waiting.pop()
        order.append(place)
        waiting.extend(place.children.values())
    for place in reversed(order):
        place.children = {n: c for n, c in place.children.items() if c.calls or c.children}


def _unbiased(duration: float, calls: int = 1) -> int:
    return max(round(duration) - calls * state.bias, 0)


def _section(name: str, sums: Sums) -> dict[str, object]:
    figures = sums.figures
    return {
        "name": name,
        "category": category(name),
        "calls": figures.calls,
        "errors": figures.errors,
        "total_s": sums.total / 1e9,
        "self_s": sums.own / 1e9,
        "mean_s": _unbiased(figures.total, figures.calls) / figures.calls / 1e9,
        "min_s": _unbiased(figures.low) / 1e9,
        "max_s": _unbiased(figures.high) / 1e9,
        "p50_s": _unbiased(figures.quantile(0.5)) / 1e9,
        "p95_s": _unbiased(figures.quantile(0.95)) / 1e9,
        "mem_peak_mb": None if figures.mem_peak is None else figures.mem_peak / _MB,
        "gpu_peak_mb": None if figures.gpu_peak is None else figures.gpu_peak / _MB,
    }


def _place(place: SectionCalls) -> dict[str, Any]:
    children = [_place(child) for child in place.children.values()]
    # One that is open for the first time has no duration yet.
    total = place.total / 1e9 if place.calls else sum(child["total_s"] for child in children)
    return {"name": place.name, "calls": place.calls, "total_s": total, "children": children}


def category(name: str) -> str | None:
    """Return the category of the longest prefix that the name has; None without one."""
    fitting = [prefix for prefix in state.categories if name.startswith(prefix)]
    return state.categories[max(fitting, key=len)] if fitting else None


def _notes(measured: list[dict[str, object]], deep: bool) -> Iterator[str]:
    why = explain(measured)
    if why:
        yield why
    if state.calibrated and measured:
        yield (
            f"{state.bias} ns that a section takes itself for are taken off each call; "
            f"it costs what encloses it {state.cost} ns more"
        )
    if registry.capped():
        yield f"more than {NAMES} names: the calls of further ones are counted under (other)"
    if deep:
        yield f"sections more than {_DEEPEST} deep are counted, and not shown in the tree"
    if measured and _device(sys.modules.get("torch")) == _MPS:
        yield (
            "device MPS: its utilisation cannot be read, the times of sections can"
            + ("" if state.sync else "; with sync=torch.mps.synchronize they hold the GPU's work too")
        )
    if state.track_memory and measured and all(s["mem_peak_mb"] is None for s in measured):
        yield "memory could not be read here: install psutil"


def explain(measured: list[dict[str, Any]]) -> str | None:
    """Return why there is nothing to see, or too little to believe; None if all is well."""
    if not measured:
        if state.warming_up:
            return (
                f"only {state.left_out} of {state.warmup} warm-up iterations were completed: "
                "all calls so far are left out"
            )
        if not state.ever_enabled:
            return (
                "profiling is not enabled: call enable_profiling() before the code that you profile, "
                "or set GPUDEBUG_PROFILE=report.json"
            )
        return (
            "profiling was enabled, but no section was ever executed: "
            "is the code with profile_section or @profile_method reached?"
        )
    most = max(section["calls"] for section in measured)
    if most < _FEW:
        return f"no section was called more than {most} times: fewer than {_FEW} iterations mean little"
    return None


def surroundings() -> dict[str, object]:
    """Return what decides how much a call does, as far as it is known without loading anything."""
    torch = sys.modules.get("torch")
    return {
        "machine": os.uname().machine if hasattr(os, "uname") else None,
        "cpus": _cpus(),
        "device": _device(torch),
        "torch": getattr(torch, "__version__", None) and str(torch.__version__)[:40],  # type: ignore[union-attr]
        "compiled": _compiled(torch),
        "settings": dict(_settings(sys.argv[1:])),
    }


def _cpus() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()


def _device(torch: Any) -> str | None:
    """Return the GPU in use, Apple's as `MPS`; nothing is initialised for it."""
    try:
        if torch.cuda.is_initialized():
            return str(torch.cuda.get_device_name())[:80]
        return _MPS if torch.backends.mps.is_available() else None
    except Exception:  # noqa: BLE001 - a program's own torch, or half of one
        return None


def _compiled(torch: Any) -> bool | None:
    """Tell whether torch.compile has compiled something in this process; None without PyTorch."""
    if torch is None or not hasattr(torch, "__version__"):
        return None
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    try:
        return bool(counters and counters["frames"].get("ok", 0))
    except Exception:  # noqa: BLE001 - private to PyTorch, and may change
        return None


def _settings(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    found = 0
    for word, after in zip(words, [*words[1:], ""]):
        option = _OPTION.match(word)
        name = option[1].replace("-", "_") if option else ""
        if option is None or not _NAME.search(name) or found >= _MOST_SETTINGS:
            continue
        value = option[2]
        if value is None:
            if not word.startswith("-"):
                continue
            value = "true" if not after or after.startswith("-") else after
        if _VALUE.fullmatch(value):
            found += 1
            yield name, value


def trace() -> dict[str, object]:
    """Return the calls that were kept, in the Trace Event Format that Perfetto and chrome://tracing read.

    Complete events in microseconds of the monotonic clock. RuntimeError if no events were kept.
    """
    if state.events is None:
        raise RuntimeError("no calls were kept for a trace: call enable_profiling(trace=True) first")
    pid = os.getpid()
    kept = list(state.events)
    events = [
        {
            # Half a surrogate pair would make the whole file unreadable to some.
            "name": name.encode("utf-8", "replace").decode(),
            "cat": category(name) or "section",
            "ph": "X",
            "ts": start / 1000,
            "dur": duration / 1000,
            "pid": pid,
            "tid": ident,
        }
        for name, start, duration, ident in kept
    ]
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    named = [
        {
            "name": "thread_name",
            "ph": "M",
            "pid": pid,
            "tid": ident,
            "args": {"name": names.get(ident, "ended")},
        }
        for ident in dict.fromkeys(kept_event[3] for kept_event in kept)
    ]
    return {"displayTimeUnit": "ms", "traceEvents": named + events}
