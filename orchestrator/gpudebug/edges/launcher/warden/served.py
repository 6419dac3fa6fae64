"""The phases of a run that a server of the job adds: wait until it is ready, and end it after the job."""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from . import spawn
from .cgroup import Cgroup
from .digests import Counters
from .events import emit
from .output import JobLog
from .serving import READY_TICK_S

FLOOD = 1.1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .containment import Tree
    from .sampling import SamplerProcess
    from .serving import ServerProcess

    Phase = Callable[[float], "float | None"]


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
