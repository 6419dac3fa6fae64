"""How many iterations a training that goes on has made, from its record as it grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from gpudebug.core.inside.probe.processes import LONGEST_LINE, MOST_PROCESSES, ProcessKey, key_of, read_line

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

    def _take(self, line: dict[str, Any]) -> None:
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


def _beats(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for raw in lines:
        line = read_line(raw.decode("utf-8", "replace"))
        if line and line["kind"] == "beat":
            yield line


def _known(value: object) -> float | None:
    """Return a count or a time; None for anything else, NaN and infinity among it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 2**53 else None
