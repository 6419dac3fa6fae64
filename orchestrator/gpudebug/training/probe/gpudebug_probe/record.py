"""The file of a run into which its training processes write: a JSON object a line, never too many."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from .nodes import clock, file_of, job_of, share_of
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
        file = file_of(FILE, os.environ)
        self._path = os.path.join(run, file)
        self._share = share_of(file, FILE, os.environ)
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

    def _rarity(self, whole: int) -> int:
        room = int(whole * self._share)
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

    def clock(self) -> dict[str, list[float]]:
        """Return what tells how far this node's clock is from the others'; nothing in a job of one node."""
        if job_of(os.environ) is None:
            return {}
        fd = self._open()
        try:
            return {"clock": clock(fd)}
        finally:
            os.close(fd)

    def append(self, lines: list[str], last: bool = False) -> None:
        """Add whole lines, as far as there is room; `last`: in the part that is kept for the end."""
        self._append(lines, LARGEST if last else LARGEST - RESERVE)

    def append_stacks(self, lines: list[str]) -> None:
        self._append(lines, self._room_of_stacks)

    @property
    def _room_of_stacks(self) -> int:
        return STACKS // 2 if self.others else STACKS

    def _open(self) -> int:
        # Opened each time: a descriptor kept open may be closed, and its number used, by the training.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(self._path, flags, 0o600)

    def _append(self, lines: list[str], whole: int) -> None:
        fd, room = self._open(), int(whole * self._share)
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
