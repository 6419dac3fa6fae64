"""The profiler that a user switches on: its options, iterations and warm-up, and what it hands out."""

from __future__ import annotations

import os
from _thread import get_ident
from time import perf_counter_ns as clock

from gpudebug.training.profiling import calibration, entries, exits, handles
from gpudebug.training.profiling.progress import ProfilerState
from gpudebug.training.profiling.settings import settings
from gpudebug.training.profiling.tree import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, ContextManager

    from gpudebug.training.profiling.tree import Node

EVENTS = 100_000


class Profiler(ProfilerState):
    """There is one a process: `get_profiler()`."""

    def __init__(self) -> None:
        super().__init__(exits.places.summary_every)
        self._label: int | None = None

    @property
    def enabled(self) -> bool:
        """Whether sections are measured now."""
        return settings.on

    def enable(
        self,
        *,
        warmup: int | None = None,
        summary_every: int | None = None,
        title: str | None = None,
        step_label: str | None = None,
        sync: Callable[[], Any] | bool | None = None,
        categories: dict[str, str] | None = None,
        track_memory: bool | None = None,
        trace: bool | int | None = None,
        report: str | None = None,
    ) -> None:
        """Measure sections from now on; an option that is not given stays as it is.

        warmup: iterations that the figures leave out. summary_every: print the tree of sections each so many
        iterations (0: never) under `title`, with `step_label` before the iteration's number. sync: called at
        each beginning and end, for a device that works on its own (`torch.cuda.synchronize`); False ends
        it. categories: prefix to name. track_memory: peaks for every section. trace: keep the last 100,000
        calls (or so many) for `export_trace`. report: a file to write when the process ends.

        An iteration is a call of `step()`; without any, one completion of an outermost section (of several
        the one that completes most often) in the thread that enabled profiling. ValueError or TypeError for
        an impossible option.
        """
        if sync is not None and sync is not False and not callable(sync):
            raise TypeError(f"sync takes a function such as torch.cuda.synchronize, not {sync!r}")
        if categories is not None and not _texts(categories):
            raise TypeError(f"categories takes names by the prefix of a section's name, not {categories!r}")
        warmup = _count("warmup", warmup)
        summary_every = _count("summary_every", summary_every)
        kept = _count("trace", EVENTS if trace is True else 0 if trace is False else trace)
        self.asked_by_code = True
        calibration.calibrate()
        if sync is not None:
            settings.sync = sync if callable(sync) else None
        if track_memory is not None:
            settings.track_memory = track_memory
        if kept is not None:
            self._keep_events(kept)
        self.categories = dict(categories) if categories is not None else self.categories
        self.title = title if title is not None else self.title
        self.step_label = step_label if step_label is not None else self.step_label
        if summary_every is not None and not exits.places.summary_every:
            self.summary_every = summary_every
        if warmup is not None:
            self.warmup, self.left_out, self.iterations = warmup, 0, 0
        if report is not None:
            self.report_path = os.path.abspath(os.path.expanduser(report))
        self.start()

    def start(self) -> None:
        """Measure from now on, with the options as they are."""
        calibration.calibrate()
        settings.completed = self._completed
        settings.noticed = exits.notice_rank
        registry.stepper = get_ident()
        self.ever_enabled = True
        if not settings.on:
            settings.on = True
            self.on_since = clock()
            self.began = self.began or self.on_since
        handles.switch()
        self._watch()
        exits.arrange(self, self.report, self.forked)

    def _watch(self) -> None:
        registry.watch(bool(self.summary_every or self.warming_up) and not self.explicit)

    @staticmethod
    def _keep_events(count: int) -> None:
        from collections import deque

        old = settings.events
        settings.events = deque(old or (), count) if count else None

    def disable(self) -> None:
        """Measure nothing from now on; what was measured stays. A call on its way is still counted."""
        if settings.on:
            settings.on = False
            self.on_for += clock() - self.on_since
        handles.switch()

    def reset(self) -> None:
        """Forget all figures and iterations; what is open now counts from now."""
        self._forget(peaks=True)
        self.left_out = 0
        del settings.notes[:]
        self._watch()

    def _forget(self, peaks: bool) -> None:
        now = clock()
        registry.clear(peaks)
        handles.restart_open(now)
        if settings.events is not None:
            settings.events.clear()
        self.shown.clear()
        self.iterations, self.on_for, self.on_since = 0, 0, now
        self.began = now if self.began is not None else None

    def forked(self) -> None:
        """In a forked child: nothing that the parent measured is ours."""
        registry.after_fork()
        entries.after_fork()
        self._forget(peaks=True)
        self._watch()

    def section(self, name: str) -> ContextManager[None]:
        """A handle to keep and to enter as often as you like: `with` it costs less than a look-up by name.

        That is so in the thread that entered it first and where it stays at one place of the tree. It may be
        shared by threads and tasks, and entered again while it is open, at five times the cost: a name is
        cheaper there. Where two generators hold it open at once and end in another order than they began,
        their durations are exchanged.
        """
        return handles.section(name)

    def step(self, number: int | None = None) -> None:
        """An iteration is over; `number` is what the summary shows for it, e.g. the agent's step."""
        if not settings.on:
            return
        if not self.explicit:
            # What outermost sections counted until now was this iteration's.
            self.explicit = True
            self.iterations = self.left_out = 0
            registry.watch(False)
        self._label = number
        self._guarded(self.iterations + 1)

    def _completed(self, node: Node) -> None:
        """An outermost section of the thread that counts ended."""
        if not self.explicit and node.calls > self.iterations:
            self._guarded(node.calls)

    def _guarded(self, iterations: int) -> None:
        try:
            self._iterated(iterations)
        except Exception as e:  # noqa: BLE001 - an error of ours must not end the training
            settings.note(f"profiling switched itself off: {type(e).__name__}: {e}")
            self.disable()

    def _iterated(self, iterations: int) -> None:
        self.iterations = iterations
        if self.warming_up:
            self.left_out += 1
            if self.left_out == self.warmup:
                self._forget(peaks=False)
                self._watch()
        elif self.summary_every and iterations % self.summary_every == 0:
            from gpudebug.training.profiling import summary

            shown = iterations + self.left_out if self._label is None else self._label
            summary.print_interval(self, f"{self.title} ({self.step_label}={shown})", self.summary_every)

    def report(self) -> dict[str, Any]:
        """Return all figures so far, as they are written to a report; seconds, MB of 2**20 bytes."""
        from gpudebug.training.profiling import report

        return report.build(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, whole or not at all. OSError if that cannot be."""
        exits.write(os.fspath(path), self.report())

    def export_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the calls that were kept, for Perfetto or chrome://tracing.

        RuntimeError if none were asked for. OSError if the file cannot be written.
        """
        from gpudebug.training.profiling import events

        exits.write(os.fspath(path), events.trace(self.categories))


def _texts(given: Any) -> bool:
    return isinstance(given, dict) and all(isinstance(text, str) for pair in given.items() for text in pair)


def _count(option: str, given: int | None) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 0):
        raise ValueError(f"{option} takes a whole number from 0 on, not {given!r}")
    return given


PROFILER = Profiler()
