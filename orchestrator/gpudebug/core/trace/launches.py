"""Launches matched with what they put on the device: queue depth and launch delay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.recording import Recording
from gpudebug.core.trace.spans import Floats, Ints

# Launches that are taken at once to walk through the queue's depth.
_BLOCK = 200_000
# Depth is counted up to here; a CUDA stream's queue holds about a thousand.
_DEEPEST = 4096
LOW = 2


class Launches:
    """The launches of a recording by correlation: `start` and `end` in microseconds."""

    def __init__(self, recording: Recording) -> None:
        correlation = np.frombuffer(recording.launch_correlation, np.uint32)
        self._order = np.argsort(correlation, kind="stable").astype(np.int32)
        self._sorted = correlation[self._order]
        self._of_device = np.frombuffer(recording.correlation, np.uint32)
        self.start = np.frombuffer(recording.launch_start)
        self.duration = np.frombuffer(recording.launch_duration, np.float32)

    def of(self, which: Ints) -> NDArray[np.int32]:
        """The launch of each of these device events, -1 where the trace does not hold it."""
        wanted = self._of_device[which]
        if not len(self._sorted):
            return np.full(len(wanted), -1, np.int32)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        found = (self._sorted[at] == wanted) & (wanted != 0)
        return np.where(found, self._order[at], -1).astype(np.int32)

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
            "max": int(_after_launch(asked, begin).max()),
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
        after = _after_launch(asked, begin)
        left = np.searchsorted(asked, begin, side="right") - np.arange(1, len(begin) + 1)
        return {
            "queue_max": int(after.max()),
            "queue_mean_of_changes": float((after.sum() + left.sum()) / (2 * len(begin))),
        }


def _after_launch(asked: Floats, begin: Floats) -> Ints:
    """Depth just after each launch; both sorted."""
    return np.asarray(np.arange(1, len(asked) + 1) - np.searchsorted(begin, asked, side="right"))


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
