"""Files of loggers that the processes of a run hold open to write: so they are this run's, and no other's."""

from __future__ import annotations

import os
from collections.abc import Iterable

LIKE_LOGS = (".csv", ".jsonl", ".wandb")
EVENTS = "tfevents"
MOST_FILES = 64
_MOST_DESCRIPTORS = 1024
# Loggers open their files as a training starts, and keep them open.
_OFTEN, _SELDOM = 10, 5


class OpenLogs:
    """Those seen so far, by their real paths."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self._looks = 0

    def look(self, pids: Iterable[int]) -> None:
        """Look at each of the first calls, then at each fifth: a process may have many descriptors."""
        self._looks += 1
        if self._looks > _OFTEN and self._looks % _SELDOM:
            return
        for pid in pids:
            self._look_at(f"/proc/{pid}")

    def _look_at(self, process: str) -> None:
        try:
            numbers = os.listdir(f"{process}/fd")[:_MOST_DESCRIPTORS]
        except OSError:  # Gone, or of another user.
            return
        for number in numbers:
            try:
                path = os.readlink(f"{process}/fd/{number}")
                if path in self.paths or not is_like_log(path) or len(self.paths) >= MOST_FILES:
                    continue
                if _may_write(f"{process}/fdinfo/{number}"):
                    self.paths[path] = None
            except (OSError, ValueError):
                continue


def is_like_log(path: str) -> bool:
    """Tell whether a file is named as loggers name theirs."""
    name = path.rpartition("/")[2]
    return path.startswith("/") and (EVENTS in name or name.endswith(LIKE_LOGS))


def _may_write(info: str) -> bool:
    with open(info, "rb") as file:
        lines = file.read(4096).splitlines()
    flags = next((line for line in lines if line.startswith(b"flags:")), b"flags:0")
    return bool(int(flags.partition(b":")[2], 8) & os.O_ACCMODE)
