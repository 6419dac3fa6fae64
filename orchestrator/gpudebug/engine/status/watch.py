"""What is to be seen of a campaign at this moment: from files alone, again and again, each look cheap."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudebug.core.answers.status import NextAction, RunProgress
from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.probe.spans import LATELY_S
from gpudebug.core.samples.live import DeviceNow, HostNow
from gpudebug.core.words import LOOKS, Word
from gpudebug.edges import store
from gpudebug.engine.campaign.files import read, stored_record
from gpudebug.engine.live.run_files import FollowedRun, LogFacts
from gpudebug.engine.live.underway import Follower, Mark, RunningCommand, underway

NEXT_EVERY_S = 30.0
"""What `next` would do is asked again where a file changed, and so often where none did."""
NEXT_SHARE = 0.05
"""… and never so often that asking takes more than this share of the time."""


class WatchState(Word):
    """What goes on: a run, or none yet or any more of a command that is under way; `UNFINISHED` is a run that
    nothing works on any more, `IDLE` that nothing is under way, `UNKNOWN` that it cannot be seen."""

    STARTING = "starting"
    RUNNING = "running"
    BETWEEN = "between"
    UNFINISHED = "unfinished"
    IDLE = "idle"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class WatchedDevice:
    """One device of the run, as run.json and its newest readings tell."""

    now: DeviceNow
    name: str | None = None
    kind: str | None = None
    cores: float | None = None
    power_limit_w: float | None = None


@dataclass(frozen=True)
class Sight:
    """All that there is to see; texts hold no secrets. Seconds, percent; None is unknown.

    `progress` is that of the run that is under way, else of the last one; `title` its hypothesis's.
    `baseline` is what stands of the workload's in the progress file, by field. `steps_per_s`, in `step_unit`,
    and `data_wait_share` are of the last minute. `quiet_s` is since the run's last step, `log_age_s` since
    its log's last change, `samples_age_s` since the sampler's last row. `next` is `status`'s, where no run
    goes on. `problems` says in a line each what cannot be shown.
    """

    campaign: str
    clock: str
    state: WatchState = WatchState.IDLE
    holder: RunningCommand | None = None
    progress: RunProgress = field(default_factory=RunProgress)
    title: str | None = None
    baseline: Mapping[str, str] | None = None
    outcome: str | None = None
    reason: str | None = None
    step_unit: str | None = None
    steps_per_s: float | None = None
    quiet_s: float | None = None
    loss_trend: str | None = None
    losses: tuple[float, ...] = ()
    data_wait_share: float | None = None
    devices: tuple[WatchedDevice, ...] = ()
    host: HostNow = field(default_factory=HostNow)
    log: tuple[str, ...] = ()
    log_bytes: int | None = None
    log_age_s: float | None = None
    samples_age_s: float | None = None
    next: NextAction | None = None
    problems: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether nothing is under way."""
        return self.state in (WatchState.IDLE, WatchState.UNFINISHED)


class Looker:
    """Looks at the campaign at or above a folder. Raises what `status` does where there is none."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written = read(directory)
        self._stamp = self._stamped()
        self._next = _CachedNext(directory)
        self._of: RunningCommand | None = None
        self._follower: Follower | None = None
        self._run: FollowedRun | None = None
        self._still: Sight | None = None
        self._before: WatchState | None = None

    def look(self) -> Sight:
        """Return what there is to see now. What stands in the way of seeing is told, not raised."""
        problems = self._reread()
        try:
            sight = self._look()
        except GpudebugError as e:
            sight = self._blank(state=WatchState.UNKNOWN, problems=(self._said(e),))
        self._before = sight.state
        return replace(sight, problems=tuple(dict.fromkeys([*problems, *sight.problems])))

    def _look(self) -> Sight:
        workspace = self._written.workspace
        found = underway(workspace)
        if found is not None:
            return self._of_command(found)
        left = _newest(workspace)
        if underway(workspace) is not None:
            return self._look()
        if left is None:
            return self._with_next(self._blank(problems=self._unreadable(None)))
        run, record = left
        state = WatchState.IDLE if run.sealed else WatchState.UNFINISHED
        if self._still is None or (self._still.progress.run, self._still.state) != (run.name, state):
            # Nothing of it moves any more: one look is enough.
            follower = Follower(workspace, str(record.get("start") or ""))
            self._still = self._of_run(follower, follower.look(), state, None)
            self._follower = None
        return self._with_next(replace(self._still, clock=_clock(), problems=self._unreadable(run.name)))

    def _of_command(self, found: RunningCommand) -> Sight:
        """While a command holds the campaign's claim."""
        workspace = self._written.workspace
        if self._follower is None or self._of != found:
            self._follower, self._of, self._still = Follower(workspace, found.since), found, None
        progress = self._follower.look()
        if progress.run is None:
            # A folder that is made next may have the name of one that was removed.
            self._run = self._follower = None
            sight = self._blank(state=WatchState.STARTING, holder=found)
        else:
            sight = self._of_run(self._follower, progress, WatchState.RUNNING, found)
            if sight.outcome is not None or workspace.run(progress.run).sealed:
                sight = replace(sight, state=WatchState.BETWEEN)
        sight = replace(sight, problems=self._unreadable(progress.run))
        # From one run to the next it takes a moment, in which the machine is better left alone.
        lasting = sight.state is not WatchState.RUNNING and sight.state is self._before
        return self._with_next(sight) if lasting else sight

    def _of_run(
        self, follower: Follower, progress: RunProgress, state: WatchState, holder: RunningCommand | None
    ) -> Sight:
        if progress.run is None:
            return self._blank(state=state, holder=holder)
        if self._run is None or self._run.folder.name != progress.run:
            self._run = FollowedRun(self._written.workspace.run(progress.run))
        run = self._run
        run.look(progress.elapsed_s)
        told = run.facts(follower.reader, at_once=holder is None)
        step = run.lately.steps if progress.step is None else progress.step
        if holder is None and told.steps is not None:
            step = told.steps
        by_log = step_rate(follower.marks)
        return Sight(
            campaign=self._written.config.campaign,
            clock=_clock(),
            state=state,
            holder=holder,
            progress=replace(progress, step=step),
            title=self._title(progress.hypothesis),
            baseline=self._baseline(),
            outcome=_text(run.record.get("outcome")),
            reason=_reason(run.record),
            step_unit=told.step_unit if progress.step is not None else None,
            steps_per_s=run.lately.steps_per_s if by_log is None else by_log,
            quiet_s=run.quiet(follower.marks, progress.elapsed_s),
            loss_trend=told.loss_trend,
            losses=told.losses,
            data_wait_share=_share(run, told),
            devices=_devices(run),
            host=run.latest.host,
            log=run.log_rows,
            log_bytes=run.log.size,
            log_age_s=_age(run.log.changed),
            samples_age_s=_age(run.samples.changed),
        )

    def _blank(self, **known: Any) -> Sight:
        campaign = self._written.config.campaign
        return Sight(campaign=campaign, clock=_clock(), baseline=self._baseline(), **known)

    def _with_next(self, sight: Sight) -> Sight:
        workspace = self._written.workspace
        names = workspace.run_names()
        sealed = bool(names) and workspace.run(names[-1]).sealed
        try:
            action = self._next.ask((self._stamp, len(names), tuple(names[-1:]), sealed, sight.state))
        except GpudebugError as e:
            return replace(sight, problems=(*sight.problems, self._said(e)))
        return replace(sight, next=replace(action, why=workspace.scrub(action.why)) if action else None)

    def _reread(self) -> tuple[str, ...]:
        """Read configuration and progress file where they changed; what is wrong with them now."""
        stamp = self._stamped()
        if stamp == self._stamp:
            return ()
        try:
            self._written = read(self._directory)
        except GpudebugError as e:
            # What is under way began with what stood there before.
            return (self._said(e),)
        self._stamp, self._still = self._stamped(), None
        return ()

    def _stamped(self) -> tuple[object, ...]:
        return tuple(_stamp(path) for path in (self._written.workspace.config, self._written.progress_path))

    def _title(self, number: int | None) -> str | None:
        entries = self._written.document.hypotheses
        title = next((h.title for h in entries if h.number == number), None)
        return None if title is None else self._written.workspace.scrub_prose(title)

    def _baseline(self) -> dict[str, str] | None:
        entry = next((b for b in self._written.document.baselines if b.role == "workload"), None)
        scrub = self._written.workspace.scrub
        return None if entry is None else {name: scrub(text) for name, text in entry.fields.items()}

    def _unreadable(self, shown: str | None) -> tuple[str, ...]:
        """Return what is wrong with the newest run's record, where another run is shown for it."""
        workspace = self._written.workspace
        names = workspace.run_names()
        if not names or names[-1] == shown or not workspace.run(names[-1]).has("run.json"):
            return ()
        try:
            workspace.run(names[-1]).read("run.json")
        except GpudebugError as e:
            return (self._said(e),)
        return ()

    def _said(self, error: object) -> str:
        return self._written.workspace.scrub(str(error))


class _CachedNext:
    """`status`'s `next`, asked again where something changed: to find it out takes a moment."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._of: tuple[object, ...] | None = None
        self._found: NextAction | None = None
        self._error: GpudebugError | None = None
        self._until = 0.0

    def ask(self, stamp: tuple[object, ...]) -> NextAction | None:
        """Raises what `status` does."""
        if self._of != stamp or time.monotonic() >= self._until:
            self._of = stamp
            self._ask()
        if self._error is not None:
            raise self._error
        return self._found

    def _ask(self) -> None:
        from gpudebug.engine.status.status import status

        began = time.monotonic()
        self._found, self._error = None, None
        try:
            self._found = status(self._directory).next
        except GpudebugError as e:
            self._error = e
        took = time.monotonic() - began
        self._until = began + max(NEXT_EVERY_S, took / NEXT_SHARE)


def _newest(workspace: store.Workspace) -> tuple[store.RunFolder, dict[str, object]] | None:
    """Return the last run whose record can be read, but for those of `gpudebug sample`."""
    for name in reversed(workspace.run_names()):
        run = workspace.run(name)
        record = stored_record(run, "run.json")
        if record and record.get("role") not in LOOKS:
            return run, record
    return None


def step_rate(marks: Sequence[Mark]) -> float | None:
    """Steps a second over the last minute of marks, over the last two where these are further apart."""
    if len(marks) < 2:
        return None
    end, last = marks[-1]
    begin, first = next((m for m in marks if m[0] >= end - LATELY_S and m != marks[-1]), marks[-2])
    return (last - first) / (end - begin) if last > first and end > begin else None


def _share(run: FollowedRun, told: LogFacts) -> float | None:
    """The share of the time in which the training waited for data: as it tells itself, else by its log."""
    inside = run.lately.data_wait_share
    return told.data_share if inside is None else inside


def _devices(run: FollowedRun) -> tuple[WatchedDevice, ...]:
    """Those that run.json names, with or without a reading yet, and any other that the sampler read."""
    known = {str(d["uuid"]): d for d in run.devices}
    read = {d.uuid: d for d in run.readings}
    unread = {
        uuid: DeviceNow(d["index"] if isinstance(d.get("index"), int) else 0, uuid, node=_text(d.get("node")))
        for uuid, d in known.items()
        if uuid not in read
    }
    found = [_device(now, known.get(now.uuid, {})) for now in {**read, **unread}.values()]
    return tuple(sorted(found, key=lambda device: (device.now.node or "", device.now.index, device.now.uuid)))


def _device(now: DeviceNow, info: Mapping[str, Any]) -> WatchedDevice:
    if now.mem_total_mb is None:
        now = replace(now, mem_total_mb=_number(info.get("memory_total_mb")))
    return WatchedDevice(
        now=now,
        name=_text(info.get("name")),
        kind=_text(info.get("kind")),
        cores=_number(info.get("cores")),
        power_limit_w=_number(info.get("power_limit_w")),
    )


def _reason(record: Mapping[str, Any]) -> str | None:
    """Return why a run ended as it did, where it says so."""
    failure = record.get("failure")
    kind = failure.get("kind") if isinstance(failure, dict) else None
    return _text(record.get("reason")) or _text(kind)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _age(changed: float | None) -> float | None:
    return None if changed is None else max(0.0, time.time() - changed)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def _clock() -> str:
    return time.strftime("%H:%M:%S")
