"""py-spy at work on one process for one span: two recordings side by side, read back at the end.

What py-spy writes goes to files in memory: nothing is left behind, whatever ends it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress

from gpudebug.core.inside.attached.foreign_frames import RawStack, read_raw
from gpudebug.core.inside.attached.looks import Looks, looks_of
from gpudebug.edges.attach import counters, spy
from gpudebug.edges.attach.processes import inner_number
from gpudebug.edges.proc import tasks

LARGEST = 8 << 20
_PATIENCE_S = 2.0


class SpyRecording:
    """One py-spy, which looks `rate` times a second on average, until it is asked to end or for twice
    `seconds`: none outlives its follower for long."""

    def __init__(self, program: str, pid: int, *, rate: int, seconds: int, idle: bool) -> None:
        self.failed: str | None = None
        self.cpu_s = 0.0
        self._rate = rate
        self._output = os.memfd_create("gpudebug-stacks")
        self._said = os.memfd_create("gpudebug-said")
        argv = spy.recording(
            program, pid, f"/proc/self/fd/{self._output}", rate=rate, seconds=2 * seconds, idle=idle
        )
        self._begun = time.monotonic()
        self._asked_at: float | None = None
        self._child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=(self._output,),
            env=spy.quiet(),
        )

    def ask(self) -> None:
        """Let it write what it has, and end."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            # Not reaped yet, so the number is its own: Popen's way to signal would reap it.
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGINT)

    def finish(self) -> str:
        """Return what it recorded; "" if it could not, with the reason in `failed`."""
        self.ask()
        deadline = time.monotonic() + _PATIENCE_S
        pid, status, used = 0, 0, None
        while not pid and time.monotonic() < deadline:
            pid, status, used = os.wait4(self._child.pid, os.WNOHANG)
            if not pid:
                time.sleep(0.01)
        if not pid:
            os.kill(self._child.pid, signal.SIGKILL)
            _, status, used = os.wait4(self._child.pid, 0)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = used.ru_utime + used.ru_stime if used is not None else 0.0
        text = _all(self._output)
        said = _all(self._said)
        if not text and self._child.returncode != 0:
            self.failed = spy.judged(self._child.returncode, said).said
        return text

    @property
    def looks(self) -> int:
        """How often it looked until it was asked to end, on average."""
        return max(1, round(self._rate * ((self._asked_at or time.monotonic()) - self._begun)))


class ProcessLook:
    """A process while it is looked at: its stacks, if py-spy may read them, and its counters."""

    def __init__(self, program: str | None, pid: int, *, rate: int, seconds: int, states: bool) -> None:
        self.pid = pid
        self.cpu_s = 0.0
        self.failed: str | None = None
        self.begun = time.monotonic()
        self.before = counters.count(pid)
        self._seen = self._ran = None
        self.spied = program is not None
        if program is not None:
            self._seen = SpyRecording(program, pid, rate=rate, seconds=seconds, idle=True)
            if states:
                self._ran = SpyRecording(program, pid, rate=rate, seconds=seconds, idle=False)

    def ask(self) -> None:
        """Let both recordings end; before `finish`, so that all do at once."""
        for one in (self._seen, self._ran):
            if one is not None:
                one.ask()

    def finish(self) -> Looks | None:
        """Return the stacks of the span; None if none was read."""
        until = time.monotonic()
        after = counters.count(self.pid) or self.before
        if self._seen is None:
            return None
        text = self._seen.finish()
        ran_text = self._ran.finish() if self._ran is not None else ""
        self.cpu_s = self._seen.cpu_s + (self._ran.cpu_s if self._ran is not None else 0.0)
        self.failed = self._seen.failed
        seen = read_raw(text[:LARGEST])
        known = self._known(seen)
        ran = read_raw(ran_text[:LARGEST]) if self._ran is not None and known else None
        return looks_of(
            seen,
            ran,
            seconds=until - self.begun,
            ran_looks=self._ran.looks if self._ran is not None else 0,
            cpu_of=lambda tid: self._spent(after, tid),
        )

    def _known(self, seen: list[RawStack]) -> bool:
        """Whether py-spy knew the threads as the kernel numbers them here: else it guesses which one runs."""
        numbers = set(tasks(self.pid))
        return bool(seen) and all(one.tid in numbers for one in seen if one.main)

    def _spent(self, after: counters.CountedProcess | None, tid: int | None) -> float | None:
        """How long a thread ran or was ready to; of one whose number is unknown here the process's first."""
        if self.before is None or after is None:
            return None
        here = tid if tid in after.threads and inner_number(self.pid) == self.pid else self.pid
        spent = counters.thread_seconds(self.before, after, here)
        return None if spent is None else spent[0] + spent[1]


def _all(fd: int) -> str:
    try:
        return os.pread(fd, LARGEST, 0).decode("utf-8", "replace")
    finally:
        os.close(fd)
