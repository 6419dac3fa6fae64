"""The devices of a run as text for people: a line each of a few, of many a table and what is apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpudebug.core.answers.devices import FigureAcross
from gpudebug.core.answers.sample import FigureSpread, SampledDevice
from gpudebug.core.samples.conditions import SLOWING
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import name, shown, text

FEW = 2
"""Up to so many have lines of their own."""
_MOST_ROWS = 16
_THROTTLED = 0.005


def devices(rows: Sequence[SampledDevice], across: Sequence[FigureAcross] = ()) -> list[str]:
    """Render up to two devices by lines, more of them as `summary` and `table`."""
    if len(rows) > FEW:
        return [*summary(across), *table(rows)]
    return [line for device in rows for line in _alone(device)]


def summary(across: Sequence[FigureAcross]) -> list[str]:
    """Render a line for the utilisation, and one for each further figure by which a device is apart."""
    return [text(one) for one in shown(across)]


def energy(joules_per_step: float | None) -> list[str]:
    """Render the energy of a step; nothing if it is unknown."""
    return [] if joules_per_step is None else [f"energy {numbers.number(joules_per_step, 'J/step')}"]


def _label(d: SampledDevice) -> str:
    return "CPU stand-in" if d.uuid == "CPU" else f"GPU {d.index}{f' on {d.node}' if d.node else ''}"


def _alone(d: SampledDevice) -> list[str]:
    util, head = d.gpu_util, f"{_label(d)}{f' ({d.uuid})' if d.uuid else ''}: gpu_util"
    if util is None:
        lines = [f"{head} unknown: {d.reason}"]
    else:
        spread = f"p5 {util.p5:.0f}, p50 {util.p50:.0f}, p95 {util.p95:.0f}"
        lines = [f"{head} {util.mean:.1f}%  ({spread})"]
    facts = _facts(d)
    return [*lines, f"  {facts}"] if facts else lines


def _facts(d: SampledDevice) -> str:
    """Memory, power, clocks, temperature and throttling, without what is unknown."""
    limit = f" of {d.power_limit_w:.0f}" if d.power_limit_w is not None and d.power_w else ""
    clocks = [f"{s.mean:.0f}" for s in (d.sm_clock_mhz, d.mem_clock_mhz) if s is not None]
    parts = []
    if d.memory is not None:
        parts.append(f"memory {d.memory.mean_mb:.0f} MB on average, {d.memory.peak_mb:.0f} MB at most")
    parts += [f"power {d.power_w.mean:.0f}{limit} W"] if d.power_w else []
    parts += [f"clocks {'/'.join(clocks)} MHz"] if clocks else []
    parts += [f"{d.temperature_c.mean:.0f} C"] if d.temperature_c else []
    parts += [f"memory busy {d.mem_util.mean:.0f}%"] if d.mem_util else []
    parts += [d.link] if d.link else []
    parts += [slowed(d)] if d.throttled is not None and d.throttled >= _THROTTLED else []
    return ", ".join(parts)


def slowed(d: SampledDevice) -> str:
    """`throttled 37% of the time (sw_thermal)`."""
    shares = d.throttle or {}
    reasons = [name for name in sorted(SLOWING) if shares.get(name, 0.0) >= _THROTTLED]
    return f"throttled {100 * (d.throttled or 0):.0f}% of the time ({', '.join(reasons)})"


def table(rows: Sequence[SampledDevice]) -> list[str]:
    """Render a row a device, without columns that no device has; of very many devices the first ones."""
    first = rows[:_MOST_ROWS]
    columns = {head: cells for head, cell in _COLUMNS.items() if any(cells := [cell(d) for d in first])}
    widths = {head: max(len(head), *map(len, cells)) for head, cells in columns.items()}
    heads = [head.ljust(widths[head]) for head in columns]
    lines = ["  ".join(heads).rstrip()]
    for i, device in enumerate(first):
        cells = [(columns[head][i] or "-").ljust(widths[head]) for head in columns]
        why = f"  unknown: {device.reason}" if device.gpu_util is None else ""
        lines.append(("  ".join(cells) + why).rstrip())
    left = len(rows) - len(first)
    return [f"  {line}" for line in lines] + ([f"  and {left} more devices (--json)"] if left else [])


def _mean(spread: FigureSpread | None) -> str:
    return "" if spread is None else f"{spread.mean:.0f}"


def _util(d: SampledDevice) -> str:
    return "" if d.gpu_util is None else f"{d.gpu_util.mean:.1f}%"


def _range(d: SampledDevice) -> str:
    return "" if d.gpu_util is None else f"{d.gpu_util.p5:.0f}..{d.gpu_util.p95:.0f}"


def _power(d: SampledDevice) -> str:
    limit = "" if d.power_limit_w is None else f"/{d.power_limit_w:.0f}"
    return f"{d.power_w.mean:.0f}{limit}" if d.power_w else ""


def _memory(d: SampledDevice) -> str:
    return "" if d.memory is None else f"{d.memory.mean_mb:.0f} ({d.memory.peak_mb:.0f})"


def _throttled(d: SampledDevice) -> str:
    return "" if d.throttled is None else f"{100 * d.throttled:.0f}%"


_COLUMNS: Mapping[str, Callable[[SampledDevice], str]] = {
    "GPU": lambda d: name(d).removeprefix("GPU "),
    "util": _util,
    "p5..p95": _range,
    "power W": _power,
    "SM MHz": lambda d: _mean(d.sm_clock_mhz),
    "mem MHz": lambda d: _mean(d.mem_clock_mhz),
    "C": lambda d: _mean(d.temperature_c),
    "memory MB (most)": _memory,
    "mem busy %": lambda d: _mean(d.mem_util),
    "throttled": _throttled,
    "link": lambda d: d.link or "",
}
