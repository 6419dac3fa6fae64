"""What a training process did between two moments: its counters and step times, from beat to beat.

Counters are cumulative and reported every half second or more rarely, so what lies between two beats is
interpolated; every beat ends an iteration, so a span from beat to beat is exact.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from gpudebug.core.inside.probe.processes import TrainingProcess

# As in `core.window`: warm-up ends at this iteration, or at this share of all, whichever is later.
WARMUP_STEPS = 10
WARMUP_SHARE = 0.05
# A counter that is known for less of a span than this has no figure in it.
MIN_COVERAGE = 0.9
# A bucket of step times is the 32nd part of an octave, counted from a microsecond.
BUCKETS_AN_OCTAVE = 32
SHORTEST_S = 1e-6


def steady(process: TrainingProcess) -> tuple[float, float] | None:
    """Start and end of the steady iterations in seconds since launch, both at a beat.

    From the first beat at or after iteration max(10, 5 % of all) to the last; None if less than two
    beats are left.
    """
    if not process.beats:
        return None
    last = process.beats[-1]
    threshold = max(WARMUP_STEPS, WARMUP_SHARE * last.steps)
    start = next(beat for beat in process.beats if beat.steps >= threshold or beat is last)
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
