"""How many iterations a training that goes on has made, from its record as it grows."""

from __future__ import annotations

from gpudebug.core.probe.reading import LONGEST_LINE, read_line


class LiveSteps:
    """Fed with what was appended to probe.jsonl. `steps` are those of the process that made the most."""

    def __init__(self) -> None:
        self.steps: int | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            self._rest = b""
        for raw in lines:
            line = read_line(raw.decode("utf-8", "replace"))
            steps = line.get("steps") if line and line["kind"] == "beat" else None
            if isinstance(steps, int) and steps > (self.steps or 0):
                self.steps = steps
