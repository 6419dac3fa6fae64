"""What training processes did between two moments, how far they are, and their records of several nodes.

Counters are cumulative and reported every half second or more rarely, so what lies between two beats is
interpolated; every beat ends an iteration, so a span from beat to beat is exact.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from gpudebug.core.inside.probe.processes import (
    LONGEST_LINE,
    MOST_PROCESSES,
    ProcessKey,
    TrainingProcess,
    finite,
    key_of,
    read_line,
)
from gpudebug.core.lazy import regex

# As in `core.samples.window`: warm-up ends at this iteration, or at this share of all, whichever is later.
WARMUP_STEPS = 10
WARMUP_SHARE = 0.05
# A counter that is known for less of a span than this has no figure in it.
MIN_COVERAGE = 0.9
# A bucket of step times is the 32nd part of an octave, counted from a microsecond.
BUCKETS_AN_OCTAVE = 32
SHORTEST_S = 1e-6


def steady(
    process: TrainingProcess, since: float = -math.inf, until: float = math.inf
) -> tuple[float, float] | None:
    """Start and end of the steady iterations in seconds since launch, both at a beat; of those that were made
    after `since`, up to `until`.

    From the first beat at or after iteration max(10, 5 % of all) to the last; None if less than two
    beats are left.
    """
    beats = [beat for beat in process.beats if since < beat.t <= until]
    if not beats:
        return None
    begun = max((beat.steps for beat in process.beats if beat.t <= since), default=0)
    last = beats[-1]
    threshold = begun + max(WARMUP_STEPS, WARMUP_SHARE * (last.steps - begun))
    start = next(beat for beat in beats if beat.steps >= threshold or beat is last)
    return (start.t, last.t) if start.t < last.t else None


def first_step(process: TrainingProcess) -> float | None:
    """When the first iteration had ended, as near as its first beat shows."""
    if not process.beats:
        return None
    first = process.beats[0]
    return first.t if first.steps == 1 else process.start_s + (first.t - process.start_s) / first.steps


class ProcessSpan:
    """A process between `start_s` and `end_s`, cut to what its beats know."""

    def __init__(self, process: TrainingProcess, start_s: float, end_s: float) -> None:
        beats = process.beats
        self._process = process
        self.start_s = max(start_s, beats[0].t if beats else math.inf)
        self.end_s = min(end_s, beats[-1].t if beats else -math.inf)

    def parts(self, count: int) -> list[ProcessSpan]:
        """Return as many spans of equal length, in order."""
        each = self.seconds / count
        starts = [self.start_s + i * each for i in range(count)]
        return [ProcessSpan(self._process, start, start + each) for start in starts]

    @property
    def seconds(self) -> float:
        """0 if the process made no iteration in it."""
        return max(0.0, self.end_s - self.start_s)

    @property
    def steps(self) -> float:
        """Iterations that ended in it."""
        return self._between([(beat.t, float(beat.steps)) for beat in self._process.beats]) or 0.0

    def delta(self, counter: str) -> float | None:
        """By how much a counter rose in it; None if it was not reported.

        One that is first reported later on was 0 until then: nothing had happened yet.
        """
        beats = self._process.beats
        if not any(counter in beat.counters for beat in beats):
            return None
        series = [(b.t, b.counters[counter]) for b in beats if counter in b.counters]
        unheard = [(b.t, 0.0) for b in beats if b.t < series[0][0]]
        return self._between([*unheard, *series])

    def _between(self, series: Sequence[tuple[float, float]]) -> float | None:
        if not self.seconds or len(series) < 2:
            return None
        known = min(self.end_s, series[-1][0]) - max(self.start_s, series[0][0])
        if known < MIN_COVERAGE * self.seconds:
            return None
        rise = _at(series, self.end_s) - _at(series, self.start_s)
        return max(0.0, rise) * self.seconds / known

    def step_times(self) -> dict[int, float]:
        """Iterations that ended in it by the bucket of their time.

        Of a beat that lies in it partly, that part of its iterations counts.
        """
        found: dict[int, float] = {}
        for before, beat in pairwise(self._process.beats):
            inside = min(beat.t, self.end_s) - max(before.t, self.start_s)
            if inside <= 0:
                continue
            share = inside / (beat.t - before.t)
            for bucket, count in beat.hist.items():
                found[bucket] = found.get(bucket, 0.0) + share * count
        return found


def _at(series: Sequence[tuple[float, float]], t: float) -> float:
    """Return the counter at `t`; before the first and after the last time it is as it was then."""
    after = bisect_left(series, t, key=lambda point: point[0])
    if after == 0:
        return series[0][1]
    if after == len(series):
        return series[-1][1]
    (t0, v0), (t1, v1) = series[after - 1], series[after]
    return v1 if t >= t1 else v0 + (v1 - v0) * (t - t0) / (t1 - t0)


def middle(bucket: int) -> float:
    """Return the step time in seconds in the middle of a bucket, on the log scale."""
    return float(SHORTEST_S * 2 ** ((bucket + 0.5) / BUCKETS_AN_OCTAVE))


def percentile(buckets: dict[int, float], share: float) -> float | None:
    """Return the step time in seconds below which `share` of the iterations lie; None of nothing.

    A bucket is 2.2 % wide, and inside it the times are taken to be spread evenly on the log scale.
    """
    total = math.fsum(buckets.values())
    wanted, passed = share * total, 0.0
    for bucket, count in sorted(buckets.items()):
        if count > 0 and passed + count >= wanted * (1 - 1e-12):
            inside = (wanted - passed) / count
            return SHORTEST_S * 2 ** ((bucket + inside) / BUCKETS_AN_OCTAVE)
        passed += count
    return None


LATELY_S = 60.0
"""Lately is within so many seconds, and since the last beat but one if that is longer ago."""
_MOST_BEATS = 256


class LiveSteps:
    """Fed with what was appended to probe.jsonl.

    `steps` are those of the process that made the most, `gap` the seconds between the last two times that
    more of them were reported: these grow rarer in a long run.
    """

    def __init__(self) -> None:
        self.steps: int | None = None
        self.gap = 0.0
        self._at: float | None = None
        self._host: str | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        lines, self._rest = _cut(self._rest + data)
        for line in _beats(lines):
            self._take(line.get("steps"), line.get("t"), key_of(line).host)

    def _take(self, steps: object, at: object, host: str | None) -> None:
        if not isinstance(steps, int) or not isinstance(at, (int, float)) or steps <= (self.steps or 0):
            return
        # Two hosts have two clocks.
        if self._at is not None and host == self._host:
            self.gap = max(0.0, at - self._at)
        self.steps, self._at, self._host = steps, at, host


class Lately:
    """Fed with what was appended to probe.jsonl: what the process with the most iterations did lately."""

    def __init__(self) -> None:
        self._rest = b""
        # Of each process its beats: the monotonic clock, iterations and seconds that it waited for data.
        self._beats: dict[ProcessKey, deque[tuple[float, int, float | None]]] = {}

    def feed(self, data: bytes, *, torn: bool = False) -> None:
        """`torn`: something before `data` is left out, and its first line may not be whole."""
        if torn:
            self._rest, data = b"", data.partition(b"\n")[2]
        lines, self._rest = _cut(self._rest + data)
        for line in _beats(lines):
            self._take(line)

    def _take(self, line: dict[str, object]) -> None:
        at, steps, counters = _known(line.get("t")), _known(line.get("steps")), line.get("counters")
        if at is None or steps is None:
            return
        waited = _known(counters.get("data_s")) if isinstance(counters, dict) else None
        key = key_of(line)
        if key not in self._beats and len(self._beats) >= MOST_PROCESSES:
            return
        beats = self._beats.setdefault(key, deque(maxlen=_MOST_BEATS))
        if beats and (at <= beats[-1][0] or steps < beats[-1][1]):
            return
        beats.append((at, int(steps), waited))
        while len(beats) > 2 and beats[0][0] < at - LATELY_S:
            beats.popleft()

    @property
    def steps(self) -> int | None:
        """The iterations of that process so far; None if it reported none."""
        main = self._main
        return main[-1][1] if main else None

    @property
    def steps_per_s(self) -> float | None:
        """Its iterations a second; None before its second beat."""
        main = self._main
        return (main[-1][1] - main[0][1]) / (main[-1][0] - main[0][0]) if main and len(main) > 1 else None

    @property
    def data_wait_share(self) -> float | None:
        """The share of the time in which it waited for data; None if it does not tell, or only once."""
        main = self._main
        if not main or len(main) < 2 or main[0][2] is None or main[-1][2] is None:
            return None
        return min(1.0, max(0.0, (main[-1][2] - main[0][2]) / (main[-1][0] - main[0][0])))

    @property
    def _main(self) -> deque[tuple[float, int, float | None]] | None:
        return max(self._beats.values(), key=lambda beats: beats[-1][1], default=None)


def _cut(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and what may become one."""
    *lines, rest = data.split(b"\n")
    return lines, rest if len(rest) <= LONGEST_LINE else b""


def _beats(lines: list[bytes]) -> Iterator[dict[str, object]]:
    for raw in lines:
        line = read_line(raw.decode("utf-8", "replace"))
        if line and line["kind"] == "beat":
            yield line


def _known(value: object) -> float | None:
    """Return a count or a time; None for anything else, NaN and infinity among it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 2**53 else None


NODE_FILE = regex(r"probe\.([A-Za-z0-9_.-]{1,64})\.jsonl", re.ASCII)
MOST_NODES = 16
"""Other nodes that are joined: `MOST_RANKS` ranks are eight nodes of eight GPUs."""
CLOCK_WITHIN_S = 0.1
"""A measured offset that may be further off is none: ranks are told apart by parts of a second."""
FILE_TICK_S = 0.01
"""How coarse the times of files are: a tick of the kernel, at most 10 ms (CONFIG_HZ=100)."""
PIDS = 1 << 22
"""No number of a process is larger (PID_MAX_LIMIT of 64-bit Linux): each node adds so much to its own."""


class ClockTouch(NamedTuple):
    """A node's clock, within some seconds, at the moment of a time of the shared file system."""

    at: float
    within: float
    stamp: float


def records_of(names: Iterable[str]) -> dict[str, str]:
    """The records of other nodes among a folder's files, by node: at most `MOST_NODES`, n2 before n10."""
    found = {match[1]: name for name in names if (match := NODE_FILE.fullmatch(name))}
    return {node: found[node] for node in sorted(found, key=_natural)[:MOST_NODES]}


def joined(first: str, others: Mapping[str, str]) -> str:
    """`first`, the record of the node that the run was launched on, then those of the `others`, by node.

    The number of another node's process is raised by that node's place times `PIDS`, and its start has the
    `offset` of its clock to the first node's in seconds, if it was measured. Torn lines are left out.
    """
    base = _touch(first)
    lines = [first if first.endswith("\n") or not first else first + "\n"]
    for place, node in enumerate(sorted(others, key=_natural)[:MOST_NODES], 1):
        own = _touch(others[node])
        ahead = clock_offset(base, own) if base and own else None
        lines += (_raised(line, place, ahead) for line in _lines(others[node]))
    return "".join(lines)


def _natural(node: str) -> list[tuple[int, str]]:
    """n2 before n10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", node)]


def _lines(text: str) -> Iterator[dict[str, object]]:
    return (line for raw in text.split("\n") if (line := read_line(raw)) is not None)


def _raised(line: dict[str, Any], place: int, offset: float | None) -> str:
    found = {**line, "pid": line["pid"] + place * PIDS}
    if line["kind"] == "start" and offset is not None:
        found["offset"] = round(offset, 6)
    return json.dumps(found, separators=(",", ":")) + "\n"


def _touch(text: str) -> ClockTouch | None:
    """Return the best that the processes of one node measured."""
    found = []
    for line in _lines(text):
        clock = line.get("clock") if line["kind"] == "start" else None
        known = [x for x in map(finite, clock) if x is not None] if isinstance(clock, list) else []
        if len(known) == len(ClockTouch._fields):
            found.append(ClockTouch(*known))
    return min(found, key=lambda touch: touch.within, default=None)


def clock_offset(base: ClockTouch, own: ClockTouch) -> float | None:
    """Return what a node's clock is ahead of the first one's; None if that is not known well enough."""
    within = base.within + own.within + FILE_TICK_S
    if not 0 <= within <= CLOCK_WITHIN_S:
        return None
    return (own.at - own.stamp) - (base.at - base.stamp)


MOST = 48
"""Bars of one histogram."""
_LEAST_COUNT = 0.05


def counted(seconds: Iterable[float]) -> dict[int, float]:
    """Count steps by the bucket of their time, as the probe does; a time of 0 or less does not count."""
    found: dict[int, float] = {}
    for value in seconds:
        if value > 0 and math.isfinite(value):
            bucket = math.floor(BUCKETS_AN_OCTAVE * math.log2(value / SHORTEST_S))
            found[bucket] = found.get(bucket, 0.0) + 1
    return found


def bars(buckets: Mapping[int, float]) -> list[tuple[float, float, float]]:
    """(from, to, count) of at most 48 bars, seconds, in ascending order, without empty ones.

    Neighbouring buckets are put together until there are few enough.
    """
    known = {bucket: count for bucket, count in buckets.items() if count > 0}
    if not known:
        return []
    width = 1
    while max(known) // width - min(known) // width >= MOST:
        width *= 2
    joined: dict[int, float] = {}
    for bucket, count in known.items():
        joined[bucket // width] = joined.get(bucket // width, 0.0) + count
    return [
        (_edge(at * width), _edge((at + 1) * width), round(count, 1))
        for at, count in sorted(joined.items())
        if count >= _LEAST_COUNT
    ]


def quantile(found: Sequence[Sequence[float]], share: float) -> float | None:
    """Of bars (from, to, count), as if each were evenly filled; None of nothing."""
    total = sum(count for _, _, count in found)
    left = share * total
    for low, high, count in found:
        if count and left <= count:
            return float(low + (high - low) * left / count)
        left -= count
    return float(found[-1][1]) if total else None


def _edge(bucket: int) -> float:
    return float(f"{SHORTEST_S * 2 ** (bucket / BUCKETS_AN_OCTAVE):.6g}")
