"""A trace in one answer: where the device idles, what the host did meanwhile, and what ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Protocol

import numpy as np

from gpudebug.core.errors import GpudebugError
from gpudebug.core.trace.arrays import MOST_DEVICES, Recording
from gpudebug.core.trace.devices import Launches, TraceDevice, devices, launched_before, streams, times
from gpudebug.core.trace.events import Event, EventKind
from gpudebug.core.trace.gaps import Idle
from gpudebug.core.trace.ranks import Collectives, collectives
from gpudebug.core.trace.reader import TraceReader
from gpudebug.core.trace.spans import Cover, merged, total
from gpudebug.core.trace.tables import copies, kernels, operators, steps, syncs

NO_DEVICE = (
    "no device event in the trace: nothing ran on a GPU, or its activity was not recorded "
    "(torch.profiler: ProfilerActivity.CUDA, nsys: --trace=cuda)"
)
GRAPHS = "what the trace shows is unreliable: of {} of {} replays of CUDA graphs no kernel is in it"
# A replay or two at the end may be cut off with the trace.
_UNSEEN = 0.02
_DIGITS = 7
_STREAMS = 8
_NEXT = "profile some steps: torch.profiler.profile(schedule=...) with prof.step() in each iteration"


class EventSource(Protocol):
    """Where events come from: a `TraceReader`, or what reads another program's recording.

    Known once all `batches` were taken: `truncated`, `unreadable`, and `notes` of its own.
    """

    metadata: dict[str, Any]
    truncated: bool
    unreadable: int
    notes: list[str]

    def batches(self) -> Iterator[list[Event]]: ...


@dataclass(frozen=True)
class TraceSummary:
    """What a trace says; `answer` is that of `analyze` without `file`, at most some 30 kB.

    `collectives` are for a comparison with the traces of other ranks.
    """

    answer: dict[str, Any]
    collectives: Collectives


def summarise(chunks: Iterable[bytes]) -> TraceSummary:
    """Read a trace, JSON or gzip in chunks of any size, and say what it holds.

    Times in the answer are seconds, those named `_us` microseconds; shares are 0 to 1. What the trace
    cannot tell is None. Raises GpudebugError if the bytes are no trace or hold no event.
    """
    return summarise_events(TraceReader(chunks))


def summarise_events(reader: EventSource) -> TraceSummary:
    """As `summarise`, of events that some reader gives."""
    recording = Recording()
    for events in reader.batches():
        recording.feed(events)
        # Freed before the next batch is decoded: two at once would double the memory.
        del events
    recording.finish()
    if not recording.events:
        raise GpudebugError(_nothing(reader), next=_NEXT)
    found = devices(recording)
    return TraceSummary(_rounded(_answer(reader, recording, found)), collectives(recording, found))


def _nothing(reader: EventSource) -> str:
    if reader.unreadable:
        return f"has no readable event ({reader.unreadable:,} cannot)"
    return "is cut off before its first event" if reader.truncated else "has no events of the host or a GPU"


def _answer(reader: EventSource, recording: Recording, found: list[TraceDevice]) -> dict[str, object]:
    launches = Launches(recording)
    idle = Idle(recording, launches)
    for device in found:
        idle.add(device)
    of_steps = steps(recording, found, launches)
    meta = reader.metadata
    cluster = meta.get("distributedInfo")
    cluster = cluster if isinstance(cluster, dict) else {}
    rows = [_device(recording, device, launches, meta) for device in found]
    hidden = recording.graphs_unseen > _UNSEEN * recording.graphs
    if hidden:
        _forget_utilisation(rows, of_steps)
    return {
        "kind": "trace",
        "truncated": reader.truncated,
        "notes": _notes(reader, recording, of_steps),
        "events": recording.events,
        "device_events": len(recording.start),
        "span_s": (recording.last - recording.first) / 1e6,
        "began": _began(meta, recording),
        "rank": cluster.get("rank"),
        "world_size": cluster.get("world_size"),
        "busy_share": _mean([r["busy_share"] for r in rows]),
        "reason": GRAPHS.format(f"{recording.graphs_unseen:,}", f"{recording.graphs:,}")
        if hidden
        else (None if found else NO_DEVICE),
        "devices": rows,
        "gaps": idle.summary() if found and not hidden else None,
        "kernels_per_step": of_steps["kernels_per_step"] if of_steps else None,
        "mean_kernel_us": _mean_kernel(found),
        "kernels": kernels(recording, found),
        "memcpy": copies(recording),
        "syncs": syncs(recording),
        "nccl": _communication(rows),
        "operators": operators(recording),
        "steps": of_steps,
        "host": _host(recording),
    }


def _forget_utilisation(rows: list[dict[str, Any]], of_steps: dict[str, Any] | None) -> None:
    """Take out what rests on all work of the device being in the trace."""
    for row in rows:
        row.update(dict.fromkeys({"busy_share", "idle_s", "without_last_step"} & row.keys()))
    for one in [of_steps, *of_steps["table"]] if of_steps else []:
        one["busy_share"] = None


def _began(meta: dict[str, Any], recording: Recording) -> str | None:
    """Return when the first event began, in UTC; its `ts` counts from `baseTimeNanoseconds`."""
    base = meta.get("baseTimeNanoseconds")
    if not isinstance(base, int) or isinstance(base, bool) or recording.base is None:
        return None
    try:
        began = datetime.fromtimestamp(base / 1e9 + (recording.base + recording.first) / 1e6, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return began.strftime("%Y-%m-%d %H:%M:%S")


def _device(
    recording: Recording, device: TraceDevice, launches: Launches, meta: dict[str, object]
) -> dict[str, Any]:
    last = max((s[0] for s in recording.steps.values()), default=None)
    whole = last is None or len(recording.steps) < 2
    of_streams = streams(recording, device, launches)
    return {
        "device": device.number,
        "name": _name(meta, device.number),
        **(times(device.parts()) or {}),
        "without_last_step": None
        if whole or last is None
        else times(launched_before(device, launches, last)),
        "queue": launches.queue(device.launch, device.start),
        "launches": launches.delays(device.launch, device.start),
        "streams_count": len(of_streams),
        "streams": of_streams[:_STREAMS],
    }


def _name(meta: dict[str, object], number: int | str) -> str | None:
    known = meta.get("deviceProperties")
    for one in known if isinstance(known, list) else []:
        if isinstance(one, dict) and one.get("id") == number and isinstance(one.get("name"), str):
            return str(one["name"])
    return None


def _mean_kernel(found: list[TraceDevice]) -> float | None:
    count, us = 0, 0.0
    for device in found:
        for part in device.parts():
            kernel = part.kind == EventKind.KERNEL
            count += np.count_nonzero(kernel)
            us += float(part.duration[kernel].sum(dtype=np.float64))
    return us / count if count else None


def _communication(rows: list[dict[str, Any]]) -> dict[str, object] | None:
    """Shares over all devices; None if no kernel communicates."""
    seconds = sum(r["communication_s"] for r in rows)
    if not seconds:
        return None
    busy = sum(r["busy_s"] for r in rows)
    both = sum(r["communication_overlapped_s"] for r in rows)
    return {
        "seconds": seconds,
        "share_of_busy": seconds / busy if busy else None,
        "overlapped_share": both / seconds,
        "exposed_s": seconds - both,
    }


def _host(recording: Recording) -> dict[str, object]:
    """Return what the host's own spans say; of a CPU-only trace, all there is."""
    hosts = recording.hosts
    span = recording.last - recording.first
    ran, loaded = hosts.operators.union(), hosts.loaders.union()
    both = merged(*ran) if len(ran[0]) else None
    return {
        "span_s": span / 1e6,
        "operator_share": total(both) / span if both and span > 0 else None,
        "data_loading": {
            "count": len(hosts.loaders),
            "seconds": total(loaded) / 1e6,
            "share": total(loaded) / span if span > 0 else None,
            "operator_s": float(Cover(ran).within(*loaded).sum()) / 1e6,
        }
        if len(hosts.loaders)
        else None,
    }


def _notes(reader: EventSource, recording: Recording, of_steps: dict[str, Any] | None) -> list[str]:
    hosts = recording.hosts
    merged_ = max(
        s.near for s in (hosts.operators, hosts.annotations, hosts.loaders, *recording.blocking.values())
    )
    notes = [
        (reader.truncated, "the trace is cut off: what is there was analysed"),
        (reader.unreadable, f"{reader.unreadable:,} events cannot be read"),
        (recording.impossible, f"{recording.impossible:,} events with an impossible time are left out"),
        (hosts.late, f"{hosts.late:,} host events are out of order: operators' own times are too long"),
        (
            len(recording.start) and recording.device_us is None,
            "device events do not name their operators: device time by operator is unknown",
        ),
        (
            recording.beyond,
            f"{recording.beyond:,} events on devices beyond the first {MOST_DEVICES} are left out",
        ),
        (
            unseen := of_steps["unseen"] if of_steps else 0,
            f"steps that launched work of which nothing is in the trace: {unseen:,}; how busy they were is "
            "unknown",
        ),
        (recording.names.full, "too many names: some are counted as (other names)"),
        (merged_, f"host spans less than {merged_:.2g} us apart are taken as one"),
        (
            len(recording.start) and not recording.launched,
            "no launch is in the trace: what the host did in gaps is less certain",
        ),
    ]
    return [*reader.notes, *(text for holds, text in notes if holds)]


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _rounded(value: Any) -> Any:
    """Seven significant digits: shorter, and as exact as a trace is."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
