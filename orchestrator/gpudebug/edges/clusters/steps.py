"""A program that runs on other nodes of an allocation for as long as its standard input is open."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from gpudebug.core.cluster.jobs import NodeStep
from gpudebug.core.cluster.node_reports import messages_in
from gpudebug.core.errors import ClusterError

_POLL_S = 0.02
_MOST_BYTES = 16 * 2**20
_TERMINATES_S = 3.0
HURRIED_S = 5.0
"""A scheduler kills what is left 30 s after it told a job to end."""


@contextlib.contextmanager
def running(step: NodeStep, program: Sequence[str]) -> Iterator[RunningStep]:
    """The program on all nodes of a step, until the end of the block at the latest.

    ClusterError if the scheduler's command cannot be started. It ends with this process, however that ends:
    its standard input is a pipe of ours.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        try:
            # A session of its own: Ctrl-C of a terminal is for the run, whose end ends this.
            process = subprocess.Popen(
                [*step.argv, *program],
                env=dict(step.env),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=error,
                start_new_session=True,
            )
        except OSError as e:
            raise ClusterError(f"{step.argv[0]}: {e.strerror}") from None
        started = RunningStep(process, out, error)
        try:
            yield started
        finally:
            if process.poll() is None:
                with contextlib.suppress(OSError):
                    started.end(0.0)


class RunningStep:
    """What it prints is made of lines of `core.cluster.node_reports`."""

    def __init__(self, process: subprocess.Popen[bytes], out: BinaryIO, error: BinaryIO) -> None:
        self._process = process
        self._out = out
        self._error = error

    def tell(self, message: dict[str, object]) -> None:
        """Write a line to the program on every node; nothing if it is over."""
        assert self._process.stdin is not None  # it was asked for
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def messages(self) -> list[dict[str, object]]:
        """Return all that was printed so far and names its node."""
        return messages_in(_printed(self._out).split(b"\n"))

    def wait(
        self, enough: Callable[[list[dict[str, object]]], bool], within_s: float
    ) -> list[dict[str, Any]]:
        """Return what was printed once that is enough, or the program is over, or the time is."""
        deadline = time.monotonic() + within_s
        while not enough(found := self.messages()):
            if self._process.poll() is not None:
                return self.messages()
            if time.monotonic() >= deadline:
                return found
            time.sleep(_POLL_S)
        return found

    @property
    def why(self) -> str | None:
        """The last line of what the scheduler's command complained in; None if it did not."""
        lines = _printed(self._error).decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), None)

    def end(self, within_s: float, hurried: Callable[[], bool] = lambda: False) -> list[dict[str, object]]:
        """Close its input, and end what is left after that time; all that was printed.

        Once it is `hurried` it has `HURRIED_S` more at most.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        deadline, hurry = time.monotonic() + within_s, False
        while self._process.poll() is None and time.monotonic() < deadline:
            if not hurry and hurried():
                hurry, deadline = True, min(deadline, time.monotonic() + HURRIED_S)
            time.sleep(_POLL_S)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_TERMINATES_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return self.messages()


def _printed(file: BinaryIO) -> bytes:
    """Return what is in the file, whose position is the one that the program writes at."""
    return os.pread(file.fileno(), _MOST_BYTES, 0)
