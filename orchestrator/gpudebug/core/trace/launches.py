"""Launches matched with what they put on the device: queue depth and launch delay."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.recording import Recording
from gpudebug.core.trace.spans import Floats, blocks

# Launches that are taken at once to walk through the queue's depth.
_BLOCK = 50_000
# Depth is counted up to here; a CUDA stream's queue holds about a thousand.
_DEEPEST = 4096
LOW = 2


class Launches:
    """The launches of a recording by correlation: `start` and `end` in microseconds."""

    def __init__(self, recording: Recording) -> None:
        correlation = np.frombuffer(recording.launch_correlation, np.uint32)
        self._order = np.argsort(correlation, kind="stable").astype(np.int32)
        self._sorted = correlation[self._order]
        self.start = np.frombuffer(recording.launch_start)
        self.duration = np.frombuffer(recording.launch_duration, np.float32)

    def of(self, wanted: NDArray[np.uint32]) -> NDArray[np.int32]:
        """The launch with each of these correlations, -1 where the trace does not hold it."""
        found = np.full(len(wanted), -1, np.int32)
        if not len(self._sorted):
            return found
        for part in blocks(len(wanted)):
            at = np.minimum(np.searchsorted(self._sorted, wanted[part]), len(self._sorted) - 1)
            known = (self._sorted[at] == wanted[part]) & (wanted[part] != 0)
            found[part] = np.where(known, self._order[at], -1)
        return found

    def forget(self, recording: Recording) -> None:
        """Free what only `of` needs."""
        self._order, self._sorted = self._order[:0].copy(), self._sorted[:0].copy()
        recording.correlation, recording.launch_correlation = array("I"), array("I")

    def delays(self, launch: NDArray[np.int32], start: Floats) -> dict[str, Any] | None:
        """How long the calls took and how long the device's work waited behind them; microseconds."""
        known = launch >= 0
        if not known.any():
            return None
        calls, delays = 0.0, []
        for part in blocks(len(start)):
            here = known[part]
            call = self.duration[launch[part][here]].astype(np.float64)
            wait = start[part][here] - self.start[launch[part][here]] - call
            calls += float(call.sum())
            delays.append(np.maximum(wait, 0.0).astype(np.float32))
        delay = np.concatenate(delays)
        return {
            "count": len(delay),
            "mean_call_us": calls / len(delay),
            "mean_delay_us": float(delay.mean(dtype=np.float64)),
            "p50_delay_us": float(np.median(delay)),
        }

    def queue(self, launch: NDArray[np.int32], start: Floats) -> dict[str, Any] | None:
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
            "mean": float((begin - asked).sum() / span),
            "p50": int(np.searchsorted(reached, 0.5)),
            "max": _depths(asked, begin)[0],
            "share_empty": float(share[0]),
            "share_low": float(share[: LOW + 1].sum()),
        }

    def queue_of_stream(self, launch: NDArray[np.int32], start: Floats) -> dict[str, Any]:
        """A stream's deepest queue, and the mean of its depth over its changes (not over time)."""
        begin, asked = self._pairs(launch, start)
        if not len(begin):
            return {"queue_max": None, "queue_mean_of_changes": None}
        most, summed = _depths(asked, begin)
        return {"queue_max": most, "queue_mean_of_changes": summed / (2 * len(begin))}

    def _pairs(self, launch: NDArray[np.int32], start: Floats) -> tuple[Floats, Floats]:
        """When work began and when it was asked for, each sorted; never asked for later than begun."""
        known = launch >= 0
        begin = start[known]
        asked = self.start[launch[known]]
        np.minimum(asked, begin, out=asked)
        begin.sort()
        asked.sort()
        return begin, asked


def _depths(asked: Floats, begin: Floats) -> tuple[int, int]:
    """The greatest depth just after a launch; the sum of the depths after every launch and start."""
    most, summed = 0, 0
    for at in range(0, len(asked), _BLOCK):
        part = slice(at, at + _BLOCK)
        order = np.arange(at + 1, at + 1 + len(asked[part]))
        # At the same microsecond a launch comes before a start.
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
