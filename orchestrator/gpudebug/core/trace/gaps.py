"""Where a device idles and what the host did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.arrays import Recording
from gpudebug.core.trace.devices import KERNEL_WAIT_US, ROUNDING_US, Gap, Launches, TraceDevice
from gpudebug.core.trace.events import OTHER, Call
from gpudebug.core.trace.spans import Cover, Floats, Ints, Named, common, union

# Upper bounds of the size classes, microseconds.
SIZES = (10.0, 100.0, 1e3, 1e4, 1e5, np.inf)
# A device that falls idle no later than this after a call has returned ran dry because of it. Microseconds.
_SLACK = 5.0
_BLOCK = 20_000
_NAMES = 3
_LONGEST = 10

# What the host did, in the order in which one is taken if several hold; then what else explains a gap.
HOST = ("data_loading", "synchronising", "allocation", "copy_call", "operator", "python")
CAUSES = (*HOST, "unknown", "launch", "queued", "held_back")
_UNKNOWN, _LAUNCH, _QUEUED, _HELD = (len(HOST) + i for i in range(4))
_SYNCING = HOST.index("synchronising")
# What a host does that must fill a queue which a synchronising call has drained.
_REFILLING = (HOST.index("operator"), HOST.index("python"), _UNKNOWN, _LAUNCH)


class Host:
    """What the host did at any time, by class; a class hides those behind it."""

    def __init__(self, recording: Recording) -> None:
        hosts, blocking = recording.hosts, recording.blocking
        self.named: dict[str, Named] = {
            "data_loading": hosts.loaders,
            "synchronising": blocking[Call.SYNC],
            "allocation": blocking[Call.ALLOCATION],
            "copy_call": blocking[Call.COPY],
            "operator": hosts.operators,
            "python": hosts.annotations,
        }
        self.syncs = blocking[Call.SYNC].arrays()
        steps = np.array(sorted(recording.steps.values())).reshape(-1, 2)
        start, end = np.empty(0), np.empty(0)
        self._spans = [self.named[name].arrays() for name in HOST]
        self._longest = [float((end - start).max(initial=0.0)) for start, end, _ in self._spans]
        # Up to each class: what it and those before it cover.
        self._unions = [(start, end)]
        for name in HOST:
            more = self.named[name].union()
            start, end = np.append(start, more[0]), np.append(end, more[1])
            if name == "python":
                start, end = np.append(start, steps[:, 0]), np.append(end, steps[:, 1])
            start, end = union(start, end)
            self._unions.append((start, end))
        self._covers = [Cover(cover) for cover in self._unions[1:]]
        self._sync = Cover(blocking[Call.SYNC].union())

    def causes(self, start: Floats, end: Floats, asked: Floats, returned: Floats) -> Floats:
        """Microseconds of each gap by cause (columns as CAUSES); each row sums up to its gap.

        `asked` and `returned` are the beginning and end of the call that launched what ended the gap, NaN
        if the trace does not hold it. What starts later than `KERNEL_WAIT_US` after its call returned was
        held back on the device, behind another stream, device or event: the host had done its part.
        """
        known = ~np.isnan(asked)
        queued = known & (asked <= start)
        until = self.until(start, end, asked)
        table = np.zeros((len(start), len(CAUSES)))
        covered = np.zeros(len(start))
        for column, cover in enumerate(self._covers):
            now = cover.within(start, until)
            table[:, column] = now - covered
            covered = now
        table[:, _UNKNOWN] = until - start - covered
        begun = np.clip(returned + KERNEL_WAIT_US, until, end)
        calling = np.where(queued, np.clip(returned, start, end) - start, begun - until)
        table[:, _LAUNCH] = np.where(known, calling, 0.0)
        table[:, _HELD] = np.where(known & ~queued, end - begun, 0.0)
        table[:, _QUEUED] = np.where(queued, end - start - calling, 0.0)
        dry = self.dry(start, asked)
        for column in _REFILLING:
            table[dry, _SYNCING] += table[dry, column]
            table[dry, column] = 0.0
        table[table < ROUNDING_US] = 0.0
        return table

    def until(self, start: Floats, end: Floats, asked: Floats) -> Floats:
        """Up to the launch the host did something else; from there on it launched."""
        return np.where(np.isnan(asked), end, np.clip(asked, start, end))

    def dry(self, start: Floats, asked: Floats) -> NDArray[np.bool_]:
        """Whether a gap began while the host waited for the device, so that nothing was queued behind."""
        return np.asarray(~(asked <= start) & self._sync.holds(start, _SLACK))

    def names(self, cause: int, start: Floats, until: Floats, size: int) -> Floats:
        """Microseconds of disjoint spans by the name of what the host did, of one class and no better one."""
        begin, end, name = self._spans[cause]
        if not len(begin) or not len(start):
            return np.zeros(size)
        near = slice(*np.searchsorted(begin, (start[0] - self._longest[cause], until[-1])))
        begin, end = begin[near], end[near]
        better = common((start, until), self._unions[cause])
        mine = Cover((start, until)).within(begin, end) - Cover(better).within(begin, end)
        return np.bincount(name[near], mine, size).astype(np.float64)

    def sync_before(self, when: Floats) -> Ints:
        """Return the name of the synchronising call that began last before each moment."""
        start, _, name = self.syncs
        return np.asarray(name[np.maximum(np.searchsorted(start, when, side="right") - 1, 0)])


class Idle:
    """The gaps of all devices, added up."""

    def __init__(self, recording: Recording, launches: Launches) -> None:
        self._recording, self._launches = recording, launches
        self._host = Host(recording)
        self._seconds = np.zeros(len(CAUSES))
        self._count = np.zeros(len(CAUSES), np.int64)
        self._sizes = np.zeros((len(SIZES), 2))
        self._names = np.zeros((len(CAUSES), len(recording.names.texts)))
        self._longest: list[tuple[float, float, int | str, int, int]] = []

    def add(self, device: TraceDevice) -> None:
        for gap in device.gaps():
            for at in range(0, len(gap.start), _BLOCK):
                part = slice(at, at + _BLOCK)
                self._add(device, Gap(gap.start[part], gap.end[part], gap.ended_by[part]))

    def _add(self, device: TraceDevice, gap: Gap) -> None:
        launch = device.launch[gap.ended_by]
        asked, returned = np.full(len(launch), np.nan), np.full(len(launch), np.nan)
        known = launch >= 0
        asked[known] = self._launches.start[launch[known]]
        returned[known] = asked[known] + self._launches.duration[launch[known]]
        table = self._host.causes(gap.start, gap.end, asked, returned)
        length = gap.end - gap.start
        main = table.argmax(axis=1)
        self._seconds += table.sum(axis=0) / 1e6
        self._count += np.bincount(main, minlength=len(CAUSES))
        size = np.searchsorted(SIZES, length, side="right").clip(max=len(SIZES) - 1)
        self._sizes[:, 0] += np.bincount(size, minlength=len(SIZES))
        self._sizes[:, 1] += np.bincount(size, length, len(SIZES)) / 1e6
        # The kernel that ended a gap names it where the launch or the device explains it, the call where
        # the device ran dry.
        names = device.name[gap.ended_by]
        for cause in (_LAUNCH, _QUEUED, _HELD):
            self._names[cause] += np.bincount(names, table[:, cause], self._names.shape[1])
        if len(self._host.syncs[0]):
            called = self._host.sync_before(gap.start)
            self._names[_SYNCING] += np.bincount(called, table[:, _SYNCING], self._names.shape[1])
        self._name_spans(gap, asked)
        for i in np.argsort(length)[-_LONGEST:].tolist():
            found = (float(length[i]), float(gap.start[i]), device.number, int(main[i]), int(names[i]))
            self._longest.append(found)
        self._longest = sorted(self._longest, key=lambda g: (-g[0], g[1]))[:_LONGEST]

    def _name_spans(self, gap: Gap, asked: Floats) -> None:
        """What the host did in the gaps that a synchronising call did not cause."""
        size = self._names.shape[1]
        until = self._host.until(gap.start, gap.end, asked)
        kept = ~self._host.dry(gap.start, asked)
        for cause in range(len(HOST)):
            if cause == _SYNCING:
                continue
            # What refills a drained queue is the call's that drained it; the rest counts in any gap.
            of = kept if cause in _REFILLING else slice(None)
            self._names[cause] += self._host.names(cause, gap.start[of], until[of], size)

    def summary(self) -> dict[str, object]:
        """Return the JSON answer's `gaps`; seconds, and sizes in microseconds."""
        whole = float(self._seconds.sum())
        return {
            "count": int(self._count.sum()),
            "total_s": whole,
            "by_cause": sorted(self._causes(whole), key=lambda c: -c["seconds"]),
            "by_size": [
                {
                    "from_us": 0.0 if i == 0 else SIZES[i - 1],
                    "to_us": None if np.isinf(bound) else bound,
                    "count": int(self._sizes[i, 0]),
                    "seconds": float(self._sizes[i, 1]),
                }
                for i, bound in enumerate(SIZES)
            ],
            "longest": [
                {
                    "device": device,
                    "start_s": (start - self._recording.first) / 1e6,
                    "seconds": length / 1e6,
                    "cause": CAUSES[cause],
                    "ended_by": self._recording.names.texts[name][:120],
                }
                for length, start, device, cause, name in self._longest
            ],
        }

    def _causes(self, whole: float) -> Iterator[dict[str, Any]]:
        texts = self._recording.names.texts
        for cause, name in enumerate(CAUSES):
            seconds = float(self._seconds[cause])
            if not seconds:
                continue
            of = self._names[cause].copy()
            of[OTHER] = 0
            # Names with a thousandth of the time or more.
            top = np.argsort(-of, kind="stable")[:_NAMES]
            yield {
                "cause": name,
                "seconds": seconds,
                "share": seconds / whole,
                "count": int(self._count[cause]),
                "names": [
                    {"name": texts[i][:120], "seconds": float(of[i]) / 1e6}
                    for i in top.tolist()
                    if of[i] > 1e3 * seconds
                ],
            }
