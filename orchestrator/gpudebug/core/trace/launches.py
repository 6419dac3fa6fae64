"""Launches matched with what they put on the device: queue depth and launch delay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.recording import Recording
from gpudebug.core.trace.spans import Floats

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
        if not len(self._sorted):
            return np.full(len(wanted), -1, np.int32)
        at = np.searchsorted(self._sorted, wanted).astype(np.int32)
        np.minimum(at, len(self._sorted) - 1, out=at)
        found = self._order[at]
        found[(self._sorted[at] != wanted) | (wanted == 0)] = -1
        return found

    def delays(self, launch: NDArray[np.int32], start: Floats) -> dict[str, Any] | None:
        """How long the calls took and how long the device's work waited behind them; microseconds."""
        known = launch >= 0
        if not known.any():
            return None
        call = self.duration[launch[known]].astype(np.float64)
        delay = np.maximum(start[known] - self.start[launch[known]] - call, 0.0)
        return {
            "count": int(known.sum()),
            "mean_call_us": float(call.mean()),
            "mean_delay_us": float(delay.mean()),
            "p50_delay_us": float(np.median(delay)),
        }

    def queue(self, launch: NDArray[np.int32], start: Floats) -> dict[str, Any] | None:
        """Depth of the launch queue over time: launched and not yet started.

        Mean and p50 are over time, from the first launch to the last start; shares are of that time.
        """
        known = launch >= 0
        if not known.any():
            return None
        begin = np.sort(start[known])
        asked = np.sort(np.minimum(self.start[launch[known]], start[known]))
        span = float(begin[-1] - asked[0])
        if span <= 0:
            return None
        held = _time_at_depth(asked, begin)
        share = held / held.sum()
        reached = np.cumsum(share)
        return {
            "mean": float((start[known] - self.start[launch[known]]).clip(0).sum() / span),
            "p50": int(np.searchsorted(reached, 0.5)),
            "max": _depths(asked, begin)[0],
            "share_empty": float(share[0]),
            "share_low": float(share[: LOW + 1].sum()),
        }

    def queue_of_stream(self, launch: NDArray[np.int32], start: Floats) -> dict[str, Any]:
        """A stream's deepest queue, and the mean of its depth over its changes (not over time)."""
        known = launch >= 0
        if not known.any():
            return {"queue_max": None, "queue_mean_of_changes": None}
        begin = np.sort(start[known])
        asked = np.sort(self.start[launch[known]])
        most, summed = _depths(asked, begin)
        return {"queue_max": most, "queue_mean_of_changes": summed / (2 * len(begin))}


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
