"""A device's time: busy and idle, by kind of work, by stream, with the gaps between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.arrays import Recording
from gpudebug.core.trace.events import COMMUNICATION, TRANSFER, EventKind
from gpudebug.core.trace.spans import Floats, Ints, Union, blocks

# Launches that are taken at once to walk through the queue's depth.
_BLOCK = 50_000
# Depth is counted up to here; a CUDA stream's queue holds about a thousand.
_DEEPEST = 4096
LOW = 2


class Launches:
    """The launches of a recording: `start` and `duration` in microseconds."""

    def __init__(self, recording: Recording) -> None:
        self.start = np.frombuffer(recording.launch_start)
        self.duration = np.frombuffer(recording.launch_duration, np.float32)

    def delays(self, launch: NDArray[np.int32], start: Floats) -> dict[str, object] | None:
        """Return how long the calls took and how long the device's work waited behind them; microseconds."""
        delay = np.empty(np.count_nonzero(launch >= 0), np.float32)
        if not len(delay):
            return None
        calls, done = 0.0, 0
        for part in blocks(len(start)):
            known = launch[part] >= 0
            which = launch[part][known]
            call = self.duration[which].astype(np.float64)
            calls += float(call.sum())
            wait = start[part][known] - self.start[which] - call
            delay[done : done + len(which)] = np.maximum(wait, 0.0)
            done += len(which)
        return {
            "count": len(delay),
            "mean_call_us": calls / len(delay),
            "mean_delay_us": float(delay.mean(dtype=np.float64)),
            "p50_delay_us": float(np.median(delay, overwrite_input=True)),
        }

    def queue(self, launch: NDArray[np.int32], start: Floats) -> dict[str, object] | None:
        """Depth of the launch queue over time: launched and not yet started.

        Mean and p50 are over time, from the first launch to the last start; shares are of that time.
        """
        begin, asked = self._pairs(launch, start)
        if not len(begin):
            return None
        span = float(begin[-1] - asked[0])
        if span <= 0:
            return None
        held = _time_at_depth(asked, begin)
        share = held / held.sum()
        reached = np.cumsum(share)
        return {
            "mean": sum(float((begin[p] - asked[p]).sum()) for p in blocks(len(begin))) / span,
            "p50": int(np.searchsorted(reached, 0.5)),
            "max": _depths(asked, begin)[0],
            "share_empty": float(share[0]),
            "share_low": float(share[: LOW + 1].sum()),
        }

    def queue_of_stream(
        self, launch: NDArray[np.int32], start: Floats, mine: NDArray[np.bool_]
    ) -> dict[str, object]:
        """Deepest queue of the stream with the events `mine`; mean depth over its changes (not over time)."""
        begin, asked = self._pairs(launch, start, mine)
        if not len(begin):
            return {"queue_max": None, "queue_mean_of_changes": None}
        most, summed = _depths(asked, begin)
        return {"queue_max": most, "queue_mean_of_changes": summed / (2 * len(begin))}

    def _pairs(
        self, launch: NDArray[np.int32], start: Floats, mine: NDArray[np.bool_] | None = None
    ) -> tuple[Floats, Floats]:
        """When work began and when it was asked for, each sorted; never asked for later than begun.

        `start` must be sorted.
        """
        known = launch >= 0
        if mine is not None:
            known &= mine
        begin = start if known.all() else start[known]
        asked, done = np.empty(len(begin)), 0
        for part in blocks(len(start)):
            which = launch[part][known[part]]
            now = slice(done, done + len(which))
            asked[now] = np.minimum(self.start[which], begin[now])
            done += len(which)
        asked.sort()
        return begin, asked


def _depths(asked: Floats, begin: Floats) -> tuple[int, int]:
    """Return the greatest depth just after a launch; the sum of the depths after every launch and start."""
    most, summed = 0, 0
    for at in range(0, len(asked), _BLOCK):
        part = slice(at, at + _BLOCK)
        order = np.arange(at + 1, at + 1 + len(asked[part]))
        # At the same microsecond a launch sorts before a start.
        after = order - np.searchsorted(begin, asked[part], side="left")
        left = np.searchsorted(asked, begin[part], side="right") - order
        most = max(most, int(after.max()))
        summed += int(after.sum() + left.sum())
    return most, summed


def _time_at_depth(asked: Floats, begin: Floats) -> Floats:
    """Microseconds at each depth, the last entry for all that is deeper; walked through in blocks."""
    held = np.zeros(_DEEPEST + 1)
    gone = 0
    for at in range(0, len(asked), _BLOCK):
        part = asked[at : at + _BLOCK]
        limit = asked[at + _BLOCK] if at + _BLOCK < len(asked) else np.inf
        until = int(np.searchsorted(begin, limit, side="right"))
        started = begin[gone:until]
        when = np.concatenate((part, started))
        change = np.concatenate((np.ones(len(part), np.int8), np.full(len(started), -1, np.int8)))
        order = np.argsort(when, kind="stable")
        depth = (at - gone) + np.cumsum(change[order])
        when = np.append(when[order], limit if np.isfinite(limit) else when.max())
        np.add.at(held, depth.clip(0, _DEEPEST), np.diff(when))
        gone = until
    return held


# A gap in a stream whose next kernel was launched before it is the launch's own cost below this, else the
# stream waits for something. Microseconds: HolisticTraceAnalysis 0.6 compares its default, 30, with `ts`.
KERNEL_WAIT_US = 30.0
# What subtracting times of 10**12 microseconds leaves if there is nothing.
ROUNDING_US = 0.002

COMPUTE, MEMORY, COMM = 0, 1, 2


@dataclass(frozen=True)
class Gap:
    """Gaps of a device: beginning, end, and the event (index into the device's) that ended each."""

    start: Floats
    end: Floats
    ended_by: Ints


@dataclass(frozen=True)
class TraceDevice:
    """The events of one device by start, an array per field; times in microseconds.

    `kind` is a Kind, `launch` an index into the launches, -1 if the trace does not hold it; `flags` are
    those of all names. `end` and `work` are made again each time: ask the `parts` for them.
    """

    number: int | str
    start: Floats
    duration: NDArray[np.float32]
    name: NDArray[np.uint16]
    track: NDArray[np.uint16]
    kind: NDArray[np.uint8]
    launch: NDArray[np.int32]
    flags: NDArray[np.uint8]

    @property
    def end(self) -> Floats:
        return self.start + self.duration

    @property
    def work(self) -> NDArray[np.uint8]:
        """COMPUTE, MEMORY or COMM."""
        flags = self.flags[self.name]
        work = np.full(len(flags), COMPUTE, np.uint8)
        work[(flags & COMMUNICATION) > 0] = COMM
        work[(self.kind != EventKind.KERNEL) | ((flags & TRANSFER) > 0)] = MEMORY
        return work

    def part(self, which: slice | NDArray[np.bool_]) -> TraceDevice:
        """These of its events."""
        return replace(self, **{field: getattr(self, field)[which] for field in _FIELDS})

    def parts(self) -> Iterator[TraceDevice]:
        """Return all of its events, some ten thousand at a time."""
        return map(self.part, blocks(len(self.start)))

    def gaps(self) -> Iterator[Gap]:
        """Spans inside the device's own span in which nothing ran on it, those of a part at a time."""
        reached, done = np.inf, 0
        for part in self.parts():
            before = np.maximum.accumulate(np.append(reached if done else part.start[0], part.end))
            which = np.flatnonzero(part.start - before[:-1] > ROUNDING_US)
            yield Gap(before[which], part.start[which], which + done)
            reached, done = before[-1], done + len(part.start)


_FIELDS = ("start", "duration", "name", "track", "kind", "launch")


def devices(recording: Recording) -> list[TraceDevice]:
    """Return the devices of a trace, each with its events sorted by start."""
    flags = np.array(recording.names.flags, np.uint8)
    return [
        TraceDevice(
            number=number,
            start=np.frombuffer(recording.start)[mine],
            duration=np.frombuffer(recording.duration, np.float32)[mine],
            name=np.frombuffer(recording.name, np.uint16)[mine],
            track=np.frombuffer(recording.track, np.uint16)[mine],
            kind=np.frombuffer(recording.kind, np.uint8)[mine],
            launch=recording.launch[mine],
            flags=flags,
        )
        for number, mine in recording.of_devices()
    ]


def times(parts: Iterable[TraceDevice]) -> dict[str, object] | None:
    """Busy, idle and kinds of work of a device's events, in seconds; None if there are none.

    The span is from the first event's start to the last end; compute, memory and communication are unions
    of their own events, so that their sum may exceed the busy time.
    """
    of = {kind: Union() for kind in (COMPUTE, MEMORY, COMM)}
    busy, either, first, last = Union(), Union(), np.inf, -np.inf
    for part in parts:
        start, end, work = part.start, part.end, part.work
        first, last = min(first, start.min(initial=first)), max(last, end.max(initial=last))
        busy.add(start, end)
        for kind, union in of.items():
            union.add(start[work == kind], end[work == kind])
        either.add(start[work != MEMORY], end[work != MEMORY])
    if np.isinf(first):
        return None
    span = float(last - first)
    return {
        "busy_share": busy.total / span if span > 0 else None,
        "busy_s": busy.total / 1e6,
        "idle_s": max(0.0, span - busy.total) / 1e6,
        "span_s": span / 1e6,
        "compute_s": of[COMPUTE].total / 1e6,
        "memory_s": of[MEMORY].total / 1e6,
        "communication_s": of[COMM].total / 1e6,
        "communication_overlapped_s": max(0.0, of[COMM].total + of[COMPUTE].total - either.total) / 1e6,
    }


def launched_before(device: TraceDevice, launches: Launches, moment: float) -> Iterator[TraceDevice]:
    """Of each part the events whose launch is in the trace and began before the moment."""
    for part in device.parts():
        early = part.launch >= 0
        early[early] = launches.start[part.launch[early]] < moment
        yield part.part(early)


def streams(recording: Recording, device: TraceDevice, launches: Launches) -> list[dict[str, object]]:
    """Return each stream's idle time between its own events, by cause, the busiest first.

    `host_wait`: the next event was launched after the stream fell idle. `kernel_wait`: it was launched
    before, and the gap is below 30 us. `other`: it was launched before and waited longer. Launches that
    are not in the trace count as launched before.
    """
    waits: dict[int, _StreamTimes] = {}
    for part in device.parts():
        for number in np.flatnonzero(np.bincount(part.track)).tolist():
            waits.setdefault(number, _StreamTimes()).add(part.part(part.track == number), launches)
    found = [
        {
            "stream": recording.tracks[number].stream,
            **of_stream.summary(),
            **launches.queue_of_stream(device.launch, device.start, device.track == number),
        }
        for number, of_stream in sorted(waits.items())
    ]
    return sorted(found, key=lambda s: (-s["busy_s"], str(s["stream"])))


class _StreamTimes:
    """Busy time of one stream, and its idle time by cause."""

    def __init__(self) -> None:
        self._events = 0
        self._busy = Union()
        self._reached = -np.inf
        self._idle = np.zeros(3)

    def add(self, part: TraceDevice, launches: Launches) -> None:
        """Take in events of the stream, by start."""
        end = part.end
        self._busy.add(part.start, end)
        before = np.maximum.accumulate(np.append(self._reached if self._events else part.start[0], end))
        idle = np.maximum(part.start - before[:-1], 0.0)
        host = part.launch >= 0
        host[host] = launches.start[part.launch[host]] > before[:-1][host]
        short = ~host & (idle < KERNEL_WAIT_US)
        self._idle += idle[host].sum(), idle[short].sum(), idle[~host & ~short].sum()
        self._reached = float(before[-1])
        self._events += len(end)

    def summary(self) -> dict[str, Any]:
        return {
            "events": self._events,
            "busy_s": self._busy.total / 1e6,
            "host_wait_s": self._idle[0] / 1e6,
            "kernel_wait_s": self._idle[1] / 1e6,
            "other_wait_s": self._idle[2] / 1e6,
        }
