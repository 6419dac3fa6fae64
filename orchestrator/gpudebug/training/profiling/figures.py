"""Arithmetic of durations: what is kept of many, and what is read from it. Whole nanoseconds."""

from __future__ import annotations

from _bisect import bisect_right

# Buckets an octave: a quantile is off by less than 1/16 of itself.
_PARTS = 16
_BITS = 5
_NEVER = 1 << 62


class Figures:
    """Calls, their durations, errors and peaks (bytes) of one section."""

    __slots__ = ("buckets", "calls", "errors", "gpu_peak", "high", "low", "mem_peak", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.mem_peak: int | None = None
        self.gpu_peak: int | None = None
        self.clear()

    def clear(self) -> None:
        """Forget the durations and errors; peaks stay, for a GPU's shows only in the first calls."""
        self.buckets.clear()
        self.calls = self.total = self.high = self.errors = 0
        self.low = _NEVER

    def take(self, batch: list[int]) -> None:
        """Count durations in; sorts `batch`."""
        if not batch:
            return
        batch.sort()
        self.calls += len(batch)
        self.total += sum(batch)
        self.low = min(self.low, batch[0])
        self.high = max(self.high, batch[-1])
        buckets, count, i = self.buckets, len(batch), 0
        while i < count:
            # All that lie in one bucket stand side by side.
            duration = batch[i]
            shift = max(duration.bit_length() - _BITS, 0)
            part = duration >> shift
            after = bisect_right(batch, ((part + 1) << shift) - 1, i)
            key = shift * _PARTS + part
            buckets[key] = buckets.get(key, 0) + after - i
            i = after

    def add(self, other: Figures) -> None:
        """Count in what another place or thread saw of the same section."""
        self.calls += other.calls
        self.total += other.total
        self.errors += other.errors
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)
        for key, count in other.buckets.items():
            self.buckets[key] = self.buckets.get(key, 0) + count
        self.mem_peak = larger(self.mem_peak, other.mem_peak)
        self.gpu_peak = larger(self.gpu_peak, other.gpu_peak)

    def quantile(self, share: float) -> float:
        """Return the duration that `share` of the calls do not exceed, off by at most a bucket's width.

        Linear between the buckets' edges; ValueError without calls.
        """
        if not self.calls:
            raise ValueError("no calls, no quantile")
        rank, before = int(share * (self.calls - 1)), 0
        for key in sorted(self.buckets):
            count = self.buckets[key]
            if before + count > rank:
                start, width = edges(key)
                # No call of the first and the last bucket lies beyond the extremes.
                start, end = max(start, self.low), min(start + width, self.high)
                return start + (end - start) * (rank - before + 0.5) / count
            before += count
        return float(self.high)


def edges(key: int) -> tuple[int, int]:
    """Return where a bucket begins, and its width."""
    if key < 2 * _PARTS:
        return key, 1
    shift = key // _PARTS - 1
    return (key - shift * _PARTS) << shift, 1 << shift


def larger(one: int | None, other: int | None) -> int | None:
    """Return the larger of two where either may be unknown."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
