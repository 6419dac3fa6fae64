"""What is under way in a campaign and how far it is, from files alone and in milliseconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from gpudebug.core.answers.next import Running
from gpudebug.core.answers.status import DeviceValue, RunProgress
from gpudebug.core.errors import ConfigError, GpudebugError
from gpudebug.core.samples.table import SampleTable, read_samples
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import LOOKS
from gpudebug.edges import opener, store
from gpudebug.engine.run.live_line import Live

COMMAND = "gpudebug next --detach"
"""How a background process names itself to others."""

_HEAD = 32 << 10
_TAIL = 64 << 10
_SLICES = 16
_SLICE = 4 << 10
_MARKS = 256
_SECONDS = len("2026-11-21T10:00:00")

Mark = tuple[float, int]
"""Seconds since launch, and the step that was reached then."""


@dataclass(frozen=True)
class RunningCommand:
    """The command that holds the campaign's lock. `id` names the files of a background process.

    Without `pid` and `since`: one that is gone, whose warden still ends what it left. `waits` says what one
    waits for that has not begun yet.
    """

    pid: int | None
    command: str
    session: str | None
    since: str
    id: str | None = None
    waits: str | None = None

    @property
    def told(self) -> str:
        return (
            f"`{self.command}` did since {self.since}" if self.since else "a gpudebug that is gone left here"
        )


def underway(workspace: store.Workspace) -> RunningCommand | None:
    """Who runs something in this campaign now; a background process from its first moment to its last, and
    what an allocation is asked for from the moment of that."""
    # First: it is taken away only once the lock is held.
    waiting = _requested(workspace)
    for lock in (store.Detached(workspace.private).lock, workspace.claim_path):
        found = store.said(lock, store.noted_jobs(workspace.private))
        if found.held:
            return _underway(found.holder)
    return waiting


def _requested(workspace: store.Workspace) -> RunningCommand | None:
    """Return what waits for the worker in the campaign's allocation, and why."""
    files = store.Allocations(workspace.private)
    request = files.request()
    note = files.note() if request is not None else None
    if request is None or note is None or note.ended is not None:
        return None
    from gpudebug.core.cluster.reasons import explained

    why = f"job {note.job} to begin" if note.waits is not None else f"the worker of job {note.job}"
    reason = f" ({explained(note.waits).text})" if note.waits is not None else ""
    return RunningCommand(None, COMMAND, request.session, request.since, request.id, f"{why}{reason}")


def _underway(holder: Mapping[str, Any]) -> RunningCommand:
    texts = {k: str(holder[k]) for k in ("session", "id") if holder.get(k) is not None}
    pid = holder.get("pid")
    return RunningCommand(
        pid=pid if isinstance(pid, int) else None,
        command=str(holder.get("command") or "gpudebug"),
        session=texts.get("session"),
        since=str(holder.get("since") or ""),
        id=texts.get("id"),
    )


class Follower:
    """Looks at the newest run of a campaign again and again; each look reads what is new, under a limit."""

    def __init__(self, workspace: store.Workspace, since: str) -> None:
        self.workspace = workspace
        self.since = since
        self.seen: list[str] = []
        self._log: _FollowedLog | None = None

    @property
    def marks(self) -> Sequence[Mark]:
        """Of the run that was looked at last: when its last steps were reached, as far as that is known."""
        return self._log.marks if self._log else ()

    @property
    def reader(self) -> LogReader | None:
        """What has read its log: the beginning and the end of a long one."""
        return self._log.reader if self._log else None

    def look(self) -> RunProgress:
        """Return how far it is now. A run that is being made or removed at this moment counts as none."""
        made = list(self._made())
        if not made:
            return RunProgress()
        run, record = made[0]
        self.seen = [r.name for r, _ in reversed(made)]
        if self._log is None or self._log.path != run.log:
            self._log = _FollowedLog(run.log, record)
        samples = read_parts(run.samples)
        elapsed = samples.rows[-1].elapsed if samples.rows else None
        self._log.follow(samples.log_times)
        return RunProgress(
            run=run.name,
            role=str(record.get("role")),
            hypothesis=record.get("hypothesis"),
            step=self._log.reader.step,
            steps=self._log.reader.total_steps,
            left_s=None if run.sealed else self._log.left(elapsed),
            elapsed_s=elapsed,
            gpu_util=_mean(samples),
            loss=self._log.reader.loss,
            latency_s=self._log.reader.latency,
            runs_done=sum(r.sealed for r, _ in made),
            least=_least(samples),
        )

    def _made(self) -> Iterator[tuple[store.RunFolder, dict[str, Any]]]:
        """Yield the runs of the command that is under way, newest first."""
        for name in reversed(self.workspace.run_names()):
            run = self.workspace.run(name)
            try:
                record = dict(run.read("run.json"))
            except (GpudebugError, TypeError, ValueError):
                continue
            if str(record.get("start", ""))[:_SECONDS] < self.since[:_SECONDS]:
                return
            if record.get("role") not in LOOKS:
                yield run, record


class _FollowedLog:
    """Follows one train.log: its beginning, which has the total, then its end."""

    def __init__(self, path: Path, record: Mapping[str, Any]) -> None:
        self.path = path
        self.reader = _reader(record)
        self._at = 0
        self._step = -1
        self.marks: deque[Mark] = deque(maxlen=_MARKS)

    def follow(self, times: Sequence[tuple[float, int]]) -> None:
        try:
            with opener.opened(self.path) as f:
                size = f.seek(0, 2)
                if size < self._at:
                    return
                if self._at == 0 and size > _HEAD + _TAIL:
                    f.seek(0)
                    self._feed(f.read(_HEAD), None)
                if self._at + _TAIL < size and (self._at or size > _HEAD + _TAIL):
                    self._at = size - _TAIL
                    self.reader.feed(b"\n")
                for at, end in [*times, (None, size)]:
                    if end > self._at:
                        f.seek(self._at)
                        self._feed(f.read(min(end, size) - self._at), at)
        except OSError:
            return  # The job may remove its own log; what was read before still holds.

    def _feed(self, data: bytes, at: float | None) -> None:
        self.reader.feed(data, at)
        self._at += len(data)
        step = self.reader.step
        if step is None or step == self._step:
            return
        if at is not None:
            self.marks.append((at, step))
        self._step = step

    def left(self, elapsed: float | None) -> float | None:
        left = time_left(list(self.marks), self.reader.total_steps, elapsed)
        return None if left is None else round(left, 1)


def _reader(record: Mapping[str, Any]) -> LogReader:
    try:
        return LogReader(dict(record.get("patterns") or {}), perf_counter)
    except (ConfigError, TypeError, ValueError):
        return LogReader()


def time_left(marks: Sequence[Mark], total: int | None, elapsed: float | None) -> float | None:
    """Seconds until `total` steps at the rate of the marks; of one mark, at the rate since launch.

    None if there is no mark, no total, or more steps than the total, and once that time is over.
    """
    if not marks or not total or elapsed is None:
        return None
    (began, first), (at, step) = marks[0], marks[-1]
    if step > total:
        return None
    seconds, steps = (at - began, step - first) if step > first else (at, step)
    if steps <= 0 or seconds <= 0:
        return None
    left = seconds * (total - step) / steps - max(0.0, elapsed - at)
    return left if left > 0 else None


def read_parts(path: Path) -> SampleTable:
    """The rows of a growing samples.csv; of a long one sixteen parts, evenly spread, the last at its end."""
    try:
        with opener.opened(path) as f:
            size = f.seek(0, 2)
            f.seek(0)
            header = f.readline(_SLICE)
            text = header.decode("utf-8", "replace")
            if size <= _SLICES * _SLICE:
                return read_samples([text, *_lines(f.read(_SLICES * _SLICE))], str(path))
            lines: list[str] = []
            for part in range(_SLICES):
                f.seek(len(header) + part * (size - len(header) - _SLICE) // (_SLICES - 1))
                # The last one to its end, which may have moved on since.
                lines += (
                    _lines(f.read(_SLICE))[1:-1] if part < _SLICES - 1 else _lines(f.read(2 * _SLICE))[1:]
                )
            return read_samples([text, *lines], str(path))
    except (OSError, GpudebugError):
        return SampleTable()


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines(keepends=True)


def _mean(samples: SampleTable) -> float | None:
    values = [r.gpu_util for r in samples.rows if r.gpu_util is not None and r.new_samples != 0]
    return sum(values) / len(values) if values else None


def _least(samples: SampleTable) -> DeviceValue | None:
    """Return the device with the least mean so far; None of one device."""
    known = [
        DeviceValue(index=index, uuid=uuid, value=value)
        for (index, uuid), rows in samples.by_device.items()
        if (value := _mean(SampleTable(rows=rows))) is not None
    ]
    return min(known, key=lambda device: device.value) if len(known) > 1 else None


def progress_of(workspace: store.Workspace) -> RunProgress | None:
    """Return how far the run that is under way is; None if nothing is."""
    found = underway(workspace)
    return None if found is None else Follower(workspace, found.since).look()


def running(workspace: store.Workspace, found: RunningCommand, progress: RunProgress) -> Running:
    """Return `next`'s answer while a run is under way."""
    fields = asdict(progress)
    del fields["loss"]
    whose = f" of session {found.session}" if found.session else ""
    by = (
        f"since {found.since}, by `{found.command}`{whose}" if found.since else "still: what began it is gone"
    )
    return Running(
        campaign=_campaign(workspace, progress.run),
        **fields,
        session=found.session,
        since=found.since,
        detached=found.id is not None,
        why=f"{_what(progress)} {f'waits for {found.waits}' if found.waits else 'is under way'} {by}",
        next_command="gpudebug wait --for 9m",
        files=_files(workspace, found, progress),
    )


def _campaign(workspace: store.Workspace, run: str | None) -> str:
    from gpudebug.engine.campaign.files import read_config

    campaign = None
    if run is not None:
        try:
            campaign = workspace.run(run).read("run.json").get("campaign")
        except (GpudebugError, AttributeError):
            campaign = None
    return str(campaign or read_config(workspace).campaign)


def _what(progress: RunProgress) -> str:
    if progress.hypothesis is not None:
        return f"the test of hypothesis {progress.hypothesis}"
    role = progress.role or ""
    return f"the baseline {role.removeprefix('baseline-')}" if role.startswith("baseline-") else "the cycle"


def _files(workspace: store.Workspace, found: RunningCommand, progress: RunProgress) -> tuple[str, ...]:
    files = [workspace.run(progress.run).log] if progress.run else []
    if found.id:
        files.append(store.Detached(workspace.private).log(found.id))
    return tuple(map(str, files))


def live(progress: RunProgress) -> Live:
    """Return the same for the live line."""
    return Live(
        label=progress.run or "starting",
        elapsed=progress.elapsed_s or 0.0,
        step=progress.step,
        total_steps=progress.steps,
        loss=progress.loss,
        gpu_util=progress.gpu_util,
        left=progress.left_s,
        latency=progress.latency_s,
    )
