"""A device's time: busy and idle, by kind of work, by stream, with the gaps between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.events import Kind
from gpudebug.core.trace.launches import Launches
from gpudebug.core.trace.names import COMMUNICATION, TRANSFER
from gpudebug.core.trace.recording import Recording
from gpudebug.core.trace.spans import Floats, Ints, blocks, merged, overlap, total

# A gap in a stream whose next kernel was launched before it is the launch's own cost below this, else the
# stream waits for something. Microseconds: HolisticTraceAnalysis 0.6 compares its default, 30, with `ts`.
KERNEL_WAIT_US = 30.0
# What subtracting times of 10**12 microseconds leaves where there is nothing.
ROUNDING_US = 0.002

COMPUTE, MEMORY, COMM = 0, 1, 2


@dataclass(frozen=True)
class Gap:
    """The gaps of a device: beginning, end, and the event (index into the device's) that ended each."""

    start: Floats
    end: Floats
    ended_by: Ints


@dataclass(frozen=True)
class Device:
    """The events of one device by start, an array per field; times in microseconds.

    `kind` is a Kind, `work` one of COMPUTE, MEMORY and COMM, `launch` an index into the launches, -1 where
    the trace does not hold it.
    """

    number: int | str
    start: Floats
    end: Floats
    name: NDArray[np.int32]
    track: NDArray[np.uint16]
    kind: NDArray[np.uint8]
    work: NDArray[np.uint8]
    external: NDArray[np.uint32]
    launch: NDArray[np.int32]

    def busy(self) -> tuple[Floats, Floats]:
        return merged(self.start, self.end)

    def gaps(self) -> Gap:
        """Spans inside the device's own span in which nothing ran on it."""
        if not len(self.start):
            return Gap(self.start, self.start, np.empty(0, np.int64))
        start, end = self.busy()
        real = start[1:] - end[:-1] > ROUNDING_US
        # The first event of each busy interval but the first ended a gap.
        begin, stop = end[:-1][real], start[1:][real]
        return Gap(begin, stop, np.searchsorted(self.start, stop, side="left"))


def devices(recording: Recording, launches: Launches) -> list[Device]:
    """The devices of a trace, each with its events sorted by start."""
    flags = np.array(recording.names.flags, np.uint8)
    found = []
    for number, mine in recording.of_devices():
        start = np.frombuffer(recording.start)[mine]
        name = np.frombuffer(recording.name, np.int32)[mine]
        kind = np.frombuffer(recording.kind, np.uint8)[mine]
        work = np.full(len(start), COMPUTE, np.uint8)
        work[(flags[name] & COMMUNICATION) > 0] = COMM
        work[(kind != Kind.KERNEL) | ((flags[name] & TRANSFER) > 0)] = MEMORY
        found.append(
            Device(
                number=number,
                start=start,
                end=start + np.frombuffer(recording.duration, np.float32)[mine],
                name=name,
                track=np.frombuffer(recording.track, np.uint16)[mine],
                kind=kind,
                work=work,
                external=np.frombuffer(recording.external, np.uint32)[mine],
                launch=launches.of(np.frombuffer(recording.correlation, np.uint32)[mine]),
            )
        )
    return found


def times(start: Floats, end: Floats, work: NDArray[np.uint8]) -> dict[str, Any]:
    """Busy, idle and kinds of work of events sorted by start, in seconds.

    The span is from the first event's start to the last end; compute, memory and communication are unions
    of their own events, so that their sum may exceed the busy time.
    """
    busy = merged(start, end)
    span = float(end.max() - start[0])
    of = {kind: merged(start, end, work == kind) for kind in (COMPUTE, MEMORY, COMM)}
    return {
        "busy_share": total(busy) / span if span > 0 else None,
        "busy_s": total(busy) / 1e6,
        "idle_s": max(0.0, span - total(busy)) / 1e6,
        "span_s": span / 1e6,
        "compute_s": total(of[COMPUTE]) / 1e6,
        "memory_s": total(of[MEMORY]) / 1e6,
        "communication_s": total(of[COMM]) / 1e6,
        "communication_overlapped_s": overlap(of[COMM], of[COMPUTE]) / 1e6,
    }


def without_last_step(device: Device, launches: Launches, begin: float) -> dict[str, Any] | None:
    """The times of the events that were launched before `begin`; None where there are none."""
    known = device.launch >= 0
    early = np.zeros(len(known), bool)
    early[known] = launches.start[device.launch[known]] < begin
    if not early.any():
        return None
    return times(device.start[early], device.end[early], device.work[early])


def streams(recording: Recording, device: Device, launches: Launches) -> list[dict[str, Any]]:
    """Each stream's idle time between its own events, by cause, the busiest first.

    `host_wait`: the next event was launched after the stream fell idle. `kernel_wait`: it was launched
    before, and the gap is below 30 us. `other`: it was launched before and waited longer. Launches that
    are not in the trace count as launched before.
    """
    found = []
    for number in np.unique(device.track).tolist():
        mine = np.flatnonzero(device.track == number).astype(np.int32)
        found.append(
            {
                "stream": recording.tracks[number].stream,
                "events": len(mine),
                **_waits(device, mine, launches),
                **launches.queue_of_stream(device.launch[mine], device.start[mine]),
            }
        )
    return sorted(found, key=lambda s: (-s["busy_s"], str(s["stream"])))


def _waits(device: Device, mine: NDArray[np.int32], launches: Launches) -> dict[str, float]:
    """Busy seconds of one stream, the events `mine`, and its idle ones by cause."""
    first = reached = float(device.start[mine[0]])
    waits = np.zeros(3)
    for part in blocks(len(mine)):
        which = mine[part]
        before = np.maximum.accumulate(np.append(reached, device.end[which]))
        reached = float(before[-1])
        idle = np.maximum(device.start[which] - before[:-1], 0.0)
        launch = device.launch[which]
        host = (launch >= 0) & (launches.start[launch] > before[:-1]) if len(launches.start) else launch >= 0
        short = ~host & (idle < KERNEL_WAIT_US)
        waits += idle[host].sum(), idle[short].sum(), idle[~host & ~short].sum()
    return {
        "busy_s": (reached - first - waits.sum()) / 1e6,
        "host_wait_s": waits[0] / 1e6,
        "kernel_wait_s": waits[1] / 1e6,
        "other_wait_s": waits[2] / 1e6,
    }
