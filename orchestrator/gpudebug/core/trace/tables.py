"""Kernels, copies, synchronising calls and operators of a trace, the costliest first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.arrays import Recording, TraceCopies
from gpudebug.core.trace.devices import Launches, TraceDevice
from gpudebug.core.trace.events import COMMUNICATION, EventKind, copy_of
from gpudebug.core.trace.hosts import Stack
from gpudebug.core.trace.spans import Cover, Floats, Union

# Rows of the table: the first half, and the slowest of the others.
ROWS = 40


def steps(recording: Recording, found: list[TraceDevice], launches: Launches) -> dict[str, object] | None:
    """`count`, medians and the `table`; None if no step was marked. Busy shares are means over devices.

    `unseen` counts steps that launched work of which the trace shows nothing: their shares are None.
    """
    if not recording.steps:
        return None
    numbers = sorted(recording.steps, key=lambda n: recording.steps[n])
    span = np.array([recording.steps[n] for n in numbers])
    wall = span[:, 1] - span[:, 0]
    loaders = recording.hosts.loaders
    waited = Cover(loaders.union()).within(span[:, 0], span[:, 1]) if len(loaders) else None
    busy = np.mean([_busy(d, span) for d in found], axis=0) if found else None
    kernels = _kernels(found, launches, span) if found else None
    unseen = _unseen(busy, kernels, launches, span)
    seen = ~unseen
    with np.errstate(divide="ignore", invalid="ignore"):
        share = None if busy is None else busy / wall
    first = list(range(min(len(numbers), ROWS // 2)))
    slow = sorted(range(len(first), len(numbers)), key=lambda i: -wall[i])[: ROWS - len(first)]
    return {
        "count": len(numbers),
        "wall_p50_s": float(np.median(wall)) / 1e6,
        "wall_max_s": float(wall.max()) / 1e6,
        "unseen": int(unseen.sum()),
        "busy_share": None
        if busy is None or not wall[seen].sum()
        else float(busy[seen].sum() / wall[seen].sum()),
        "data_wait_share": None if waited is None or not wall.sum() else float(waited.sum() / wall.sum()),
        "kernels_per_step": None if kernels is None or not seen.any() else float(kernels[seen].mean()),
        "table": [
            {
                "step": numbers[i],
                "wall_s": float(wall[i]) / 1e6,
                "busy_share": None if share is None or not wall[i] or unseen[i] else float(share[i]),
                "kernels": None if kernels is None or unseen[i] else int(kernels[i]),
                "data_wait_s": None if waited is None else float(waited[i]) / 1e6,
            }
            for i in sorted(first + slow)
        ],
    }


def _unseen(
    busy: Floats | None, kernels: Floats | None, launches: Launches, span: Floats
) -> NDArray[np.bool_]:
    """Return which steps launched work of which nothing ran, in them or later, by the trace."""
    if busy is None or kernels is None:
        return np.zeros(len(span), bool)
    asked = np.sort(launches.start)
    launched = np.searchsorted(asked, span[:, 1]) - np.searchsorted(asked, span[:, 0])
    unseen: NDArray[np.bool_] = (launched > 0) & (busy <= 0) & (kernels <= 0)
    return unseen


def _busy(device: TraceDevice, span: Floats) -> Floats:
    """Busy microseconds of a device in each step."""
    union, busy = Union(), np.zeros(len(span))
    for part in device.parts():
        busy += Cover(union.add(part.start, part.end)).within(*span.T)
    return busy


def _kernels(found: list[TraceDevice], launches: Launches, span: Floats) -> Floats:
    """Kernels of each step, by the moment of their launch, else of their start."""
    count = np.zeros(len(span))
    for device in found:
        for part in device.parts():
            kernel = part.kind == EventKind.KERNEL
            when, launch = part.start[kernel], part.launch[kernel]
            known = launch >= 0
            when[known] = launches.start[launch[known]]
            at = np.searchsorted(span[:, 0], when, side="right") - 1
            inside = (at >= 0) & (when < span[at, 1])
            count += np.bincount(at[inside], minlength=len(span))
    return count


TOP = 15
_STACKS = 3
_NAME = 160


def kernels(recording: Recording, found: list[TraceDevice]) -> list[dict[str, object]]:
    """Return the kernels that took the most device time."""
    size = len(recording.names.texts)
    count, us = np.zeros(size), np.zeros(size)
    least, most = np.full(size, np.inf), np.zeros(size)
    for device in found:
        for part in device.parts():
            kernel = part.kind == EventKind.KERNEL
            name, length = part.name[kernel], part.duration[kernel]
            count += np.bincount(name, minlength=size)
            us += np.bincount(name, length, size)
            np.minimum.at(least, name, length)
            np.maximum.at(most, name, length)
    flags = recording.names.flags
    return [
        {
            "name": recording.names.texts[i][:_NAME],
            "communication": bool(flags[i] & COMMUNICATION),
            "count": int(count[i]),
            "seconds": us[i] / 1e6,
            "mean_us": us[i] / count[i],
            "min_us": float(least[i]),
            "max_us": float(most[i]),
        }
        for i in np.argsort(-us, kind="stable")[:TOP].tolist()
        if count[i]
    ]


def copies(recording: Recording) -> list[dict[str, object]]:
    """Copies and fills by kind and by host memory; `gb_s` is bytes over seconds, 10**9 bytes.

    `mean_gb_s` and `max_gb_s` are of the single copies. Unknown bytes are None.
    """
    groups: dict[tuple[str, str | None], TraceCopies] = {}
    for name, one in recording.copies.items():
        group = groups.setdefault(copy_of(recording.names.texts[name]), TraceCopies())
        for field in ("count", "us", "bytes", "told_us", "rates", "rated"):
            setattr(group, field, getattr(group, field) + getattr(one, field))
        group.fastest = max(group.fastest, one.fastest)
    return [
        {
            "kind": kind,
            "host_memory": memory,
            "count": group.count,
            "bytes": int(group.bytes) if group.told_us else None,
            "seconds": group.us / 1e6,
            "gb_s": group.bytes / group.told_us / 1e3 if group.told_us else None,
            "mean_gb_s": group.rates / group.rated if group.rated else None,
            "max_gb_s": group.fastest if group.rated else None,
        }
        for (kind, memory), group in sorted(groups.items(), key=lambda g: -g[1].us)
    ]


def operators(recording: Recording) -> list[dict[str, object]]:
    """Return the operators with the most host time of their own and those with the most device time.

    `device_s` sums the kernels and copies that the operator itself launched; None if the trace holds no
    device events or does not link them to operators.
    """
    device = np.zeros(len(recording.names.texts)) if recording.device_us is None else recording.device_us
    linked = bool(device.any())
    hosts = recording.hosts
    own = sorted(hosts.own, key=lambda n: -hosts.own[n])[:TOP]
    costly = [i for i in np.argsort(-device, kind="stable")[:TOP].tolist() if device[i] > 0]
    return [
        {
            "name": recording.names.texts[n][:_NAME],
            "calls": hosts.calls.get(n, 0),
            "host_s": hosts.total.get(n, 0.0) / 1e6,
            "self_s": max(0.0, hosts.own.get(n, 0.0)) / 1e6,
            "device_s": float(device[n]) / 1e6 if linked else None,
        }
        for n in dict.fromkeys([*costly, *own])
    ]


def syncs(recording: Recording) -> list[dict[str, object]]:
    """Calls that make the host wait for the device, the longest first, with who called them.

    `kind` is `runtime` (a call of the driver), or `operator` (an operator that reads a value, such as
    aten::item; its runtime call is counted too). `stacks` hold frames from the innermost outwards.
    """
    texts = recording.names.texts
    found = recording.syncs
    called: dict[int, dict[tuple[str, ...], list[float]]] = {name: {} for name in found.count}
    for name, stack, us in _callers(recording):
        of_stack = called[name].setdefault(stack, [0, 0.0])
        of_stack[0] += 1
        of_stack[1] += us
    rows = [
        _sync(texts[name], "runtime", found.count[name], found.us[name], called[name]) for name in found.count
    ]
    read: dict[int, dict[tuple[str, ...], list[float]]] = {}
    for (name, frames), (count, us) in recording.hosts.reads.items():
        of_stack = read.setdefault(name, {}).setdefault(_text(recording, frames), [0, 0.0])
        of_stack[0] += count
        of_stack[1] += us
    rows += [
        _sync(
            texts[name], "operator", int(sum(s[0] for s in of.values())), sum(s[1] for s in of.values()), of
        )
        for name, of in read.items()
    ]
    return sorted(rows, key=lambda r: (r["kind"] != "runtime", -r["seconds"]))[:TOP]


def _callers(recording: Recording) -> list[tuple[int, tuple[str, ...], float]]:
    """Name, stack and microseconds of each synchronising call that was kept."""
    found = recording.syncs
    if not len(found.name):
        return []
    thread = np.array(found.thread)
    start, length = np.array(found.start), np.array(found.duration, np.float64)
    operator = recording.links.names(np.array(found.external, np.int64))
    names = np.array(found.name)
    rows = []
    for number in np.unique(thread).tolist():
        mine = np.flatnonzero(thread == number)
        stacks = recording.hosts.holders.find(
            number, start[mine].tolist(), (start[mine] + length[mine]).tolist()
        )
        for i, stack in zip(mine.tolist(), stacks, strict=True):
            frames = _text(recording, stack) if stack else ()
            by_id = recording.names.texts[operator[i]] if operator[i] else None
            if by_id and by_id not in frames:
                frames = (by_id, *frames)
            rows.append((int(names[i]), frames, float(length[i])))
    return rows


def _text(recording: Recording, frames: Stack) -> tuple[str, ...]:
    return tuple(recording.names.texts[name][:_NAME] for name, _ in frames)


def _sync(
    call: str, kind: str, count: int, us: float, stacks: dict[tuple[str, ...], list[float]]
) -> dict[str, Any]:
    top = sorted(stacks.items(), key=lambda s: -s[1][1])[:_STACKS]
    return {
        "call": call[:_NAME],
        "kind": kind,
        "count": count,
        "seconds": us / 1e6,
        "stacks": [{"frames": list(f), "count": int(n), "seconds": t / 1e6} for f, (n, t) in top if f],
    }
