"""Terminals for tests: a pseudo-terminal of a program's own, and a tmux with a shell in it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.campaigns import GPUDEBUG, environment, killed_at_the_end, wait_for


def _front() -> None:
    """The new process's terminal is its controlling one, and no signal is ignored."""
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Terminal:
    """A program in a terminal of its own. `said` is all that it has written."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str | None] | None = None,
        stdin: int | None = None,
    ) -> None:
        self._master, self._slave = pty.openpty()
        self.resize(*size)
        self.before = self.modes
        self.said = b""
        self.process = subprocess.Popen(
            list(words),
            stdin=self._slave if stdin is None else stdin,
            stdout=self._slave,
            stderr=self._slave,
            env=environment({"TERM": "xterm-256color", **(env or {})}),
            start_new_session=True,
            preexec_fn=_front,  # noqa: PLW1509
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._slave)
        os.close(self._master)

    @property
    def modes(self) -> list[Any]:
        """What `stty` shows."""
        return termios.tcgetattr(self._slave)

    @property
    def left(self) -> bool:
        """Whether the alternate screen was left last, with the cursor shown."""
        pairs = ((b"[?1049h", b"[?1049l"), (b"[?25l", b"[?25h"))
        return all(0 <= self._last(on) < self._last(off) for on, off in pairs)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str, within: float = 30.0) -> None:
        """Until it has written `text`."""
        until = time.monotonic() + within
        while text.encode() not in self.said:
            assert time.monotonic() < until, self.said
            self._hear(0.1)

    def end(self, within: float = 30.0) -> int:
        """Its exit status; all that it wrote is in `said` then."""
        until = time.monotonic() + within
        while self.process.poll() is None:
            assert time.monotonic() < until, self.said
            self._hear(0.02)
        while self._hear(0):
            pass
        return self.process.returncode

    def _last(self, sequence: bytes) -> int:
        return self.said.rfind(b"\x1b" + sequence)

    def _hear(self, patience: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], patience)
        if ready:
            self.said += os.read(self._master, 1 << 16)
        return bool(ready)


class Tmux:
    """A tmux server of its own with one window and a shell in it."""

    def __init__(self, folder: Path, columns: int, lines: int) -> None:
        self._socket = folder / "tmux"
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(columns), "-y", str(lines), *_SHELL)
        wait_for(lambda: "$" in self.screen)

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), *words],
            env=environment({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=30,
        )
        return done.stdout.decode()

    @property
    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    @property
    def lines(self) -> list[str]:
        return self.screen.rstrip("\n").split("\n")

    @property
    def alternate(self) -> bool:
        """Whether a program shows a screen of its own, …"""
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    @property
    def cursor(self) -> bool:
        """… and whether the cursor is seen."""
        return self._tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def shell(self, line: str) -> None:
        self.type(line)
        self.press("Enter")


_SHELL = (
    shutil.which("env") or "env",
    "PS1=$ ",
    "HISTFILE=",
    shutil.which("bash") or "bash",
    "--norc",
    "--noprofile",
)


def run_in_terminal(folder: Path, *words: str, columns: int = 100, **env: str) -> tuple[int, str]:
    """Exit status and all that a gpudebug command writes to a real terminal of so many columns."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*GPUDEBUG, *words],
        cwd=folder,
        env=environment({"TERM": "xterm-256color", **env}),
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
    )
    os.close(child)
    said = b""
    with killed_at_the_end(process):
        while select.select([parent], [], [], 30)[0]:
            try:
                data = os.read(parent, 65536)
            except OSError:  # the last writer closed its end
                break
            said += data
        status = process.wait(30)
    os.close(parent)
    return status, said.decode()
