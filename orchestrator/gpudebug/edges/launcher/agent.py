"""An agent's process: one command that reads its brief, says what it says, and leaves nothing behind.

It runs under no warden: a run that it started with `next --detach` has to survive it. What else is left of it
is found by the marker in its environment, which such a run does not have.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpudebug.core.words import Outcome
from gpudebug.edges import opener
from gpudebug.edges.launcher.command import NOT_EXECUTABLE, cannot_launch, find_command
from gpudebug.edges.launcher.interrupts import Interrupts, counting_interrupts
from gpudebug.edges.launcher.recovery import VARIABLE, marked, sweep
from gpudebug.edges.launcher.warden import processes

GRACE_S = 1.0
DRAIN_S = 1.0
_TICK_S = 0.1
_GRACE_TICK_S = 0.05
_CHUNK = 1 << 16


@dataclass(frozen=True)
class AgentSpec:
    """What to start: its standard input is the file `stdin`, its GPUDEBUG_RUN is `marker`. Times in seconds.

    `ladder` is the time between interrupt and terminate, and between terminate and kill.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: str
    marker: str
    timeout: float
    ladder: tuple[float, float] = (10.0, 5.0)


@dataclass(frozen=True)
class AgentEnded:
    """How it ended: COMPLETED, CRASHED, TIMED_OUT or INTERRUPTED; one of `exit_status` and `signal` is None.

    `leaked` counts the processes that it left behind and that had to be killed.
    """

    outcome: Outcome
    exit_status: int | None
    signal: int | None
    duration_s: float
    leaked: int


def run_agent(spec: AgentSpec, write: Callable[[bytes], object]) -> AgentEnded:
    """Run it to its end, and end what is left of it. `write` is given its output as it is printed.

    It has a session of its own, so no terminal. In the main thread the first Ctrl-C stops it gracefully, the
    second kills it. Whatever `write` raises passes through after everything was ended. Raises LaunchError
    where it cannot be started.
    """
    path = find_command(spec.argv, spec.cwd, spec.env)
    with counting_interrupts() as interrupts:
        agent = _RunningAgent(spec, _start(spec, path), write, interrupts)
        try:
            agent.follow()
            agent.grace()
        finally:
            leaked = agent.clear()
        agent.drain()
        return agent.ended(leaked)


def adopt_orphans() -> None:
    """From now on what an agent orphans is this process's child, not init's: its line stays to be seen."""
    processes.set_subreaper(True)


def end_agent(marker: str) -> list[int]:
    """End what is left of an agent whose caller was killed; the pids."""
    return sweep(marker)


def _start(spec: AgentSpec, path: str) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def settle() -> None:
        """It ends with its caller, however that ends, and heeds Ctrl-C even where the caller ignores it."""
        processes.prctl(processes.PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(NOT_EXECUTABLE)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    try:
        with opener.opened(spec.stdin) as stdin:
            return subprocess.Popen(
                spec.argv,
                executable=path,
                cwd=spec.cwd,
                env={**spec.env, VARIABLE: spec.marker},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=settle,  # noqa: PLW1509  # no thread of ours holds a lock that it would need
            )
    except OSError as e:
        raise cannot_launch(f"{spec.argv[0]}: {e.strerror}", NOT_EXECUTABLE) from None


def _reap_adopted() -> None:
    """Let go of what the agent orphaned and what has ended by now; the agent itself was waited for."""
    mine = os.getpid()
    for proc in list(processes.newest_first()):
        if proc.ppid == mine and proc.state == "Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(proc.pid, os.WNOHANG)


class _RunningAgent:
    """One agent that runs, and what was done to end it."""

    def __init__(
        self,
        spec: AgentSpec,
        process: subprocess.Popen[bytes],
        write: Callable[[bytes], object],
        interrupts: Interrupts,
    ) -> None:
        assert process.stdout is not None  # it was asked for
        self.spec = spec
        self.process = process
        self.output = process.stdout
        self.write = write
        self.interrupts = interrupts
        self.began = time.monotonic()
        self.ended_at = self.began
        self.reason: Outcome | None = None
        self._open = True
        self._step = 0
        self._until = 0.0
        os.set_blocking(self.output.fileno(), False)

    def follow(self) -> None:
        """Until its own end."""
        while self.process.poll() is None:
            self._read(_TICK_S)
            self._heed(time.monotonic())
        self.ended_at = time.monotonic()

    def grace(self) -> None:
        """What is just shutting down may do so before it counts as left behind."""
        while self.interrupts.count < 2 and time.monotonic() < self.ended_at + GRACE_S:
            if not marked(self.spec.marker):
                return
            self._read(_GRACE_TICK_S)

    def clear(self) -> int:
        """End whatever is left, the agent itself too; how many processes those were."""
        left = sweep(self.spec.marker)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        _reap_adopted()
        return len(left)

    def drain(self) -> None:
        """Read the rest of its output, for `DRAIN_S` at most: a process may hold the pipe for ever."""
        deadline = time.monotonic() + DRAIN_S
        while self._open and time.monotonic() < deadline:
            self._read(_GRACE_TICK_S)
        self.output.close()

    def ended(self, leaked: int) -> AgentEnded:
        code = self.process.returncode
        interrupted = Outcome.INTERRUPTED if self.interrupts.count else None
        return AgentEnded(
            outcome=self.reason or interrupted or (Outcome.CRASHED if code else Outcome.COMPLETED),
            exit_status=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            duration_s=self.ended_at - self.began,
            leaked=leaked if self.reason is None else 0,
        )

    def _read(self, seconds: float) -> None:
        """Hand on what it writes within `seconds`; sooner back where it writes or Ctrl-C is pressed."""
        poll = select.poll()
        if self._open:
            poll.register(self.output, select.POLLIN)
        if self.interrupts.fd is not None:
            poll.register(self.interrupts.fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(seconds * 1000)]
        if self.interrupts.fd in ready and self.interrupts.fd is not None:
            os.read(self.interrupts.fd, 4096)
        if self._open and self.output.fileno() in ready:
            data = os.read(self.output.fileno(), _CHUNK)
            self._open = bool(data)
            self.write(data)

    def _heed(self, now: float) -> None:
        """Interrupt, terminate, kill, each with its time, once there is a reason."""
        if self.reason is None and self.interrupts.count:
            self.reason = Outcome.INTERRUPTED
        elif self.reason is None and now >= self.began + self.spec.timeout:
            self.reason = Outcome.TIMED_OUT
        if self.reason is None or (now < self._until and self.interrupts.count < 2):
            return
        if self._step == len(self.spec.ladder) or self.interrupts.count >= 2:
            sweep(self.spec.marker)
            return
        self._signal((signal.SIGINT, signal.SIGTERM)[self._step])
        self._until = now + self.spec.ladder[self._step]
        self._step += 1

    def _signal(self, number: int) -> None:
        """Interrupt goes to its group, as a terminal's Ctrl-C does; terminate to every process of it."""
        if number == signal.SIGINT:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)
            return
        for proc in processes.with_descendants(marked(self.spec.marker)):
            processes.send(proc, number)
