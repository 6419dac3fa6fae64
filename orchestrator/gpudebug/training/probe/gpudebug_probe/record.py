"""The file of a run into which its training processes write: a JSON object a line, never too many."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from .surroundings import host

FILE = "probe.jsonl"
# All processes of a run together; the last part is kept for the lines of the end.
LARGEST = 4 << 20
RESERVE = 256 << 10
# The fuller the file, the rarer it is written: each twelfth doubles the distance.
LEVELS = 12
# Of it, what stacks may fill: beats go on when there is no more room for these.
STACKS = LARGEST // 2


class RecordFile:
    """This process's end of the file. OSError if it cannot be written."""

    def __init__(self, run: str) -> None:
        self.pid = os.getpid()
        self._host = host()
        self._path = os.path.join(run, FILE)
        self._size = 0
        # Of a rank other than 0, whose stacks may take half of the room that there is for any.
        self.others = False

    @property
    def rarity(self) -> int:
        """How many times as far apart as at first lines should be; 0 once there is no room for more."""
        return self._rarity(LARGEST - RESERVE)

    @property
    def rarity_of_stacks(self) -> int:
        return self._rarity(self._room_of_stacks)

    def _rarity(self, room: int) -> int:
        return 0 if self._size >= room else 1 << (LEVELS * self._size // room)

    def line(self, kind: str, **entries: Any) -> str:
        fields = {
            "kind": kind,
            "pid": self.pid,
            "host": self._host,
            "t": round(time.monotonic(), 6),
            **entries,
        }
        return json.dumps(fields, default=str, separators=(",", ":")) + "\n"

    def append(self, lines: list[str], last: bool = False) -> None:
        """Add whole lines, as far as there is room; `last`: in the part that is kept for the end."""
        self._append(lines, LARGEST if last else LARGEST - RESERVE)

    def append_stacks(self, lines: list[str]) -> None:
        self._append(lines, self._room_of_stacks)

    @property
    def _room_of_stacks(self) -> int:
        return STACKS // 2 if self.others else STACKS

    def _append(self, lines: list[str], room: int) -> None:
        # Opened each time: a descriptor kept open may be closed, and its number used, by the training.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(self._path, flags, 0o600)
        try:
            self._size = os.fstat(fd).st_size
            for line in lines:
                data = line.encode("ascii")
                if self._size + len(data) <= room:
                    self._size += len(data)
                    if os.write(fd, data) < len(data):
                        raise OSError("no room for a whole line")
        finally:
            os.close(fd)
