"""A trace as compact arrays: one pass over its events keeps what the analysis needs and nothing else."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.events import CATEGORIES, DEVICE, OTHER, Args, Call, Event, EventKind, Names, step_of
from gpudebug.core.trace.hosts import Hosts
from gpudebug.core.trace.spans import Floats, Ints, Named, blocks

_INDEX = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def matched(wanted: array[int], launched: array[int]) -> NDArray[np.int32]:
    """For each of the `wanted` correlations the index of the first launch with it, -1 for none.

    The answer takes the place of `wanted`, in its memory: there may be a hundred million of them.
    """
    found = np.frombuffer(wanted, np.int32)
    table = _table(np.frombuffer(launched, np.uint32))
    for part in blocks(len(found)):
        correlation = found[part].view(np.uint32).astype(np.uint64)
        if not len(table):
            found[part] = -1
            continue
        row = table[np.minimum(np.searchsorted(table, correlation << _SHIFT), len(table) - 1)]
        known = (row >> _SHIFT == correlation) & (correlation != 0)
        found[part] = np.where(known, row & _INDEX, -1)
    return found


def _table(launched: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Correlation and index in one number each, sorted: half the memory of sorting by an order."""
    table = np.empty(len(launched), np.uint64)
    for part in blocks(len(launched)):
        index = np.arange(part.start, part.start + len(launched[part]), dtype=np.uint64)
        table[part] = launched[part].astype(np.uint64) << _SHIFT | index
    table.sort()
    return table


# Operators whose link to their kernels is kept.
LIMIT = 2_000_000


class Links:
    """`add` while the trace is read, `finish`, then ask for `names`; 6 bytes a link."""

    def __init__(self) -> None:
        self._external, self._name = array("I"), array("H")

    def add(self, external: int, name: int) -> None:
        if len(self._name) < LIMIT:
            self._external.append(external)
            self._name.append(name)

    def finish(self) -> None:
        """Sort by id; of operators with the same id the first stays in front."""
        external, name = np.frombuffer(self._external, np.uint32), np.frombuffer(self._name, np.uint16)
        if not (external[1:] >= external[:-1]).all():
            order = np.argsort(external, kind="stable")
            external[:] = external[order]
            name[:] = name[order]

    def names(self, external: NDArray[Any]) -> Ints:
        """Return the operator's name for each id, 0 if unknown."""
        known_ids = np.frombuffer(self._external, np.uint32)
        if not len(known_ids):
            return np.zeros(len(external), np.int64)
        at = np.minimum(np.searchsorted(known_ids, external), len(known_ids) - 1)
        known = (known_ids[at] == external) & (external != 0)
        return np.where(known, np.frombuffer(self._name, np.uint16)[at], 0).astype(np.int64)


_SYNCS = 300_000
# Microseconds: no trace lasts thirty years, and clocks count from 1970 at the earliest.
LONGEST = 1e15
FARTHEST = 1e16
_MASK = 0xFFFFFFFF
_NO_ARGS = Args()
_TRACK = 0xFFFF
MOST_DEVICES = 256
"""More than any host has: each is summed up by itself, so that a file of invented ones costs their number."""


class Track(NamedTuple):
    """One stream of one device, as the trace names them."""

    device: int | str
    stream: int | str


class TraceCopies:
    """Copies of one name: count, microseconds, bytes (of those that tell them) and their own bandwidths."""

    def __init__(self) -> None:
        self.count, self.us, self.bytes, self.told_us = 0, 0.0, 0.0, 0.0
        self.rates, self.rated, self.fastest = 0.0, 0, 0.0

    def add(self, us: float, size: float | str | None, rate: float | str | None) -> None:
        """`rate` (GB/s) is the profiler's own, from a duration finer than the trace's."""
        self.count += 1
        self.us += us
        if isinstance(size, (int, float)):
            self.bytes += size
            self.told_us += us
            if not isinstance(rate, (int, float)) and us > 0:
                rate = size / us / 1e3
        if isinstance(rate, (int, float)):
            self.rates += rate
            self.rated += 1
            self.fastest = max(self.fastest, rate)


class Recording:
    """All that is kept of a trace. Times are microseconds since `base`.

    Device events, each 25 bytes: start, duration, name, track (index into `tracks`), kind, correlation
    and operator's id, both modulo 2**32, 0 for none. Launches, each 16 bytes: start, duration, correlation.
    `finish` replaces the ids: `launch` is an index into the launches, -1 if the trace does not hold it,
    `graphs` counts replays of CUDA graphs and `graphs_unseen` those of which no work is in the trace, and
    `device_us` the device time of each operator by name, None if no event names its operator.
    """

    def __init__(self) -> None:
        self.names = Names()
        self.hosts = Hosts(self.names)
        self.base: float | None = None
        self.events = 0
        self.impossible = 0
        self.first, self.last = np.inf, -np.inf
        self.tracks: list[Track] = []
        self._track_ids: dict[tuple[int | str | None, ...], int] = {}
        self._devices = set[int | str | None]()
        self.beyond = 0
        self.start, self.duration = array("d"), array("f")
        self.name, self.track, self.kind = array("H"), array("H"), array("B")
        self._correlation, self._external = array("I"), array("I")
        self.launch: NDArray[np.int32] = np.empty(0, np.int32)
        self.device_us: Floats | None = None
        self.launch_start, self.launch_duration = array("d"), array("f")
        self._launch_correlation = array("I")
        self.graphs, self.graphs_unseen = 0, 0
        self._graph_correlation = array("I")
        self.links = Links()
        self.syncs = Syncs()
        self.blocking: dict[Call, Named] = {Call.SYNC: Named(), Call.COPY: Named(), Call.ALLOCATION: Named()}
        self.launched = 0
        self.copies: dict[int, TraceCopies] = {}
        self.steps: dict[int, list[float]] = {}

    def feed(self, events: Sequence[Event]) -> None:
        """Take in a batch."""
        categories, ids, add = CATEGORIES, self.names.ids, self.names.add
        if self.base is None:
            self.base = next((e.ts for e in events if e.dur is not None and abs(e.ts) < FARTHEST), None)
        base = self.base or 0.0
        first, last, count = self.first, self.last, 0
        for event in events:
            duration = event.dur
            kind = categories.get(event.cat)
            if duration is None or kind is None:
                continue
            start = event.ts - base
            if not (0 <= duration < LONGEST and -LONGEST < start < LONGEST):
                self.impossible += 1
                continue
            count += 1
            end = start + duration
            if start < first:  # noqa: PLR1730 - faster than min() here
                first = start
            if end > last:  # noqa: PLR1730
                last = end
            name = ids.get(event.name)
            if kind <= DEVICE:
                self._device(event, start, duration, add(event.name) if name is None else name, kind)
            elif kind == EventKind.RUNTIME:
                self._runtime(event, start, duration, add(event.name) if name is None else name)
            else:
                self._host(event, start, duration, name, kind)
        self.first, self.last = first, last
        self.events += count

    def finish(self) -> None:
        """Match what came in, then sort device events by device and start."""
        self.hosts.finish()
        self.links.finish()
        self._add_up_operators()
        self._count_graphs()
        self.launch = matched(self._correlation, self._launch_correlation)
        self._correlation, self._launch_correlation = array("I"), array("I")
        order = self._order()
        if order is not None:
            for field in (self.start, self.duration, self.name, self.track, self.kind):
                _permute(np.frombuffer(field, field.typecode), order)
            _permute(self.launch, order)

    def _count_graphs(self) -> None:
        replays = np.frombuffer(self._graph_correlation, np.uint32)
        self.graphs = len(replays)
        self.graphs_unseen = int(
            np.count_nonzero(~np.isin(replays, np.frombuffer(self._correlation, np.uint32)))
        )
        self._graph_correlation = array("I")

    def _add_up_operators(self) -> None:
        external, duration = (
            np.frombuffer(self._external, np.uint32),
            np.frombuffer(self.duration, np.float32),
        )
        if external.any():
            self.device_us = np.zeros(len(self.names.texts))
            for part in blocks(len(external)):
                names = self.links.names(external[part])
                self.device_us += np.bincount(names, duration[part], len(self.device_us))
            self.device_us[OTHER] = 0.0
        self._external = array("I")

    def _order(self) -> NDArray[np.uint32] | None:
        """Return the stable order by device and start; None if the events stand so already."""
        numbers = {number: i for i, number in enumerate(self.devices())}
        start, track = np.frombuffer(self.start), np.frombuffer(self.track, np.uint16)
        if len(numbers) <= 1:
            if (start[1:] >= start[:-1]).all():
                return None
            return np.argsort(start, kind="stable").astype(np.uint32)
        device = np.array([numbers[t.device] for t in self.tracks], np.uint16)[track]
        return np.lexsort((start, device)).astype(np.uint32)

    def devices(self) -> list[int | str]:
        """Return the devices of the trace, numbers first."""
        return sorted({t.device for t in self.tracks}, key=lambda d: (isinstance(d, str), d))

    def _host(self, event: Event, start: float, duration: float, name: int | None, kind: int) -> None:
        if name is None:
            # PyTorch 1.7 to 1.9 wrote its steps as operators.
            if kind != EventKind.PYTHON and (step := step_of(event.name)) is not None:
                self._step(step, start, duration)
                return
            name = self.names.add(event.name)
        self.hosts.add(start, duration, name, event.tid, kind)
        args = event.args
        if kind == EventKind.OPERATOR and args is not None:
            external = args.external or args.external_old
            if external:
                self.links.add(external & _MASK, name)

    def _step(self, number: int, start: float, duration: float) -> None:
        """Several threads may name the same step: it lasts from the first beginning to the last end."""
        known = self.steps.setdefault(number, [start, start + duration])
        known[0] = min(known[0], start)
        known[1] = max(known[1], start + duration)

    def _device(self, event: Event, start: float, duration: float, name: int, kind: int) -> None:
        args = event.args or _NO_ARGS
        device = event.pid if args.device is None else args.device
        key = (device, event.tid if args.stream is None else args.stream)
        track = self._track_ids.get(key)
        if track is None:
            if device not in self._devices and len(self._devices) >= MOST_DEVICES:
                self.beyond += 1
                return
            self._devices.add(device)
            track = self._new_track(key)
        self.start.append(start)
        self.duration.append(duration)
        self.name.append(name)
        self.track.append(track)
        self.kind.append(kind)
        self._correlation.append((args.correlation or 0) & _MASK)
        self._external.append(_operator_id(args))
        if kind != EventKind.KERNEL:
            copies = self.copies.get(name)
            if copies is None:
                copies = self.copies[name] = TraceCopies()
            copies.add(duration, args.bytes, args.rate)

    def _new_track(self, key: tuple[int | str | None, int | str | None]) -> int:
        number = min(len(self.tracks), _TRACK)
        self._track_ids[key] = number
        if number == len(self.tracks):
            self.tracks.append(Track(*("unknown" if part is None else part for part in key)))
        return number

    def _runtime(self, event: Event, start: float, duration: float, name: int) -> None:
        call = self.names.calls[name]
        if call == Call.OTHER:
            return
        args = event.args or _NO_ARGS
        if call == Call.GRAPH:
            self._graph_correlation.append((args.correlation or 0) & _MASK)
        if call in (Call.LAUNCH, Call.GRAPH, Call.COPY) or (call == Call.SYNC and "emcpy" in event.name):
            self.launched += 1
            self.launch_start.append(start)
            self.launch_duration.append(duration)
            self._launch_correlation.append((args.correlation or 0) & _MASK)
        if call in (Call.LAUNCH, Call.GRAPH):
            return
        self.blocking[call].add(start, start + duration, name)
        if call == Call.SYNC:
            self.syncs.add(name, start, duration, self.hosts.thread(event.tid), _operator_id(args))

    def of_devices(self) -> Iterator[tuple[int | str, slice]]:
        """Yield each device with where its events stand, once `finish` has sorted them."""
        at = 0
        count = np.bincount(np.frombuffer(self.track, np.uint16), minlength=len(self.tracks)).tolist()
        for number in self.devices():
            mine = sum(n for n, track in zip(count, self.tracks, strict=True) if track.device == number)
            yield number, slice(at, at + mine)
            at += mine


def _permute(values: NDArray[Any], order: NDArray[np.uint32]) -> None:
    """Put values in order, in place; in parts, for an index of 32 bits is widened to 64."""
    ordered = np.empty_like(values)
    for part in blocks(len(values)):
        ordered[part] = values[order[part]]
    values[:] = ordered


def _operator_id(args: Args) -> int:
    """Return the id of the operator that made a launch or call, 0 for none.

    Kineto of 2022 and 2023 wrote the correlation in its place, which may be some other operator's id.
    """
    external = args.external or args.external_old or 0
    return 0 if external == args.correlation else external & _MASK


class Syncs:
    """Synchronising runtime calls: counted all, kept one by one up to a limit to find who called them."""

    def __init__(self) -> None:
        self.count: dict[int, int] = {}
        self.us: dict[int, float] = {}
        self.name, self.thread = array("i"), array("H")
        self.start, self.duration, self.external = array("d"), array("f"), array("I")

    def add(self, name: int, start: float, duration: float, thread: int, external: int) -> None:
        self.count[name] = self.count.get(name, 0) + 1
        self.us[name] = self.us.get(name, 0.0) + duration
        if len(self.name) < _SYNCS:
            self.name.append(name)
            self.thread.append(thread)
            self.start.append(start)
            self.duration.append(duration)
            self.external.append(external)
