"""Where a program that appends to its log begins another run: what it prints before it trains, or before it
dies of an exception, comes again.

A logger's file in append mode, and `>>`, keep runs one behind the other. The last of them is read alone,
unless its counter goes on where the one before had come to: then it is the same training, resumed. Without
such lines, steps and a loss that are back where they began tell of another run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.state import LogState
from gpudebug.core.trainlog.text import skeleton

FEWEST, SHARE = 3, 0.6
"""Lines that come again, and the share of all that are kept: settings differ from run to run."""
MOST_LINES = 64
HELD_BYTES = 1 << 18
BEFORE = 3
"""Readings before which a program does not train yet: settings look like counters."""
LONGEST = 512

_STAMP = regex(rb"\d+(?:[-/:.,T ]{1,2}\d+){2,}")
_WORD = regex(rb"[A-Za-z]{3}")


class Opening:
    """The lines that a program prints before it trains, and those of them that were printed again since it
    last went on. Dates and times in them are left out."""

    def __init__(self) -> None:
        self._lines: dict[bytes, int] = {}
        self._kinds: set[bytes] = set()
        self._again: set[int] = set()
        self._progress = self._since = self._size = 0
        self._over = False
        self.ahead: list[bytes] = []

    def take(self, segment: bytes, state: LogState) -> bool:
        """Takes in a line that the `state` has read; True if another run may have begun, with the lines
        `ahead`."""
        shown = segment[:LONGEST]
        kind = skeleton(shown)
        if self._over and not self.ahead and kind not in self._kinds:
            return False
        progress = state.progress
        if not self._over:
            self._open(shown, kind, state)
            return False
        if self.ahead and (progress >= self._since + BEFORE or self._size > HELD_BYTES):
            self.forget()
        place = self._lines.get(_STAMP.sub(b"", shown)) if kind in self._kinds else None
        if place == 0 or (place is not None and not self.ahead):
            self.forget()
            self._since = progress
        if place is not None:
            self._again.add(place)
        if self._again:
            self.ahead.append(segment)
            self._size += len(segment)
        return len(self._again) >= max(FEWEST, SHARE * len(self._lines))

    def _open(self, shown: bytes, kind: bytes, state: LogState) -> None:
        """Keep a line by which the training did not go on; an exception ends it before it begins."""
        progress = state.progress
        keeps = len(self._lines) < MOST_LINES and not state.scan.watching
        if keeps and progress == self._progress and _WORD.search(shown):
            self._lines.setdefault(_STAMP.sub(b"", shown), len(self._lines))
            self._kinds.add(kind)
        self._progress, self._over = progress, progress >= BEFORE or state.scan.raised > 0

    def forget(self) -> None:
        """Nothing came again yet."""
        self.ahead, self._again, self._size = [], set(), 0


class LogRuns:
    """The runs of a log: `state` is what was read of the last one that trained, `count` how many did."""

    def __init__(self, fresh: Callable[[], LogState]) -> None:
        self._fresh = fresh
        self._opening = Opening()
        self._beginning: LogState | None = None
        self.state = fresh()
        self.count = 1

    def read(self, segment: bytes, time: float | None) -> None:
        """Takes in a line; of a run that is watched, with the `time` at which it came, there is one."""
        if self._beginning is not None:
            self._beginning.read(segment, time)
            if self._decided(self._beginning):
                return
        self.state.read(segment, time)
        if time is not None or self._beginning is not None:
            return
        leader = self.state.steps.leader
        if leader is not None and leader.anew:
            leader.anew, leader.adrift = False, True
            if self.state.losses.back or not self.state.trained:
                self.state = self._another([segment])
                self.count += 1
        if self._opening.take(segment, self.state):
            self._beginning = self._another(self._opening.ahead)
            self._opening.forget()

    def _another(self, segments: Iterable[bytes]) -> LogState:
        found = self._fresh()
        found.learned, found.pattern_seconds = self.state.learned, self.state.pattern_seconds
        for segment in segments:
            found.read(segment, None)
        return found

    def _decided(self, beginning: LogState) -> bool:
        """Tell whether another run began: its counter stands where that of the one before had begun, or both
        died before they trained."""
        trained = bool(self.state.trained or self.state.progress)
        died = beginning.scan.raised > 0 and not trained
        if not (died or beginning.trained or beginning.progress >= BEFORE):
            return False
        self._beginning = None
        counter = beginning.steps.leader
        if counter is not None:
            before = self.state.steps.source(counter.key, counter.kind, counter.weight)
            if before is not None and before.seen and counter.first > before.first:
                return False
        self.state = beginning
        self.count += trained
        return True
