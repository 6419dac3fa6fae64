"""The server that a workload needs: started before the job, waited for, watched, and ended after it.

It runs in the job's containment, so nothing of it outlives the run. What it prints goes to a log of its own.
"""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import os
import signal
import time
from abc import ABC, abstractmethod

from . import spawn
from .cgroup import Cgroup
from .digests import Counters
from .spawn import JobLog, emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .processes import Tree
    from .sampling import SamplerProcess

    Phase = Callable[[float], "float | None"]


STEPS = ((signal.SIGINT, "interrupt"), (signal.SIGTERM, "terminate"), (signal.SIGKILL, "kill"))
READY_TICK_S = 0.1
KILLED_S = 5.0
"""A killed server may take this long to give its device back."""
CONNECT_S = 0.2
ANSWER_S = 2.0
_TAIL = 1 << 16
FLOOD = 1.1


class ServerProcess:
    """One server of one run. `status` is how it ended, `died` says that this ended the run."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.pid: int | None = None
        self.status: int | None = None
        self.died = False
        self.ready_s: float | None = None
        self.began = 0.0
        self.log: JobLog | None = None
        self._told = -1
        self._tail = b""
        self._read_to = 0
        self._step = 0
        self._until = 0.0

    def start(self, cgroup: Cgroup | None) -> None:
        """Raises OSError if its log cannot be written."""
        self.log = JobLog(self.spec["log"])
        # What stands there already says nothing of this server.
        self._read_to = os.fstat(self.log.fd).st_size
        self.began = time.monotonic()
        self.pid, self._told = spawn.spawn_job(self.spec, self.log.fd, cgroup)
        os.set_blocking(self._told, False)

    def refused(self) -> dict[str, object] | None:
        """Why its program could not be started: `status` and `message`; None if it was, or may yet be."""
        if self._told < 0:
            return None
        try:
            answer = os.read(self._told, 65536)
        except BlockingIOError:
            return None
        os.close(self._told)
        self._told = -1
        if not answer:
            return None
        import json

        found = json.loads(answer)
        return {**found, "message": f"the server: {found['message']}"}

    def is_ready(self) -> bool:
        """Tell whether it answers as its readiness asks."""
        ready = self.spec["ready"]
        if self._told >= 0:
            return False
        if "log" in ready:
            return self._printed(ready["log"])
        if "http" in ready:
            return _answers(ready["port"], ready["http"])
        return _listens(ready["port"])

    def waited_for(self) -> str:
        """Return what did not come, for people."""
        ready = self.spec["ready"]
        if "log" in ready:
            return f"its output does not match {ready['log']!r}"
        if "http" in ready:
            return f"http://localhost:{ready['port']}{ready['http']} does not answer"
        return f"nothing accepts a connection on port {ready['port']}"

    def reaped(self, pid: int, status: int) -> bool:
        """Tell whether that child was the server; notes how it ended."""
        if pid != self.pid or self.status is not None:
            return False
        self.status = status
        return True

    @property
    def alive(self) -> bool:
        return self.pid is not None and self.status is None

    @property
    def code(self) -> int | None:
        """Exit status, below 0 for a signal."""
        return None if self.status is None else os.waitstatus_to_exitcode(self.status)

    @property
    def ending(self) -> str:
        """How it ended, for people: `ended with status 1`."""
        code = self.code or 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def ladder(self, now: float) -> float:
        """Interrupt, terminate, kill, each with its time; the seconds until the next look."""
        if now >= self._until and self.pid is not None:
            number, _ = STEPS[min(self._step, len(STEPS) - 1)]
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
                os.killpg(self.pid, signal.SIGCONT)
            self._until = now + [*self.spec["ladder"], KILLED_S][min(self._step, len(STEPS) - 1)]
            self._step += 1
        return min(READY_TICK_S, max(0.0, self._until - now))

    def outlasts(self, now: float) -> bool:
        """Whether it is still there though it was killed: waiting in the kernel, it may stay for ever."""
        return self._step >= len(STEPS) and now >= self._until

    def record(self) -> dict[str, object]:
        code = self.code
        return {
            "ready_s": self.ready_s,
            "died": self.died,
            "exit_status": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
        }

    def _printed(self, pattern: str) -> bool:
        import re

        with open(spawn.raw(self.spec["log"]), "rb") as file:
            file.seek(self._read_to)
            data = file.read(_TAIL)
        self._read_to += len(data)
        self._tail = (self._tail + data)[-2 * _TAIL :]
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return any(re.search(pattern, line[:4096]) for line in lines)


def _listens(port: int) -> bool:
    import socket

    try:
        socket.create_connection(("localhost", port), CONNECT_S).close()
    except OSError:
        return False
    return True


def _answers(port: int, path: str) -> bool:
    """Tell whether an HTTP request of `path` is answered with a status below 400."""
    import socket

    request = f"GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\n\r\n".encode()
    try:
        with socket.create_connection(("localhost", port), CONNECT_S) as connection:
            connection.settimeout(ANSWER_S)
            connection.sendall(request)
            words = connection.recv(64).split(maxsplit=2)
    except OSError:
        return False
    return len(words) > 1 and words[0].startswith(b"HTTP/") and words[1][:1] in (b"2", b"3")


class ServedRun(ABC):
    """What these phases need of the warden, and what they do."""

    server: ServerProcess | None
    log: JobLog | None
    counters: Counters | None
    tree: Tree
    spec: dict[str, Any]
    childless: bool
    sampler: SamplerProcess | None
    reason: str | None
    hurry: bool
    t0: float | None
    status: int | None
    ended_at: float | None
    quiet_since: float
    _failed: bool

    @abstractmethod
    def enter(self, phase: Phase) -> float:
        """Go on in this phase, at once."""

    @abstractmethod
    def stop(self, reason: str, detail: str | None) -> None:
        """End the run for this reason."""

    @abstractmethod
    def launch(self) -> float:
        """Start the job."""

    @abstractmethod
    def grace(self, now: float) -> float | None:
        """Return the phase in which what the job left running may end by itself."""

    @abstractmethod
    def killing(self, now: float) -> float | None:
        """Return the phase in which the whole tree is killed."""

    @abstractmethod
    def closing(self, now: float) -> float | None:
        """Return the phase in which the sampler is ended, and the result is written."""

    @abstractmethod
    def close_sampler(self, sampler: SamplerProcess, now: float) -> float:
        """Let the sampler write its last row, and end it."""

    def open(self) -> float:
        """Return the log, and the server that the job needs."""
        path = self.spec["log"]
        if self.spec["cgroup"] == "auto":
            self.tree.cgroup = Cgroup.create(self.spec["marker"])
        try:
            self.log = JobLog(path)
            if self.spec.get("records") is not None:
                self.counters = Counters(self.log.fd, self.spec["records"])
            if self.server is not None:
                path = self.spec["server"]["log"]
                self.server.start(self.tree.cgroup)
                self.childless = False
        except OSError as error:
            self._failed = True
            emit("failed", status=spawn.FAILED, message=f"cannot write {spawn.shown(path)}: {error.strerror}")
            return self.enter(self.closing)
        return self.launch() if self.server is None else self.enter(self.serving)

    def exit_code(self) -> int | None:
        """The exit status of what decided the run, below 0 for a signal: the job, or a server that died."""
        if self.server is not None and self.server.died:
            return self.server.code
        return os.waitstatus_to_exitcode(self.status) if self.status is not None else None

    def over_limit(self, most: int | None) -> bool:
        """Tell whether the job or its server has printed more than it may."""
        logs = (self.log, self.server.log if self.server is not None else None)
        return most is not None and any(log is not None and log.measure() > most for log in logs)

    def flooding(self, most: int | None) -> bool:
        """A job that goes on writing far beyond its limit gets no time to end by itself."""
        return most is not None and self.log is not None and self.log.measure() > FLOOD * most

    def after_server(self, server: ServerProcess) -> None:
        """A server that fails while the job needs it ends the run; one that was asked to end does not."""
        if self.t0 is not None and self.status is None and self.reason is None and server.code != 0:
            server.died = True
            self.stop("CRASHED", f"the server {server.ending} before the workload did")

    def serving(self, now: float) -> float | None:
        """Until the server is ready; without it nothing is launched."""
        assert self.server is not None
        server, limit, refusal = self.server, self.server.spec["timeout"], self.server.refused()
        if refusal is not None:
            self._failed = True
            emit("failed", **refusal)
            return self.enter(self.killing)
        if server.status is not None:
            self.stop("CRASHED", f"the server {server.ending} before it was ready")
            server.died = True
        elif self.reason is None and server.is_ready():
            server.ready_s = now - server.began
            return self.launch()
        elif self.reason is None and self.over_limit(self.spec["max_output"]):
            self.stop("OUTPUT_LIMIT", "the server printed more than max_output before it was ready")
            return self.enter(self.killing)
        elif now >= server.began + limit:
            self.stop("TIMED_OUT", f"the server was not ready after {limit:g} s: {server.waited_for()}")
            # At once: what it would print on being asked to end is not why it was not ready.
            return self.enter(self.killing)
        return READY_TICK_S if self.reason is None else self.enter(self.stopping_server)

    def stopping_server(self, now: float) -> float | None:
        """The job is gone, or never came: the last row is written, then the server may end by itself."""
        self.quiet_since = self.ended_at or now
        if self.server is None:
            return self.enter(self.grace)
        if self.sampler is not None:
            self.sampler.retire()
            if self.sampler.pids and self.t0 is not None and not self.hurry:
                return self.close_sampler(self.sampler, now)
        if self.server.alive and not self.hurry and not self.server.outlasts(now):
            return self.server.ladder(now)
        self.quiet_since = now
        return self.enter(self.grace)
