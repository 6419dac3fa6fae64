"""Looks at all processes of a crowd of agents again and again, and kills some of them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

MARK = "CROWD"
KINDS = ("command", "command", "background", "warden", "sampler")
_LOOK_S = 0.05
_PATIENCE_S = 1.0


def processes(mark: str) -> dict[int, str]:
    """Every live process that inherited `CROWD=mark`: number and command line. No zombies."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for name in os.listdir("/proc"):
        # It may end, or be somebody else's, while it is looked at.
        with contextlib.suppress(OSError):
            if name.isdigit() and wanted in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                command = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(name)] = command.decode(errors="replace")
    return found


def kind(command: str) -> str | None:
    """What may be killed: a command that an agent gave, a background process, a warden, a sampler."""
    if " -m gpudebug " in command:
        return "command"
    if "gpudebug.engine.cycle.worker" in command:
        return "background"
    if "from warden" in command:
        return "warden"
    return "sampler" if "gpudebug.edges" in command and "sampler" in command else None


class Watcher(threading.Thread):
    """Kills `kills` of the crowd, a random one of a random kind each, and sees which runs train at once.

    Which kind is drawn before one is looked for: wardens and samplers live shortly.
    """

    def __init__(self, mark: str, kills: int, pause: tuple[float, float]) -> None:
        super().__init__()
        self.mark = mark
        self.left = kills
        self.pause = pause
        self.rng = random.Random(kills)
        self.killed: Counter[str] = Counter()
        self.training: set[str] = set()
        self.at_once: list[set[str]] = []
        self._over = threading.Event()
        self._next = self._draw(0.0)

    def run(self) -> None:
        while not self._over.wait(_LOOK_S):
            found = processes(self.mark)
            self._look(found)
            due, what = self._next
            if self.left and time.monotonic() >= due:
                if self._kill(found, what):
                    self.left -= 1
                    self._next = self._draw(self.rng.uniform(*self.pause))
                elif time.monotonic() > due + _PATIENCE_S:
                    self._next = self._draw(0.0)

    def end(self) -> None:
        self._over.set()
        self.join()

    def _look(self, found: dict[int, str]) -> None:
        runs = set()
        for pid, command in found.items():
            if "replay.play" in command:
                with contextlib.suppress(OSError):
                    variables = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
                    runs |= {v.decode() for v in variables if v.startswith(b"GPUDEBUG_RUN=")}
        self.training |= runs
        if len(runs) > 1:
            self.at_once.append(runs)

    def _draw(self, pause: float) -> tuple[float, str]:
        return time.monotonic() + pause, self.rng.choice(KINDS)

    def _kill(self, found: dict[int, str], what: str) -> bool:
        living = [pid for pid, command in found.items() if kind(command) == what]
        if not living:
            return False
        try:
            os.kill(self.rng.choice(living), signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.killed[what] += 1
        return True
