"""The figures as text: a table of sections, and the tree that is printed every few iterations."""

from __future__ import annotations

from gpudebug.training.profiling import report as reports
from gpudebug.training.profiling.state import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from gpudebug.training.profiling.report import SectionCalls

_RULE = "=" * 60
_BULLETS = ("", "- ", "• ")
# Of an iteration: what takes more of the time is critical.
_BOTTLENECK = 0.30
_LONGEST_NAME = 60
# Lines of a table or a tree: a program may make names by the thousand.
_ROWS = 200
_COLUMNS = ("Calls", "Total(s)", "Avg(s)", "Min(s)", "Max(s)", "Mem Peak(MB)", "GPU Peak(MB)")


def text(tree: bool = False) -> str:
    """Return the table, the tree, and what the report notes."""
    report = reports.build()
    parts = []
    if report["sections"]:
        parts.append(table(report["sections"][:_ROWS]))
        left = len(report["sections"]) - _ROWS
        if left > 0:
            parts.append(f"... and {left} more sections: get_profiler().save(path) writes all of them")
    if tree and report["tree"]:
        iterations = report["iterations"] or 1
        lines = [line for root in report["tree"] for line in tree_lines(root, iterations)]
        parts.append(framed(f"{state.title} (mean of {iterations} iterations)", lines))
    notes = [f"Open: {', '.join(report['open'])}"] if report["open"] else []
    notes += [note[0].upper() + note[1:] for note in report["notes"]]
    return "\n".join([*parts, *notes])


def table(sections: list[dict[str, Any]]) -> str:
    """Return a line a section, the most time first."""
    width = max(len("Operation"), *(len(_name(s["name"])) for s in sections))
    rows = [("Operation", *_COLUMNS), *(_row(s) for s in sections)]
    lines = [f"{row[0]:<{width}}  {row[1]:>9}" + "".join(f"  {cell:>12}" for cell in row[2:]) for row in rows]
    rule = "-" * len(lines[0])
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def _row(section: dict[str, Any]) -> tuple[str, ...]:
    times = (f"{section[key]:.6f}" for key in ("total_s", "mean_s", "min_s", "max_s"))
    peaks = (section[key] for key in ("mem_peak_mb", "gpu_peak_mb"))
    shown = ("unknown" if peak is None else f"{peak:.1f}" for peak in peaks)
    return (_name(section["name"]), str(section["calls"]), *times, *shown)


def _name(name: str) -> str:
    plain = name if name.isprintable() else ascii(name)[1:-1]
    if len(plain) > _LONGEST_NAME:
        # Names differ at their ends.
        plain = f"{plain[: _LONGEST_NAME // 2]}…{plain[1 - _LONGEST_NAME // 2 :]}"
    return plain or "(no name)"


def tree_lines(root: dict[str, Any], iterations: int) -> Iterator[str]:
    """Milliseconds an iteration, the share of what encloses it, and the mark of the bottleneck."""
    rows = list(_rows(root, 0, None))
    width = max(len(label) for label, _, _ in rows) + 1
    times = [f"{place['total_s'] * 1000 / iterations:.2f}" for _, place, _ in rows]
    digits = max(len(time) for time in times)
    worst = bottleneck(root)
    for (label, place, around), time in zip(rows, times):
        share = "" if not around else f"  {_share(place['total_s'] / around)}"
        mark = "  <-- BOTTLENECK" if place is worst else ""
        yield f"{label + ':':<{width}} {time:>{digits}} ms{share}{mark}"


def _share(share: float) -> str:
    # Tasks that run at the same time take longer together than what waits for them.
    return f"{100 * share:5.1f} %" if share < 10 else f"{share:5.0f} x"


def _rows(
    place: dict[str, Any], depth: int, around: float | None
) -> Iterator[tuple[str, dict[str, Any], float | None]]:
    bullet = _BULLETS[min(depth, len(_BULLETS) - 1)]
    indent = 2 if depth == 0 else 4 * depth
    yield " " * indent + bullet + _name(place["name"]), place, around
    for child in place["children"]:
        yield from _rows(child, depth + 1, place["total_s"])


def bottleneck(root: dict[str, Any]) -> dict[str, object] | None:
    """The innermost section on the dearest path that takes more than 30 % of the whole; None without one."""
    found, place = None, root
    while place["children"]:
        place = max(place["children"], key=lambda child: child["total_s"])
        if place["total_s"] <= _BOTTLENECK * root["total_s"]:
            break
        found = place
    return found


def framed(title: str, lines: list[str]) -> str:
    """Lines under a title, between rules; the first ones of very many."""
    if len(lines) > _ROWS:
        lines = [*lines[:_ROWS], f"... and {len(lines) - _ROWS} more"]
    return "\n".join([_RULE, title, _RULE, *lines, _RULE])


def print_interval(title: str, iterations: int) -> None:
    """Print the tree of what was measured since the last time, a mean of so many iterations."""
    _, root, _ = reports.gather()
    lines: list[str] = []
    for place in root.children.values():
        since = _since(place, (), state.shown)
        if since["calls"] or since["children"]:
            lines.extend(tree_lines(since, iterations))
    try:
        print(framed(title, lines), flush=True)
    except (OSError, ValueError) as e:
        # Standard output is full, closed or a pipe without a reader: the training decides what that means.
        state.note(f"a summary could not be printed: {e}")


def _since(
    place: SectionCalls, around: tuple[str, ...], shown: dict[tuple[str, ...], tuple[int, int]]
) -> dict[str, Any]:
    path = (*around, place.name)
    calls, total = shown.get(path, (0, 0))
    shown[path] = (place.calls, place.total)
    children = [_since(child, path, shown) for child in place.children.values()]
    children = [child for child in children if child["calls"] or child["children"]]
    seconds = (place.total - total) / 1e9
    if place.calls == calls:
        # Still open.
        seconds = sum(child["total_s"] for child in children)
    return {"name": place.name, "calls": place.calls - calls, "total_s": seconds, "children": children}
