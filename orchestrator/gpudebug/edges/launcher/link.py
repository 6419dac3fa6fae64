"""The two connections to the warden's process: commands there, events back."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.edges.launcher.command import FAILED, cannot_launch

STATEMENT = "from warden.main import main; sys.exit(main())"
LONGEST_WORDS = 4000
NO_PROCESS = "look at this user's limits with `ulimit -a` and at the memory that is left, then run it again"


class WardenLink:
    """A running warden. Its standard input is its lifeline: it ends everything when this process is gone."""

    def __init__(self, request: dict[str, object], hold_fds: tuple[int, ...]) -> None:
        self._words = os.memfd_create("warden-stderr")
        # No pipes: those can be opened by others through /proc, and spoken into in the warden's name.
        self._stdin, theirs_in = socket.socketpair()
        self._stdout, theirs_out = socket.socketpair()
        try:
            with theirs_in, theirs_out:
                self._process = subprocess.Popen(
                    isolated_argv(sys.executable, [str(Path(__file__).parent)], STATEMENT),
                    stdin=theirs_in.fileno(),
                    stdout=theirs_out.fileno(),
                    stderr=self._words,
                    bufsize=0,
                    start_new_session=True,
                    pass_fds=hold_fds,
                )
        except OSError as error:
            os.close(self._words)
            self._stdin.close()
            self._stdout.close()
            raise cannot_launch(
                f"cannot start a process: {error.strerror}", FAILED, next=NO_PROCESS
            ) from error
        self._stdin.setblocking(False)
        self._stdout.setblocking(False)
        self._out = json.dumps(request).encode() + b"\n"
        self._in = b""
        self.open = True
        self.said = ""

    @property
    def pid(self) -> int:
        return self._process.pid

    def command(self, line: str) -> None:
        """Queues one command; a warden that was stopped is made to go on and read it."""
        self._out += line.encode() + b"\n"
        self._send()
        self._signal(signal.SIGCONT)

    def wait(self, seconds: float, wake: int | None) -> list[dict[str, object]]:
        """Events that arrive within `seconds`; earlier if some do or `wake` is readable."""
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if self._out:
            poll.register(self._stdin, select.POLLOUT)
        if wake is not None:
            poll.register(wake, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(seconds * 1000)}
        if wake in ready and wake is not None:
            os.read(wake, 4096)
        if self._stdin.fileno() in ready:
            self._send()
        return self._receive() if self._stdout.fileno() in ready else []

    def _send(self) -> None:
        try:
            self._out = self._out[os.write(self._stdin.fileno(), self._out) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._out = b""  # the warden is gone: its other pipe says so too

    def _receive(self) -> list[dict[str, object]]:
        data = os.read(self._stdout.fileno(), 65536)
        self.open = bool(data)
        *lines, self._in = (self._in + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # Unreaped, so the number is still the warden's; poll() would reap it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def leave(self, patience: float) -> bool:
        """Cuts the lifeline and waits for the warden's end; one that takes longer than `patience` is killed.

        True if it ended well: then nothing of the run is left. False: its orphans have come to this process.
        """
        self._stdin.close()
        deadline = time.monotonic() + patience
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._stdout.close()
        size = os.fstat(self._words).st_size
        self.said = os.pread(self._words, LONGEST_WORDS, max(0, size - LONGEST_WORDS)).decode(
            "utf-8", "replace"
        )
        os.close(self._words)
        return self._process.returncode == 0
