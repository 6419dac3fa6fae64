"""The devices, the ranks and the sample of a run as text for people.

A few devices have a line each, many a table and what is apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from gpudebug.core.answers.analyze import SamplesAnswer
from gpudebug.core.answers.log import FailureLines
from gpudebug.core.answers.sample import (
    FigureSpread,
    RanksFinding,
    SampleAnswer,
    SampledDevice,
    StragglerRank,
)
from gpudebug.core.answers.status import FigureAcross
from gpudebug.core.inside.probe.figures import side
from gpudebug.core.samples.conditions import SLOWING
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import name, shown, text
from gpudebug.core.trainlog.endings import remedy
from gpudebug.core.words import counted, is_stand_in
from gpudebug.terminal import sections
from gpudebug.terminal.log import latency
from gpudebug.terminal.probe import inside, places, trace

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
    return "CPU stand-in" if is_stand_in(d.uuid) else f"GPU {d.index}{f' on {d.node}' if d.node else ''}"


def _alone(d: SampledDevice) -> list[str]:
    util, head = d.gpu_util, f"{_label(d)}{f' ({d.uuid})' if d.uuid else ''}: gpu_util"
    if util is None:
        lines = [f"{head} unknown: {d.reason}"]
    else:
        spread = f"p5 {util.p5:.0f}, p50 {util.p50:.0f}, p95 {util.p95:.0f}"
        lines = [f"{head} {util.mean:.1f}%{_in_cores(util.mean, d.cores)}  ({spread})"]
    facts = _facts(d)
    return [*lines, f"  {facts}"] if facts else lines


_NEAR_A_CORE = 0.05


def _in_cores(util: float, cores: float | None) -> str:
    """`, one of 2 cores` where the stand-in shows as much as whole cores do, and not all: one thread has no
    more."""
    if cores is None:
        return ""
    used = util / 100 * cores
    whole = round(used)
    if not 0 < whole < cores or abs(used - whole) > _NEAR_A_CORE:
        return ""
    return f", {'one' if whole == 1 else whole} of {cores:g} cores"


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


def ranks(found: RanksFinding) -> list[str]:
    """Return what they wait, the straggler or why none is named, and what is odd, a line each."""
    return [_head(found), *_straggler(found), *_late(found), *(f"Ranks: {note}" for note in found.notes)]


def facts(found: RanksFinding) -> list[str]:
    """Return what speaks for the straggler's cause."""
    return [*found.straggler.for_] if found.straggler else []


def _head(found: RanksFinding) -> str:
    known = [row.wait_share for row in found.rows if row.wait_share is not None]
    seen = f"Ranks: {found.reported} of {found.world_size} reported"
    if not known:
        return f"{seen}; what they wait for each other is unknown"
    least, middle, most = (numbers.percent(100 * value) for value in (min(known), median(known), max(known)))
    shares = f"wait for each other {least} (least), {middle} (median), {most} (most) of the time"
    if all(row.device == "cpu" for row in found.rows):
        return f"{seen}; they {shares}"
    return f"{seen}; their hosts {shares}, and what their devices wait is not seen"


def _straggler(found: RanksFinding) -> list[str]:
    if found.abstains:
        return [f"No straggler is named: {found.abstains}"]
    return [_named(found.straggler)] if found.straggler else ["No rank holds the others up"]


def _named(one: StragglerRank) -> str:
    where = f" on {one.node}" if one.node else ""
    kind = "Straggler" if one.certain else "Possible straggler"
    gap = numbers.percent(100 * one.gap)
    return f"{kind}: rank {one.rank}{where}, {one.cause}: {one.title}; they wait {gap} of the time for it"


def _late(found: RanksFinding) -> list[str]:
    if found.late is None:
        return []
    took = numbers.duration(found.late.seconds)
    return [f"Late start: rank {found.late.rank} began last; the others had waited {took} longer or more"]


def sample(answer: SampleAnswer) -> str:
    why = f" ({answer.why})" if answer.why else ""
    lines = [f"{answer.outcome}{why}, exit status {answer.exit_status}"]
    window = answer.window
    if answer.failure:
        lines += failure(answer.failure)
    if window:
        lines[0] += f"; {window_text(window.start_s, window.end_s, window.samples)}"
    lines += devices(answer.devices, answer.across)
    rate = answer.throughput.steps_per_s
    # The probe's own rate is among its figures.
    if rate is not None and rate != (answer.probe or {}).get("steps_per_s"):
        lines.append(f"throughput {numbers.number(rate, 'steps/s')}")
    lines += energy(answer.joules_per_step)
    lines += latency(answer.latency)
    lines += [f"note: {line}" for line in answer.notes]
    lines += inside_of(answer)
    return "\n".join([*lines, f"samples {answer.csv}", f"log     {answer.log}", *_trace(answer)])


def inside_of(answer: SampleAnswer | SamplesAnswer) -> list[str]:
    """Render what the training process showed from inside."""
    record = {"run": "probe", "probe": answer.probe, "probe_reason": answer.probe_reason}
    lines = [*inside([side("probe", [record])]), *places(answer.stacks)]
    if answer.sections:
        lines += sections.of_run(answer.sections)
    return lines


def failure(found: FailureLines) -> list[str]:
    """Format a failure: its class and last line, and what to try."""
    last = f": {found.lines[-1].strip()}" if found.lines else ""
    helps = remedy(found.class_, found.lines)
    return [f"failure {found.class_}{last}", *([f"  try {helps}"] if helps else [])]


def _trace(answer: SampleAnswer) -> list[str]:
    if not answer.trace:
        return []
    return trace(answer.trace)


def window_text(start_s: float, end_s: float, samples: int) -> str:
    return f"window {start_s:.1f} to {end_s:.1f} s, {counted(samples, 'sample')}"
