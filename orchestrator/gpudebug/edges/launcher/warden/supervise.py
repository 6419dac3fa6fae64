"""The warden's loop: one run from its specification to the proof that nothing of it is left.

Standard input is the lifeline: one JSON line with the specification, then commands `stop REASON [text]`
(interrupt, terminate, kill, with time between) and `kill REASON [text]` (at once). End-of-file says that
gpudebug is dead, and everything is ended at once. Events leave on standard output, one JSON object a line.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time

from . import processes, spawn
from .digests import Counters
from .interrupt import Interrupt
from .memory import OwnLimit
from .processes import Tree
from .sampling import SamplerProcess
from .serving import ServedRun, ServerProcess
from .spawn import JobLog, emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIFELINE = 0
TICK_S = 0.25
GRACE_TICK_S = 0.05
KILL_TICK_S = 0.02
CLOSE_S = 2.0
HURRIED_CLOSE_S = 0.3
PLANNED = "ENDED_BY_PLAN"
STEPS = ((signal.SIGINT, "interrupt"), (signal.SIGTERM, "terminate"))


class Warden(ServedRun):
    """One run. A phase is a method that returns how long it can wait (None: until something happens)."""

    def __init__(self, spec: dict[str, Any], commands: bytes, wake: int) -> None:
        self.spec = spec
        self.tree = Tree(os.getpid())
        self.sampler = SamplerProcess(spec["sampler"]) if spec["sampler"] else None
        self.server = ServerProcess(spec["server"]) if spec.get("server") else None
        self.log: JobLog | None = None
        self.counters: Counters | None = None
        self.memory: OwnLimit | None = None
        self.reason: str | None = None
        self.detail: str | None = None
        self.hurry = False
        self.t0: float | None = None
        self.leader: int | None = None
        self.status: int | None = None
        self.ended_at: float | None = None
        self.quiet_since = 0.0
        self.ladder: str | None = None
        self.leaked: set[tuple[int, int]] = set()
        self.overlooked = False
        self.unkillable: list[int] = []
        self.childless = True
        self.phase: Callable[[float], float | None] | None = self.preparing
        self._commands = commands
        self._wake = wake
        self._told: int | None = None
        self._answer: bytes | None = None
        self._struck = False
        self._step = 0
        self._until = 0.0
        self._interrupt = Interrupt()
        self._give_up_at: float | None = None
        self._close_by: float | None = None
        self._failed = False
        self._restarts = 0

    def run(self) -> None:
        try:
            if self.sampler is not None:
                self.sampler.start()
            self.obey(b"")
            while self.phase is not None:
                wait = self.phase(time.monotonic())
                if self.phase is not None:
                    self.listen(wait)
        finally:
            if self.phase is not None:
                self.abandon()

    def abandon(self) -> None:
        """A defect of ours must not leave the tree alive."""
        deadline = time.monotonic() + 5
        self.reap()
        while not self.childless and time.monotonic() < deadline:
            self.tree.strike()
            time.sleep(KILL_TICK_S)
            self.reap()

    def enter(self, phase: Callable[[float], float | None]) -> float:
        self.phase = phase
        return 0.0

    # What happens outside

    def listen(self, wait: float | None) -> None:
        """Waits for a command, a child's end, an answer, or `wait` seconds."""
        handlers: dict[int, Callable[[], None]] = {self._wake: self.woken}
        if not self.hurry:
            handlers[LIFELINE] = self.command
        if self._told is not None:
            handlers[self._told] = self.launched
        if self.sampler is not None and self.sampler.stdout is not None:
            handlers[self.sampler.stdout] = self.sampler.read
        poll = select.poll()
        for fd in handlers:
            poll.register(fd, select.POLLIN)
        before = time.monotonic()
        for fd, _ in poll.poll(None if wait is None else max(0.0, wait * 1000)):
            handlers[fd]()
        late = time.monotonic() - before - (wait or 0.0)
        if self.sampler is not None and wait is not None and late > 1.0:
            self.sampler.excuse(late)
        self.reap()

    def woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)

    def command(self) -> None:
        data = os.read(LIFELINE, 65536)
        if data:
            self.obey(data)
        else:
            self.stop("INTERRUPTED", "gpudebug ended", hurry=True)

    def obey(self, data: bytes) -> None:
        *lines, self._commands = (self._commands + data).split(b"\n")
        for line in lines:
            verb, _, rest = line.decode("utf-8", "replace").partition(" ")
            reason, _, detail = rest.partition(" ")
            if verb in {"stop", "kill"}:
                self.stop(reason or "INTERRUPTED", detail or None, hurry=verb == "kill")

    def stop(self, reason: str, detail: str | None, *, hurry: bool = False) -> None:
        """The first reason counts. After a plan's or the job's own end only a person's wish still counts."""
        self.hurry = self.hurry or hurry
        person = reason == "INTERRUPTED"
        if self.reason == PLANNED and person:
            self.reason = None
        if self.reason is None and (self.status is None or person):
            self.reason, self.detail = reason, detail
            emit("stopping", reason=reason, detail=detail)

    def launched(self) -> None:
        """The job's child reported why it could not become the program, or closed the pipe by becoming it."""
        if self._told is not None:
            self._answer = os.read(self._told, 65536)
            os.close(self._told)
            self._told = None

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            self.childless = False
            if pid == 0:
                return
            if pid == self.leader and self.status is None:
                self.status, self.ended_at = status, time.monotonic()
            elif self.server is not None and self.server.reaped(pid, status):
                self.after_server(self.server)
            elif self.sampler is not None and self.sampler.reaped(pid, status):
                self.after_sampler()

    def after_sampler(self) -> None:
        """Whether the sampler's ending stops the job."""
        sampler = self.sampler
        if sampler is None or self.t0 is None:
            return
        if sampler.restarts > self._restarts:
            self._restarts = sampler.restarts
            emit("sampler_restarted", why=sampler.why)
        if sampler.device_lost and self.reason is None:
            self.reason, self.detail = "DEVICE_LOST", "the sampler reported that the device is lost"
            emit("stopping", reason=self.reason, detail=self.detail)
        elif sampler.lost and sampler.spec["required"]:
            self.stop("SAMPLER_LOST", sampler.why)

    # Phases, in order

    def preparing(self, now: float) -> float | None:
        """Return the sampler answers before the job is launched."""
        if self.reason is not None:
            return self.enter(self.closing)
        if self.sampler is None:
            return self.open()
        self.sampler.check(now)
        if self.sampler.error is not None:
            self._failed = True
            emit("sampler_failed", error=self.sampler.error)
            return self.enter(self.closing)
        if self.sampler.answer is not None:
            emit("sampler_ready", answer=self.sampler.answer)
            return self.open()
        return TICK_S

    def launch(self) -> float:
        assert self.log is not None
        self.memory = OwnLimit()
        self.t0 = time.monotonic()
        # With it the job's own processes can say when something happened in the time of the samples.
        env = {**self.spec["env"], "GPUDEBUG_T0": repr(self.t0)}
        self.leader, self._told = spawn.spawn_job({**self.spec, "env": env}, self.log.fd, self.tree.cgroup)
        self.childless = False
        return self.enter(self.launching)

    def launching(self, now: float) -> float | None:
        if self._answer is None:
            return self.enter(self.stopping) if self.reason is not None else self.remaining(now)
        if self._answer:
            self._failed = True
            emit("failed", **json.loads(self._answer))
            return self.enter(self.killing)
        emit("started", pid=self.leader, t0=self.t0)
        if self.sampler is not None and self.leader is not None and self.t0 is not None:
            self.sampler.begin(self.t0, self.leader)
        return self.enter(self.running)

    def remaining(self, now: float) -> float | None:
        """Seconds to the next look at the limits; notes a limit that is reached."""
        if self.t0 is None or self.log is None:
            return TICK_S
        timeout, most = self.spec["timeout"], self.spec["max_output"]
        waits: list[float] = []
        if self.counters is not None:
            self.counters.follow(now)
            waits.append(TICK_S)
        if self.sampler is not None:
            self.sampler.check(now)
            self.after_sampler()
            waits.append(TICK_S)
        if most is not None:
            if self.over_limit(most):
                self.stop("OUTPUT_LIMIT", f"more than {most} bytes of output")
            waits.append(TICK_S)
        if timeout is not None:
            if now >= self.t0 + timeout:
                self.stop("TIMED_OUT", f"not done after {timeout:g} s")
            waits.append(max(0.0, self.t0 + timeout - now))
        return min(waits, default=None)

    def running(self, now: float) -> float | None:
        if self.status is not None:
            return self.enter(self.stopping_server)
        wait = self.remaining(now)
        return self.enter(self.stopping) if self.reason is not None else wait

    def stopping(self, now: float) -> float | None:
        """Interrupt, terminate, kill."""
        if self.counters is not None:
            self.counters.follow(now)
        self._interrupt.go_on(now)
        if self.status is not None:
            return self.enter(self.stopping_server)
        if (
            self.hurry
            or self.flooding(self.spec["max_output"])
            or (self._step == len(STEPS) and now >= self._until)
        ):
            self.ladder = "kill"
            return self.enter(self.killing)
        if now >= self._until:
            number, self.ladder = STEPS[self._step]
            ladder = self.spec["plan_ladder" if self.reason == PLANNED else "ladder"]
            self.signal_tree(number, now, ladder[self._step] / 2)
            self._until = now + ladder[self._step]
            self._step += 1
        return min(TICK_S, self._until - now)

    def signal_tree(self, number: int, now: float, patience: float) -> None:
        """Interrupt goes to the group of the leader, to all within `patience`; the rest to every process."""
        members = self.tree.members(self.spared())
        if number != signal.SIGINT:
            for proc in members:
                processes.send(proc, number)
        elif self.leader is not None and not self._interrupt.begin(self.leader, members, now + patience):
            # Not reaped, but not yet leader of its own session; or of another user, which the limit names.
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.kill(self.leader, number)
        for proc in members:
            processes.send(proc, signal.SIGCONT)

    def grace(self, now: float) -> float | None:
        """The leader is gone: what is just shutting down may do so before it counts as left behind."""
        if self.sampler is not None:
            self.sampler.retire()
        left = [proc for proc in self.tree.members(self.spared()) if proc.alive]
        gone = self.childless if self.overlooked else not left
        if gone:
            return self.enter(self.closing)
        if self.hurry:
            return self.enter(self.killing)
        if now >= self.quiet_since + self.spec["grace"]:
            self.leaked.update(proc.key for proc in left)
            return self.enter(self.killing)
        return GRACE_TICK_S

    def killing(self, now: float) -> float | None:
        if self._give_up_at is None:
            self._give_up_at = now + self.spec["give_up"]
        if self.sampler is not None:
            self.sampler.retire()
        self._struck = True
        struck = self.tree.strike(self.spared())
        if self.leaked or self.overlooked:
            self.leaked.update(proc.key for proc in struck)
        self.reap()
        left = [proc for proc in self.tree.members(self.spared()) if proc.alive]
        if not left and (self.leader is None or self.status is not None):
            return self.enter(self.closing)
        if now >= self._give_up_at:
            self.unkillable = [proc.pid for proc in left]
            return self.enter(self.closing)
        return KILL_TICK_S

    def closing(self, now: float) -> float | None:
        """The sampler writes its last row and goes; then no child may be left: the proof of the end."""
        if self._give_up_at is None:
            self._give_up_at = now + self.spec["give_up"]
        if self.sampler is not None and self.sampler.pids and now < self._give_up_at:
            return self.close_sampler(self.sampler, now)
        self.reap()
        if not self.childless and now < self._give_up_at:
            if self._struck:
                return self.enter(self.killing)
            # Processes that fork and exit can slip through a look at the table, but not out of our children.
            self.overlooked, self._give_up_at = True, None
            return self.enter(self.grace)
        if not self.childless and not self.unkillable:
            self.unkillable = [proc.pid for proc in self.tree.members() if proc.alive]
        if self.tree.cgroup is not None and not self.tree.cgroup.remove() and now < self._give_up_at:
            self._give_up_at = min(self._give_up_at, now + 1.0)
            return KILL_TICK_S
        self.phase = None
        if not self._failed:
            self.report(now)
        return None

    def close_sampler(self, sampler: SamplerProcess, now: float) -> float:
        if self._close_by is None:
            sampler.close()
            self._close_by = now + CLOSE_S
        if self.hurry or sampler.answer is None:
            self._close_by = min(self._close_by, now + HURRIED_CLOSE_S)
        if now >= self._close_by or sampler.pid is None:
            sampler.kill()
            return KILL_TICK_S
        return self._close_by - now

    def spared(self) -> set[int]:
        return self.sampler.pids if self.sampler is not None else set()

    # The end

    def report(self, now: float) -> None:
        code = self.exit_code()
        reason = self.detail
        outcome = self.reason
        if outcome == PLANNED and self.ladder is None:
            # It was over before it was asked to end.
            outcome, reason = None, None
        if outcome is None and self.sampler is not None and self.sampler.lost:
            outcome, reason = "SAMPLER_LOST", self.sampler.why
        if outcome is None:
            outcome = "COMPLETED" if code == 0 else "CRASHED"
        if self.unkillable:
            stuck = ", ".join(str(pid) for pid in self.unkillable)
            reason = f"{reason + '; ' if reason else ''}could not be killed: pid {stuck}"
        emit(
            "ended",
            outcome=outcome,
            exit_status=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            reason=reason,
            t0=self.t0,
            duration_s=(self.ended_at or now) - self.t0 if self.t0 is not None else 0.0,
            leaked=len(self.leaked),
            own_limit_mb=self.memory.reached_mb() if self.memory is not None else None,
            ladder=self.ladder,
            sampler=self.sampler.record() if self.sampler is not None else None,
            server=self.server and self.server.record(),
            counted=self.counters.finish(at_once=self.hurry) if self.counters is not None else {},
        )
