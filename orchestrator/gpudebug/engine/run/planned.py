"""Runs that gpudebug ends by itself: the plan of one, and the watch over a run that goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import thread_time
from typing import Any

from gpudebug.core.catalogue import frameworks
from gpudebug.core.config import Config
from gpudebug.core.records import Evidence, PlannedEnd
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.verdict.run_plan import (
    OWN_END,
    NextLook,
    RunPlan,
    as_recorded,
    next_look,
    time_left,
)
from gpudebug.core.verdict.turns import span
from gpudebug.edges import launcher
from gpudebug.engine.campaign.campaign import Baselines
from gpudebug.engine.run import adapters
from gpudebug.engine.run.job import MeasuredRun

# What of recorded runs decides how long the next ones go on.
_DECIDES = {"outcome", "loss", "learning", "window"}
# Start-up takes a while: no window is full before this much more than its length.
_FIRST_LOOK_S = 1.0
# Lines of the log are seen up to so much later than the samples will say: no window is to end below its plan.
_TICK_S = 0.5
LEAST_S = 1.0
"""How short a window a look sees, so that it knows how much is missing."""
LOOK_SHARE, LOOKS_S = 0.01, 0.5
"""Of a run's time, what looks at it may take of a core, beyond some seconds in all."""


class PlannedEnding:
    """Looks at a run until its plan is fulfilled; `end` then says where, None before.

    `read` gives the evidence so far, with the seconds since launch; `argv` may say how many steps it makes.
    """

    def __init__(self, plan: RunPlan, read: Callable[[float], Evidence], argv: Sequence[str]) -> None:
        self.plan = plan
        self.read = read
        self.asked = frameworks.steps_of(argv, adapters.known())
        self.wanted = replace(plan, window_s=plan.window_s + _TICK_S)
        self.look_at = plan.first_s + _FIRST_LOOK_S
        self.before: Evidence | None = None
        self.spent_s = 0.0
        self.end: PlannedEnd | None = None
        # Optimizer steps when all of the log's were made: a bar of a pass before the training is full, too.
        self._full: int | None = None
        self._look = NextLook(0.0)

    def overdue(self, elapsed: float) -> bool:
        """Tell whether the run has gone on for as long as its plan allows."""
        return self.plan.most_s is not None and elapsed >= self.plan.most_s

    def due(self, tick: launcher.Tick, reader: LogReader) -> bool:
        if self.overdue(tick.elapsed):
            return self._ended(tick)
        if tick.elapsed < self.look_at:
            return False
        start = thread_time()
        seen = self.read(tick.elapsed)
        self.spent_s += thread_time() - start
        look = next_look(self.wanted, seen, self._left(seen, reader), self.before)
        self.before = seen
        self._look = look
        self.look_at = max(tick.elapsed + look.seconds, (self.spent_s - LOOKS_S) / LOOK_SHARE)
        return look.seconds <= 0 and self._ended(tick)

    def waits_for(self, elapsed: float) -> str:
        """`10 steps, about 40 s`, as it looks at this moment; empty before the first look."""
        left, text = self.look_at - elapsed, self._look.waits_for
        return f"{text}, about {span(left)}" if text and self._look.foreseen and left >= 1 else text

    def left(self, own: float, elapsed: float) -> float | None:
        """Return `own`, the seconds until the run ends by itself; None if its plan may end it before:
        `waits_for` says what is known of that."""
        left_to_it = self._look.waits_for.startswith(OWN_END)
        return own if left_to_it or own < self.look_at - elapsed else None

    def _ended(self, tick: launcher.Tick) -> bool:
        self.end = PlannedEnd(
            at_s=round(tick.elapsed, 3), log_bytes=tick.log_bytes, window_s=self.plan.window_s
        )
        return True

    def _left(self, seen: Evidence, reader: LogReader) -> float | None:
        """Seconds of training that are left, by what the log counts; else by the steps asked for."""
        rate = seen.progress_per_s or seen.steps_per_s
        if reader.step is not None and reader.total_steps:
            made = seen.probe.steps if seen.probe and reader.step == reader.total_steps else None
            if made is not None and self._full is not None and made > self._full:
                return None
            self._full = made
            return time_left(reader.total_steps, reader.step, rate)
        return time_left(seen.total_steps or self.asked, seen.steps, seen.steps_per_s)


def ending_of(
    plan: RunPlan | None, read: Callable[[float], Evidence], argv: Sequence[str]
) -> PlannedEnding | None:
    return PlannedEnding(plan, read, argv) if plan is not None else None


def plan_of(config: Config, baselines: Baselines, workload: str) -> RunPlan | None:
    """Return the plan of a run of the campaign's `workload`, that or reference; None: it ends by itself.

    Runs beside a valid baseline are ended as its runs were; the first run of a new one decides for the rest.
    """
    found = baselines.get(workload)
    recorded = found.evidence if found is not None and found.why is None else ()
    return _plan(config, recorded)


def plan_after(config: Config, made: Sequence[MeasuredRun]) -> RunPlan | None:
    """Return the plan of the later runs of a baseline of which these are made."""
    return _plan(config, [m.evidence.model_dump(mode="json", include=_DECIDES) for m in made])


def _plan(config: Config, recorded: Sequence[Mapping[str, Any]]) -> RunPlan | None:
    learns = config.criteria.loss != "any"
    return as_recorded(config.protocol.run_for, recorded, learns=learns, phase=config.phase)
