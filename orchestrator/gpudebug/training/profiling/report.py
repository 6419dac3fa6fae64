"""The report: all threads' trees put together, by name and by place."""

from __future__ import annotations

import os
import sys

from gpudebug.training.profiling import exits, handles
from gpudebug.training.profiling.figures import Figures, larger
from gpudebug.training.profiling.settings import settings
from gpudebug.training.profiling.surroundings import surroundings
from gpudebug.training.profiling.tree import NAMES, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping

    from gpudebug.training.profiling.progress import ProfilerState
    from gpudebug.training.profiling.tree import Node

_DEEPEST = 100
_FEW = 10
_MB = 1 << 20


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


def build(progress: ProfilerState) -> dict[str, Any]:
    """Everything that a report holds; seconds, MB of 2**20 bytes, None if a peak was not looked at."""
    by_name, root, deep = gather()
    warm = progress.warming_up
    if warm:
        by_name, root = {}, SectionCalls("")
    sections = [
        _section(name, sums, progress.categories) for name, sums in by_name.items() if sums.figures.calls
    ]
    return {
        "format": "gpudebug-sections",
        "version": 1,
        "pid": os.getpid(),
        "rank": exits.rank(),
        "python": sys.version.split()[0],
        "surroundings": surroundings(),
        **progress.seconds(),
        "warmup": progress.left_out,
        "iterations": progress.completed(),
        "sync": settings.sync is not None,
        "categories": progress.categories,
        "capped": registry.capped(),
        "open": handles.names_open(),
        "notes": [*_notes(progress, sections, deep), *settings.notes],
        "sections": sorted(sections, key=lambda s: -s["total_s"]),
        "tree": [_place(place) for place in root.children.values()],
    }


def gather() -> tuple[dict[str, Sums], SectionCalls, bool]:
    """Figures by name, the tree, and whether parts of it lay too deep to show."""
    by_name: dict[str, Sums] = {}
    root, deep = SectionCalls(""), False
    with registry.lock:
        for node in reversed(list(registry.all())):
            node.fold()
            around = (node.parent or node).figures
            # What is held inside is held outside.
            around.mem_peak = larger(around.mem_peak, node.figures.mem_peak)
            around.gpu_peak = larger(around.gpu_peak, node.figures.gpu_peak)
        for thread in registry.threads:
            for node, path, place in _walk(thread.root, root):
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
        children = [handle.node for handle in list(node.children.values())]
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
    inner = [handle.node.figures for handle in list(node.children.values())]
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
    return max(round(duration) - calls * settings.bias, 0)


def _section(name: str, sums: Sums, categories: Mapping[str, str]) -> dict[str, Any]:
    figures = sums.figures
    return {
        "name": name,
        "category": category(name, categories),
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


def category(name: str, categories: Mapping[str, str]) -> str | None:
    """Return the category of the longest prefix that the name has; None without one."""
    fitting = [prefix for prefix in categories if name.startswith(prefix)]
    return categories[max(fitting, key=len)] if fitting else None


def _notes(progress: ProfilerState, sections: list[dict[str, Any]], deep: bool) -> Iterator[str]:
    why = explain(progress, sections)
    if why:
        yield why
    if settings.calibrated and sections:
        yield (
            f"{settings.bias} ns that a section takes itself for are taken off each call; "
            f"it costs what encloses it {settings.cost} ns more"
        )
    if registry.capped():
        yield f"more than {NAMES} names: the calls of further ones are counted under (other)"
    if deep:
        yield f"sections more than {_DEEPEST} deep are counted, and not shown in the tree"
    if settings.track_memory and sections and all(s["mem_peak_mb"] is None for s in sections):
        yield "memory could not be read here: install psutil"


def explain(progress: ProfilerState, sections: list[dict[str, Any]]) -> str | None:
    """Return why there is nothing to see, or too little to believe; None if all is well."""
    if not sections:
        if progress.warming_up:
            return (
                f"only {progress.left_out} of {progress.warmup} warm-up iterations were completed: "
                "all calls so far are left out"
            )
        if not progress.ever_enabled:
            return (
                "profiling is not enabled: call enable_profiling() before the code that you profile, "
                "or set GPUDEBUG_PROFILE=report.json"
            )
        return (
            "profiling was enabled, but no section was ever executed: "
            "is the code with profile_section or @profile_method reached?"
        )
    most = max(section["calls"] for section in sections)
    if most < _FEW:
        return f"no section was called more than {most} times: fewer than {_FEW} iterations mean little"
    return None
