"""A trace as text for people: where the device idles first, details after."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudebug.core.answers.analyze import RanksTogether, TraceAnswer
from gpudebug.core.statistics import numbers

Row = Mapping[str, Any]

_ROWS = 8
_STEPS = 12
_WIDTH = 64
# Causes of less than this share of the idle time are added up.
_LEAST = 0.001
# What an elementwise kernel computes is in its template arguments.
_FUNCTOR = re.compile(r"(\w*[Ff]unctor\w*|\w+_kernel_cuda|\w+Ops?\b)")
# A frame of Python: `train.py(8): <module>`, `<built-in method item of Tensor>`.
_PYTHON = re.compile(r"<|\S+\(\d+\): ")
# What a cause of idle time is called, and what to try first.
_CAUSES = {
    "data_loading": (
        "waiting for the data loader",
        "more workers, larger prefetch_factor, persistent_workers, cheaper or cached preprocessing",
    ),
    "synchronising": (
        "after a call that waits for the device",
        "read losses and metrics every N steps, keep them on the device; the calls are listed below",
    ),
    "allocation": ("allocating memory", "warm up with the largest shapes, avoid empty_cache, keep buffers"),
    "copy_call": ("in a copy call", "pin host memory and copy with non_blocking=True"),
    "operator": (
        "running operators on the host",
        "the host is slower than the device: CUDA graphs, torch.compile, fused optimizers, larger batches",
    ),
    "python": (
        "in Python between operators",
        "profile with with_stack=True, or time sections of the loop, to see which code it is",
    ),
    "unknown": (
        "nothing that the trace shows",
        "profile with with_stack=True; mark steps with prof.step() and spans with record_function",
    ),
    "launch": (
        "launching the next kernel",
        "fewer, larger kernels: torch.compile, CUDA graphs, fused operators",
    ),
    "queued": (
        "ahead: the next work was queued already",
        "gaps between queued kernels and waits for other streams or devices; fewer, larger kernels",
    ),
    "held_back": (
        "ahead: launched, held back on the device",
        "the kernel waited for another stream, device or event: look at collectives and stream waits",
    ),
}


def trace(answer: TraceAnswer) -> str:
    """Render the idle time by what the host did in it, ranked; then steps, copies, calls, operators."""
    parts = [
        _head(answer),
        _idle(answer),
        _steps(answer),
        _host(answer),
        _longest(answer),
        _copies(answer),
        _syncs(answer),
        _communication(answer),
        _kernels(answer),
        _operators(answer),
    ]
    return "\n\n".join("\n".join(lines) for lines in map(list, parts) if lines)


def ranks(answer: RanksTogether) -> str:
    """Render traces of several ranks beside each other: who arrives last, and what it costs."""
    if answer.reason:
        return f"Ranks together: not compared, {answer.reason}"
    lines = [
        f"Ranks together: {answer.collectives:,} collectives on all {len(answer.ranks)}, first to last "
        f"arrival {_s(answer.skew_p50_s)} (median), {_s(answer.skew_max_s)} the most",
        f"  {'rank':>4} {'busy':>7} {'waited':>9} {'exposed':>9} {'came last':>10} {'cost others':>12}",
    ]
    lines += [
        f"  {r.rank:>4} {_share(r.busy_share):>7} {_s(r.waited_s):>9} {_s(r.exposed_s):>9} "
        f"{r.last:>10,} {_s(r.cost_s):>12}"
        for r in answer.ranks
    ]
    late = next((r for r in answer.ranks if r.rank == answer.late), None)
    if late is None:
        return "\n".join([*lines, "No rank makes the others wait most of the time"])
    what = (
        f"Rank {late.rank} makes the others wait: it waits least and arrives last, {_s(late.cost_s)} in all"
    )
    return "\n".join([*lines, what])


def cause(name: str) -> str:
    """Describe a cause of idle time."""
    return _CAUSES[name][0] if name in _CAUSES else name


def _head(answer: TraceAnswer) -> Iterator[str]:
    steps = answer.steps
    marked = _plural(steps["count"], "step") if steps else "no steps marked"
    of = f" of {answer.world_size}" if answer.world_size is not None else ""
    rank = f", rank {answer.rank}{of}" if answer.rank is not None else ""
    rank += f", process {answer.process}" if answer.process is not None else ""
    by = f" by {answer.source}" if answer.source else ""
    yield f"{answer.file}: trace of {_s(answer.span_s)}{by}, {marked}, {answer.events:,} events{rank}"
    for note in answer.notes:
        yield f"note: {note}"
    if answer.reason:
        yield f"device utilisation unknown: {answer.reason}"
    for device in answer.devices:
        name = f" ({device['name']})" if device["name"] else ""
        yield (
            f"device {device['device']}{name}: busy {_share(device['busy_share'])} "
            f"of {_s(device['span_s'])}, idle {_s(device['idle_s'])}"
        )


def _idle(answer: TraceAnswer) -> Iterator[str]:
    gaps = answer.gaps
    if not gaps or not gaps["by_cause"]:
        return
    yield f"Where the device idles: {_s(gaps['total_s'])} in {gaps['count']:,} gaps. Meanwhile the host was"
    shown = [r for r in gaps["by_cause"] if r["share"] >= _LEAST] or gaps["by_cause"][:1]
    for rank, row in enumerate(shown, start=1):
        yield (
            f"{rank:>3}. {cause(row['cause']):<40} {_share(row['share']):>6} {_s(row['seconds']):>9} "
            f"{row['count']:>9,} gaps"
        )
        named = [n for n in row["names"] if n["seconds"] >= 0.01 * row["seconds"]]
        if rank <= 3 and named:
            yield "       " + "; ".join(f"{_short(n['name'], 40)} {_s(n['seconds'])}" for n in named[:2])
    if len(shown) < len(gaps["by_cause"]):
        rest = gaps["by_cause"][len(shown) :]
        yield f"     {len(rest)} others, together {_s(sum(r['seconds'] for r in rest))}"
    first = shown[0]["cause"]
    yield f"Try first: {_CAUSES[first][1]}"


def _steps(answer: TraceAnswer) -> Iterator[str]:
    steps = answer.steps
    if not steps:
        return
    yield (
        f"Steps: {_s(steps['wall_p50_s'])} each (median), {_s(steps['wall_max_s'])} the slowest; "
        f"device busy {_share(steps['busy_share'])}, waiting for data {_share(steps['data_wait_share'])}"
    )
    table = steps["table"]
    yield f"  {'step':>6} {'wall':>9} {'busy':>7} {'kernels':>8} {'data wait':>10}"
    for row in table[:_STEPS]:
        yield (
            f"  {row['step']:>6} {_s(row['wall_s']):>9} {_share(row['busy_share']):>7} "
            f"{_count(row['kernels']):>8} {_s(row['data_wait_s']):>10}"
        )
    if steps["count"] > _STEPS:
        yield f"  and {steps['count'] - _STEPS:,} more (--json has {len(table)})"


def _host(answer: TraceAnswer) -> Iterator[str]:
    """Render the host's spans, only for a trace without a device."""
    if answer.devices:
        return
    host = answer.host
    yield f"Host: operators ran in {_share(host['operator_share'])} of {_s(host['span_s'])}"
    loading = host["data_loading"]
    if loading:
        yield (
            f"  waiting for the data loader {_share(loading['share'])}: {_s(loading['seconds'])} "
            f"in {_plural(loading['count'], 'fetch', 'fetches')}"
        )
        if loading["share"] is not None and loading["share"] >= 0.1:
            yield f"Try first: {_CAUSES['data_loading'][1]}"
    else:
        yield "  no data loader in the trace"


def _longest(answer: TraceAnswer) -> Iterator[str]:
    if answer.gaps and answer.gaps["longest"]:
        gap = answer.gaps["longest"][0]
        yield f"Longest gap: {_s(gap['seconds'])} at {gap['start_s']:.3f} s, host: {cause(gap['cause'])}"


def _copies(answer: TraceAnswer) -> Iterator[str]:
    if not answer.memcpy:
        return
    yield "Copies"
    for row in answer.memcpy:
        memory = f" {row['host_memory']}" if row["host_memory"] else ""
        size = f"{row['bytes'] / 1e6:,.1f} MB" if row["bytes"] is not None else numbers.UNKNOWN
        yield (
            f"  {row['kind'] + memory:<16} {row['count']:>9,} {size:>14} {_s(row['seconds']):>9} "
            f"{numbers.number(row['gb_s'], 'GB/s'):>12}"
        )


def _syncs(answer: TraceAnswer) -> Iterator[str]:
    if not answer.syncs:
        return
    on_device = bool(answer.devices)
    yield "Calls that wait for the device" if on_device else "Reads that would wait for a device"
    for row in answer.syncs[:_ROWS]:
        yield f"  {_short(row['call'], 40):<40} {row['count']:>9,} {_s(row['seconds']):>9}"
        for stack in row["stacks"][:1]:
            frames = " < ".join(_short(f, 40) for f in stack["frames"][:3])
            yield f"      {stack['count']:,} in {frames}"


def _communication(answer: TraceAnswer) -> Iterator[str]:
    nccl = answer.nccl
    if nccl:
        yield (
            f"NCCL: {_s(nccl['seconds'])}, {_share(nccl['share_of_busy'])} of the busy time; "
            f"{_share(nccl['overlapped_share'])} of it behind computation, {_s(nccl['exposed_s'])} exposed"
        )


def _kernels(answer: TraceAnswer) -> Iterator[str]:
    if not answer.kernels:
        return
    a_step = numbers.number(answer.kernels_per_step)
    yield f"Kernels: {a_step} a step, {_us(answer.mean_kernel_us)} each (mean)"
    for row in answer.kernels[:_ROWS]:
        yield (
            f"  {_short(row['name']):<{_WIDTH}} {row['count']:>8,} {_s(row['seconds']):>9} "
            f"{_us(row['mean_us']):>9}"
        )


def _operators(answer: TraceAnswer) -> Iterator[str]:
    rows = answer.operators
    if not rows:
        return
    yield f"{'Operators':<{_WIDTH - 16}} {'calls':>8} {'host self':>10} {'host':>9} {'device':>9}"
    for row in _both(rows):
        yield (
            f"  {_short(row['name'], _WIDTH - 18):<{_WIDTH - 18}} {row['calls']:>8,} {_s(row['self_s']):>10} "
            f"{_s(row['host_s']):>9} {_s(row['device_s']):>9}"
        )


def _both(rows: Sequence[Row]) -> list[Row]:
    """Return the first by device time and the first by host time, each once."""
    by_device = sorted(rows, key=lambda r: -(r["device_s"] or 0.0))[: _ROWS // 2]
    by_host = sorted(rows, key=lambda r: -r["self_s"])[:_ROWS]
    chosen = {r["name"]: r for r in [*by_device, *by_host]}
    return list(chosen.values())[:_ROWS]


def _short(name: str, width: int = _WIDTH) -> str:
    """Shorten a kernel's name: without its return type, template arguments and parameters, cut to `width`."""
    text = name.replace("(anonymous namespace)::", "")
    if (text.startswith("void ") or "<" in text) and not _PYTHON.match(text):
        inside = _FUNCTOR.search(text)
        text = _bare(text).removeprefix("void ").replace("at::native::", "")
        text += f" [{inside.group(1)}]" if inside and inside.group(1) not in text else ""
    return text if len(text) <= width else text[: width - 3] + "..."


def _bare(text: str) -> str:
    while (less := re.sub(r"<[^<>]*>|\([^()]*\)", "", text)) != text:
        text = less
    return re.split(r"[<(]", text)[0].strip() or text


def _share(value: float | None) -> str:
    return numbers.percent(None if value is None else 100 * value)


def _s(value: float | None) -> str:
    return numbers.UNKNOWN if value is None else _us(value * 1e6)


def _us(value: float | None) -> str:
    if value is None:
        return numbers.UNKNOWN
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(value) >= size:
            return numbers.number(value / size, unit)
    return numbers.number(value, "us")


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _count(value: int | None) -> str:
    return numbers.UNKNOWN if value is None else f"{value:,}"
