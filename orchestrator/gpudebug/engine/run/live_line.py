"""A run as it goes on: the live line, stalls, whether it has shown enough."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Protocol

from gpudebug.core.errors import StoreError
from gpudebug.core.inside.probe.spans import LiveSteps
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import Outcome
from gpudebug.edges import launcher, opener
from gpudebug.edges.store import jobfiles
from gpudebug.engine.run.files import Files

WOULD_OVERWRITE = "stopped before it overwrote a file that was there before"
"""The reason of a run that did not get further; nothing of it counts."""
GAPS = 3
"""A training whose steps only the probe reports has not stalled before this many of the usual times between
its lines."""
OWN_STEP = "optimizer step"
"""What the training process reports of, which need not be what its log calls a step."""
# A count that is full says for this long what goes on: the next epoch's bar takes its place.
_FULL_S = 2.0
# A training whose next step is this many times later than usual does something else: it saves, evaluates.
LATE = 3.0
_LATE_S = 2.0
_GAPS_KEPT = 20
_LIVE_STEP = 1 << 20
LIVE_SHARE = 0.02
"""Of a run's time, what following its log may take of a core that its training wants."""
_SAVED_S = 0.3
# Seconds a byte at first; what a log really takes depends on its lines.
_COST_S = 2e-7
_LEAST_READ = 4 << 10


@dataclass(frozen=True)
class Live:
    """What a run looks like at this moment, for a live line. Seconds, percent; None is unknown.

    `remark` is a note for the watcher, however often it is shown; `latency` is the median of the last few.
    `unit` is what `step` counts, empty if nothing counts what goes on, `waits_for` what a run that gpudebug
    ends has still to show; `reward` and `rate` (a second, of what) are as printed last.
    """

    label: str
    elapsed: float
    step: int | None
    total_steps: int | None
    loss: float | None
    gpu_util: float | None
    left: float | None
    remark: str | None = None
    latency: float | None = None
    unit: str = "step"
    waits_for: str = ""
    reward: float | None = None
    rate: tuple[float, str] | None = None


Report = Callable[[Live], None]


@dataclass(frozen=True)
class SoFar:
    """What a run that goes on has instead of an ending. Seconds since launch."""

    duration_s: float
    outcome: Outcome = Outcome.ENDED_BY_PLAN
    exit_status: int | None = None
    signal: int | None = None
    reason: str | None = None
    own_limit_mb: float | None = None


class RunEnd(Protocol):
    """Whether a run that goes on has shown enough, at a moment in which it trains or once it is overdue."""

    def overdue(self, elapsed: float) -> bool: ...
    def due(self, tick: launcher.Tick, reader: LogReader) -> bool: ...
    def waits_for(self, elapsed: float) -> str: ...
    def left(self, own: float, elapsed: float) -> float | None: ...


class Watch:
    """Follows a growing log for the live line, for stalls and for the planned end.

    The training process's reports of its steps count too. A flood is followed at its tail only, as far as
    `LIVE_SHARE` pays for.
    `stall_timeout` is seconds; `ending` is asked whether the run's plan is fulfilled: not while the training
    saves or evaluates. `stopped` tells whether one of its processes stopped before it overwrote a file.
    """

    def __init__(
        self,
        files: Files,
        name: str,
        reader: LogReader,
        report: Report,
        stall_timeout: float | None,
        ending: RunEnd | None = None,
        stopped: Callable[[], bool] = bool,
    ) -> None:
        self.files = files
        self.name = name
        self.reader = reader
        self.report = report
        self.stall_timeout = stall_timeout
        self.ending = ending
        self.stopped = stopped
        self.gaps: deque[float] = deque(maxlen=_GAPS_KEPT)
        self.read_to = 0
        self.paid_s, self.paid_at, self.cost_s = _SAVED_S, 0.0, _COST_S
        self.step: int | None = None
        self.step_at: float | None = None
        self.inside = LiveSteps()
        self.inside_read_to = 0
        self.progress: tuple[int | None, int | None] = (None, None)
        self.progress_at: float | None = None

    def observe(self, tick: launcher.Tick) -> str | None:
        self._follow(tick)
        self._follow_inside()
        if self.reader.step is not None and self.reader.step != self.step:
            self.step, self.step_at = self.reader.step, tick.elapsed
        if self.progress != (self.step, self.inside.steps):
            if self.progress_at is not None:
                self.gaps.append(tick.elapsed - self.progress_at)
            self.progress, self.progress_at = (self.step, self.inside.steps), tick.elapsed
        step, total, unit = self._counted(tick.elapsed)
        self.report(
            Live(
                label=self.name,
                elapsed=tick.elapsed,
                step=step,
                total_steps=total,
                loss=self.reader.loss,
                gpu_util=last_utilisation(self.files.samples),
                left=self._left(tick.elapsed),
                latency=self.reader.latency,
                unit=unit,
                waits_for=self.ending.waits_for(tick.elapsed) if self.ending is not None else "",
                reward=self.reader.reward,
                rate=self.reader.rate,
            )
        )
        if tick.stopping is not None:
            return None
        if self.stopped():
            return f"{Outcome.INTERRUPTED} {WOULD_OVERWRITE}"
        if self._stalled(tick.elapsed):
            return "STALLED"
        return self._planned_end(tick)

    def _planned_end(self, tick: launcher.Tick) -> str | None:
        if self.ending is None:
            return None
        overdue = self.ending.overdue(tick.elapsed)
        if not ((overdue or self._trains(tick.elapsed)) and self.ending.due(tick, self.reader)):
            return None
        why = f"it has run for {tick.elapsed:.0f} s" if overdue else "its planned window is full"
        return f"{Outcome.ENDED_BY_PLAN} {why}"

    def _trains(self, elapsed: float) -> bool:
        """Tell whether the last step, if steps are seen at all, is no longer ago than usual."""
        if self.progress_at is None or not self.gaps:
            return True
        return elapsed - self.progress_at <= max(_LATE_S, LATE * median(self.gaps))

    def _stalled(self, elapsed: float) -> bool:
        if self.stall_timeout is None or self.progress_at is None:
            return False
        by_log = self.reader.step is not None
        limit = self.stall_timeout if by_log else max(self.stall_timeout, GAPS * self.inside.gap)
        return elapsed - self.progress_at > limit

    def _follow(self, tick: launcher.Tick) -> None:
        if tick.log_bytes <= self.read_to:
            return
        start = max(self.read_to, tick.log_bytes - self._affordable(tick.elapsed))
        file = opener.look(self.files.log)
        if file is None:
            return
        with file:
            file.seek(start)
            data = file.read(tick.log_bytes - start)
        begun = thread_time()
        self.reader.feed(data if start == self.read_to else b"\n" + data, tick.elapsed)
        took = thread_time() - begun
        self.paid_s -= took
        self.cost_s = max(self.cost_s / 2, took / max(len(data), _LEAST_READ))
        self.read_to = start + len(data)

    def _affordable(self, elapsed: float) -> int:
        """Return how many bytes of new log may be read now, by what the ones before took."""
        self.paid_s = min(_SAVED_S, self.paid_s + LIVE_SHARE * (elapsed - self.paid_at))
        self.paid_at = elapsed
        return min(_LIVE_STEP, max(_LEAST_READ, int(self.paid_s / self.cost_s)))

    def _follow_inside(self) -> None:
        if self.files.records is None:
            return
        path = self.files.records / launcher.PROBE
        if (jobfiles.size_of(path) or 0) <= self.inside_read_to:
            return
        file = opener.look(path)
        if file is None:
            return
        with file:
            file.seek(self.inside_read_to)
            data = opener.read(file, _LIVE_STEP)
        self.inside.feed(data)
        self.inside_read_to += len(data)

    def _counted(self, elapsed: float) -> tuple[int | None, int | None, str]:
        """Return the step, their total and what they count.

        A full count that stays while the run goes on is over: it was a pass before the training, or all
        epochs have begun. Then the training process's own steps say what goes on.
        """
        reader = self.reader
        full = reader.step is not None and reader.step == reader.total_steps
        over = full and elapsed - (self.step_at or elapsed) >= _FULL_S
        if reader.step is not None and not over:
            return reader.step, reader.total_steps, reader.step_unit or "step"
        return self.inside.steps, None, "" if over and self.inside.steps is None else OWN_STEP

    def _left(self, elapsed: float) -> float | None:
        """Return the seconds until the run ends, by its log; None also once they are over."""
        step, total = self.reader.step, self.reader.total_steps
        if not step or not total or step > total or not self.step_at:
            return None
        left = self.step_at * (total - step) / step - (elapsed - self.step_at)
        if left <= 0:
            return None
        return left if self.ending is None else self.ending.left(left, elapsed)


def last_utilisation(path: Path) -> float | None:
    """Mean utilisation over the devices in the last complete rows of a growing samples.csv."""
    try:
        lines = opener.read_tail(path, 2048).decode("ascii", "replace").splitlines(keepends=True)[1:]
    except StoreError:
        return None
    rows = [line.split(",") for line in lines if line.endswith("\n")]
    values = [(r[0], r[1]) for r in rows if len(r) > 2 and r[1]]
    try:
        last = [float(v) for t, v in values if t == values[-1][0]]
        return sum(last) / len(last) if last else None
    except ValueError:
        return None
