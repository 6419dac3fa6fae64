"""Launches matched with what they put on the device: queue depth and launch delay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.arrays import Recording
from gpudebug.core.trace.spans import Floats, blocks

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

    def delays(self, launch: NDArray[np.int32], start: Floats) -> dict[str, Any] | None:
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
            "mean": sum(float((begin[p] - asked[p]).sum()) for p in blocks(len(begin))) / span,
            "p50": int(np.searchsorted(reached, 0.5)),
            "max": _depths(asked, begin)[0],
            "share_empty": float(share[0]),
            "share_low": float(share[: LOW + 1].sum()),
        }

    def queue_of_stream(
        self, launch: NDArray[np.int32], start: Floats, mine: NDArray[np.bool_]
    ) -> dict[str, Any]:
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
