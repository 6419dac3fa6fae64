"""gpudebug's end of a launch: starts the warden, follows its events, and takes over if it is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpudebug.core.errors import DeviceError
from gpudebug.core.words import Outcome
from gpudebug.edges.launcher.command import cannot_launch, find_command
from gpudebug.edges.launcher.interrupts import Interrupts, counting_interrupts, origin
from gpudebug.edges.launcher.link import WardenLink
from gpudebug.edges.launcher.recovery import VARIABLE, adopting, end_adopted, sweep

GIVE_UP_S = 60.0
GRACE_S = 1.0
PATIENCE_S = 10.0
LEAVE_S = 10.0
WARDEN_LOST = "warden lost"
_OF_A_SCHEDULER = (signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class SamplerSpec:
    """The sampler's process: command, environment, the JSON line it is sent, and how it is watched.

    `csv` is the file it appends to, `interval` its tick in seconds. `required`: losing it twice stops the
    job.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    request: Mapping[str, Any]
    csv: str
    interval: float
    required: bool = True
    ready_timeout: float = 20.0


@dataclass(frozen=True)
class ServerSpec:
    """A server that the command needs: started before it, in its containment, and ended after it.

    `ready` has one of `log` (an expression that a line of its output matches), `http` (a path that is
    answered) or nothing (a connection is accepted), and the `port`. `timeout` is how long that may take.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    log: str
    ready: Mapping[str, Any]
    timeout: float


@dataclass(frozen=True)
class LaunchSpec:
    """One command to run. Times in seconds, `max_output` in bytes, None for no limit.

    `ladder` is the time between interrupt and terminate, and between terminate and kill; `plan_ladder` that
    of a run which is ended by its plan, and may save what it has first. `hold_fds` (locks)
    stay open in the warden until nothing of the run is left; neither job nor sampler receives them. `marker`
    becomes the job's GPUDEBUG_RUN, by which `sweep` finds it. `cgroup` is `auto` or `off`. With `records`,
    the folder in which the job's processes tell of themselves, log and probe record are counted as they grow:
    `Launched.counted`.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    log: str
    marker: str
    timeout: float | None = None
    max_output: int | None = None
    sampler: SamplerSpec | None = None
    ladder: tuple[float, float] = (5.0, 5.0)
    plan_ladder: tuple[float, float] = (15.0, 5.0)
    hold_fds: tuple[int, ...] = ()
    cgroup: str = "auto"
    give_up: float = GIVE_UP_S
    records: str | None = None
    server: ServerSpec | None = None


@dataclass(frozen=True)
class Launched:
    """How a run ended.

    `t0` is the launch on the monotonic clock; `duration_s` ends with the leader. One of `exit_status` and
    `signal` is None, both if the leader never ran or its end was not seen. `leaked` counts processes that
    outlived the leader and had to be killed; `ladder` is the step that ended the leader (`interrupt`,
    `terminate`, `kill`; None if it ended by itself). `sampler` is its own account: see `warden.sampling`.
    `server` is what became of the server: `ready_s`, `died` (its end was the run's), `exit_status`, `signal`;
    then `exit_status` and `signal` of the run are its. `counted` holds, by the name of a file that the job
    wrote, `bytes` and `sha256` of what was seen of it. `own_limit_mb` is the memory limit at which the kernel
    killed a process of the run, where the run itself had filled it.
    """

    outcome: Outcome
    exit_status: int | None
    signal: int | None
    reason: str | None
    t0: float
    duration_s: float
    leaked: int
    sampler: dict[str, Any] | None
    ladder: str | None = None
    counted: Mapping[str, Any] = field(default_factory=dict)
    server: Mapping[str, Any] | None = None
    own_limit_mb: float | None = None


@dataclass(frozen=True)
class Tick:
    """What `observe` is given: seconds since launch, size of the log, why the job is being stopped."""

    elapsed: float
    log_bytes: int
    stopping: str | None


Observe = Callable[[Tick], "str | None"]


def launch(spec: LaunchSpec, observe: Observe | None = None, poll: float = 0.5) -> Launched:
    """Runs the command to the end of its whole process tree. One launch at a time in a process.

    `observe` is called about every `poll` seconds while the job runs; it may return a reason to stop it: an
    Outcome's name and, after a blank, a text for people (`STALLED no new step for 300 s`). In the main
    thread, the first Ctrl-C stops the job gracefully, the second kills it; the outcome is then INTERRUPTED.
    Whatever `observe` raises passes through after everything was ended.

    Raises LaunchError (125 to 127) if the command cannot be started, DeviceError if the sampler refuses
    before the launch.
    """
    path = find_command(spec.argv, spec.cwd, spec.env)
    with adopting() as before, counting_interrupts() as interrupts:
        run = _FollowerState(spec, interrupts, WardenLink(_request(spec, path), spec.hold_fds))
        try:
            run.follow(observe, poll)
        finally:
            if not run.link.leave(LEAVE_S + spec.give_up * run.closing):
                end_adopted(before)
                sweep(spec.marker)
        return run.result()


def _raw(text: str) -> str:
    """Latin-1 carries a path's bytes unchanged, whatever encoding the warden starts with."""
    return os.fsencode(text).decode("latin-1")


def _raw_map(env: Mapping[str, str]) -> dict[str, str]:
    return {_raw(key): _raw(value) for key, value in env.items()}


def _request(spec: LaunchSpec, path: str) -> dict[str, object]:
    sampler = spec.sampler
    return {
        "path": _raw(path),
        "argv": [_raw(word) for word in spec.argv],
        "env": _raw_map({"PYTHONUNBUFFERED": "1", **spec.env, VARIABLE: spec.marker}),
        "cwd": _raw(str(Path(spec.cwd).absolute())),
        "log": _raw(str(Path(spec.log).absolute())),
        "marker": spec.marker,
        "timeout": spec.timeout,
        "max_output": spec.max_output,
        "ladder": list(spec.ladder),
        "plan_ladder": list(spec.plan_ladder),
        "grace": GRACE_S,
        "give_up": spec.give_up,
        "cgroup": spec.cgroup,
        "records": None if spec.records is None else _raw(str(Path(spec.records).absolute())),
        "server": None if spec.server is None else _server(spec, spec.server),
        "sampler": None
        if sampler is None
        else {
            "argv": [_raw(word) for word in sampler.argv],
            "env": _raw_map(sampler.env),
            "request": dict(sampler.request),
            "csv": _raw(str(Path(sampler.csv).absolute())),
            "interval": sampler.interval,
            "required": sampler.required,
            "ready_timeout": sampler.ready_timeout,
        },
    }


def _server(spec: LaunchSpec, server: ServerSpec) -> dict[str, object]:
    return {
        "path": _raw(find_command(server.argv, server.cwd, server.env)),
        "argv": [_raw(word) for word in server.argv],
        "env": _raw_map({"PYTHONUNBUFFERED": "1", **server.env, VARIABLE: spec.marker}),
        "cwd": _raw(str(Path(server.cwd).absolute())),
        "log": _raw(str(Path(server.log).absolute())),
        "ready": dict(server.ready),
        "timeout": server.timeout,
        "ladder": list(spec.ladder),
    }


class _FollowerState:
    """The state after the events of one run so far."""

    def __init__(self, spec: LaunchSpec, interrupts: Interrupts, link: WardenLink) -> None:
        self.spec = spec
        self.interrupts = interrupts
        self.link = link
        self.started: dict[str, Any] | None = None
        self.final: dict[str, Any] | None = None
        self.stopping: str | None = None
        self.seen = 0
        self.closing = False
        self.overdue: float | None = None

    def follow(self, observe: Observe | None, poll: float) -> None:
        """Until the warden closes its end."""
        next_tick = time.monotonic() + poll
        while self.link.open:
            for event in self.link.wait(max(0.0, next_tick - time.monotonic()), self.interrupts.fd):
                self.take(event)
            self.heed()
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + poll
                self.tick(observe)
        self.closing = self.final is not None

    def take(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "started":
            self.started = event
            if self.spec.timeout is not None:
                self.expect(self.spec.timeout + self.ladders(self.spec.ladder))
        elif kind == "stopping":
            self.stopping = event["reason"]
        elif kind in {"ended", "failed", "sampler_failed"}:
            self.final = event

    def expect(self, seconds: float) -> None:
        """The warden must be done by then; one that was stopped or hangs is given up."""
        due = time.monotonic() + seconds + self.spec.give_up + PATIENCE_S
        self.overdue = due if self.overdue is None else min(due, self.overdue)

    def heed(self) -> None:
        """Passes presses of Ctrl-C on: stop, kill, and the third ends the warden too."""
        while self.seen < self.interrupts.count:
            self.seen += 1
            if self.seen == 1:
                self.stop(f"INTERRUPTED interrupted {origin()}")
            elif self.seen == 2:
                self.link.command(f"kill INTERRUPTED interrupted {origin()}")
                self.expect(0.0)
            else:
                self.link.kill()
        if self.overdue is not None and time.monotonic() > self.overdue:
            self.link.kill()

    def stop(self, reason: str) -> None:
        self.link.command(f"stop {' '.join(reason.split())}")
        by_plan = reason.startswith(Outcome.ENDED_BY_PLAN)
        self.expect(self.ladders(self.spec.plan_ladder if by_plan else self.spec.ladder))

    def ladders(self, first: tuple[float, float]) -> float:
        """Seconds that the job may take to end by `first`, and its server after it."""
        return sum(first) + (0.0 if self.spec.server is None else sum(self.spec.ladder))

    def tick(self, observe: Observe | None) -> None:
        if observe is None or self.started is None or self.final is not None:
            return
        size = 0
        with contextlib.suppress(OSError):  # the job may put anything in the place of its log
            size = Path(self.spec.log).stat().st_size
        reason = observe(Tick(time.monotonic() - self.started["t0"], size, self.stopping))
        if reason is not None and self.stopping is None:
            self.stopping = Outcome(reason.split(maxsplit=1)[0]).value
            self.stop(reason)

    def result(self) -> Launched:
        final = self.final or {}
        if final.get("event") == "failed":
            raise cannot_launch(final["message"], final["status"])
        if final.get("event") == "sampler_failed":
            raise self.sampler_error(final["error"])
        if not final:
            return self.lost()
        if final["signal"] in _OF_A_SCHEDULER and self.interrupts.reached_all():
            final = {**final, "outcome": Outcome.INTERRUPTED.value, "reason": f"interrupted {origin()}"}
        sampler = final["sampler"]
        if sampler is not None and self.link.said:
            sampler["stderr"] = self.link.said
        return Launched(
            outcome=Outcome(final["outcome"]),
            exit_status=final["exit_status"],
            signal=final["signal"],
            reason=final["reason"],
            t0=time.monotonic() if final["t0"] is None else final["t0"],
            duration_s=self.lasted(final["t0"], final["duration_s"]),
            leaked=final["leaked"],
            sampler=sampler,
            ladder=final["ladder"],
            counted=final["counted"],
            server=final.get("server"),
            own_limit_mb=final.get("own_limit_mb"),
        )

    def lasted(self, t0: float | None, seconds: float) -> float:
        """Return what a run took. One that was told to end does so in time: if it took longer, a scheduler
        had suspended all of us, and that is no time on the device."""
        if t0 is None or self.overdue is None or not self.seen:
            return seconds
        return min(seconds, max(0.0, self.overdue - t0))

    def lost(self) -> Launched:
        now = time.monotonic()
        t0 = self.started["t0"] if self.started else now
        last = self.link.said.strip().splitlines()[-1:]
        # A scheduler's signal may reach a warden that only starts.
        ended = self.interrupts.reached_all()
        return Launched(
            outcome=Outcome.INTERRUPTED,
            exit_status=None,
            signal=None,
            reason=f"interrupted {origin()}" if ended else ": ".join([WARDEN_LOST, *last]),
            t0=t0,
            duration_s=self.lasted(t0, now - t0),
            leaked=0,
            sampler=None,
        )

    def sampler_error(self, error: dict[str, Any]) -> DeviceError:
        message = str(error.get("message") or "the sampler refused")
        last = self.link.said.strip().splitlines()[-1:]
        if error.get("died") and last:
            message = f"{message}: {last[0]}"
        file, after = error.get("file"), error.get("next")
        return DeviceError(message, file=file, next=after or "run `gpudebug doctor`")


def free_port() -> int:
    """Return a TCP port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def taken(port: int) -> bool:
    """Tell whether something accepts connections on this port of localhost."""
    try:
        socket.create_connection(("localhost", port), 0.5).close()
    except OSError:
        return False
    return True
