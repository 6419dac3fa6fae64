"""How many iterations a training that goes on has made, from its record as it grows."""

from __future__ import annotations

from gpudebug.core.probe.reading import LONGEST_LINE, read_line


class LiveSteps:
    """Fed with what was appended to probe.jsonl.

    `steps` are those of the process that made the most, `gap` the seconds between the last two times that
    more of them were told: these grow rarer in a long run.
    """

    def __init__(self) -> None:
        self.steps: int | None = None
        self.gap = 0.0
        self._at: float | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            self._rest = b""
        for raw in lines:
            line = read_line(raw.decode("utf-8", "replace"))
            if line and line["kind"] == "beat":
                self._take(line.get("steps"), line.get("t"))

    def _take(self, steps: object, at: object) -> None:
        if not isinstance(steps, int) or not isinstance(at, (int, float)) or steps <= (self.steps or 0):
            return
        self.gap = max(0.0, at - self._at) if self._at is not None else 0.0
        self.steps, self._at = steps, at
