"""The profiler that a user switches on: its options, iterations and warm-up, and what it hands out."""

from __future__ import annotations

import os
from _thread import RLock, get_ident
from time import perf_counter_ns as clock

from gpudebug.training.profiling import exits, sections
from gpudebug.training.profiling.state import PENDING, state
from gpudebug.training.profiling.tree import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, ContextManager, TextIO

EVENTS = 100_000


class Profiler:
    """There is one a process: `get_profiler()`."""

    def __init__(self) -> None:
        state.summary_every = exits.places.summary_every
        self._label: int | None = None

    @property
    def enabled(self) -> bool:
        """Whether sections are measured now."""
        return state.on

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
        state.asked_by_code = True
        if sync is not None:
            state.sync = sync if callable(sync) else None
        if track_memory is not None:
            state.track_memory = track_memory
        if kept is not None:
            self._keep_events(kept)
        state.thorough = state.track_memory or state.sync is not None or state.events is not None
        if categories is not None:
            state.categories = dict(categories)
        if title is not None:
            state.title = title
        if step_label is not None:
            state.step_label = step_label
        if summary_every is not None and not exits.places.summary_every:
            state.summary_every = summary_every
        if warmup is not None:
            state.warmup, state.left_out, state.iterations = warmup, 0, 0
        if report is not None:
            state.report_path = os.path.abspath(os.path.expanduser(report))
        self.start()

    def start(self) -> None:
        """Measure from now on, with the options as they are."""
        sections.calibrate()
        state.stepper = get_ident()
        state.ever_enabled = True
        if not state.on:
            state.on = True
            state.on_since = clock()
            state.began = state.began or state.on_since
        self._watch()
        exits.arrange(self.report, self.forked)

    def _watch(self) -> None:
        watching = bool(state.summary_every or state.warming_up) and not state.explicit
        state.completed, state.limit = (self._completed, -1) if watching else (None, PENDING)

    @staticmethod
    def _keep_events(count: int) -> None:
        from collections import deque

        state.events = deque(state.events or (), count) if count else None

    def disable(self) -> None:
        """Measure nothing from now on; what was measured stays. A call on its way is still counted."""
        if state.on:
            state.on = False
            state.on_for += clock() - state.on_since

    def reset(self) -> None:
        """Forget all figures and iterations; what is open now counts from now."""
        self._forget(peaks=True)
        state.left_out = 0
        del state.notes[:]
        self._watch()

    @staticmethod
    def _forget(peaks: bool) -> None:
        now = clock()
        registry.clear(peaks)
        sections.restart_open(now)
        if state.events is not None:
            state.events.clear()
        state.shown.clear()
        state.iterations, state.on_for, state.on_since = 0, 0, now
        state.began = now if state.began is not None else None

    def forked(self) -> None:
        """In a forked child: nothing that the parent measured is ours."""
        registry.lock, registry.folding = RLock(), False
        state.stepper = get_ident()
        sections.after_fork()
        self._forget(peaks=True)
        self._watch()

    def section(self, name: str) -> ContextManager[None]:
        """A section to keep and to enter as often as you like, shared by threads and tasks, open or not.

        It may be made before profiling is enabled. Where two generators hold it open at once and end in
        another order than they began, their durations are exchanged.
        """
        return sections.section(name)

    def step(self, number: int | None = None) -> None:
        """An iteration is over; `number` is what the summary shows for it, e.g. the agent's step."""
        if not state.on:
            return
        if not state.explicit:
            # What outermost sections counted until now was this iteration's.
            state.explicit = True
            state.iterations = state.left_out = 0
            self._watch()
        self._label = number
        self._guarded(state.iterations + 1)

    def _completed(self, calls: int) -> None:
        """An outermost section of the thread that counts ended, so many times by now."""
        if calls > state.iterations:
            self._guarded(calls)

    def _guarded(self, iterations: int) -> None:
        try:
            self._iterated(iterations)
        except Exception as e:  # noqa: BLE001 - an error of ours must not end the training
            state.note(f"profiling switched itself off: {type(e).__name__}: {e}")
            self.disable()

    def _iterated(self, iterations: int) -> None:
        state.iterations = iterations
        if state.warming_up:
            state.left_out += 1
            if state.left_out == state.warmup:
                self._forget(peaks=False)
                self._watch()
        elif state.summary_every and iterations % state.summary_every == 0:
            from gpudebug.training.profiling import summary

            shown = iterations + state.left_out if self._label is None else self._label
            summary.print_interval(f"{state.title} ({state.step_label}={shown})", state.summary_every)

    def report(self) -> dict[str, object]:
        """Return all figures so far, as they are written to a report; seconds, MB of 2**20 bytes."""
        from gpudebug.training.profiling import report

        return report.build()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, whole or not at all. OSError if that cannot be."""
        exits.write(os.fspath(path), self.report())

    def export_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the calls that were kept, for Perfetto or chrome://tracing.

        RuntimeError if none were asked for. OSError if the file cannot be written.
        """
        from gpudebug.training.profiling import report

        exits.write(os.fspath(path), report.trace())


def _texts(given: Any) -> bool:
    return isinstance(given, dict) and all(isinstance(text, str) for pair in given.items() for text in pair)


def _count(option: str, given: int | None) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 0):
        raise ValueError(f"{option} takes a whole number from 0 on, not {given!r}")
    return given


PROFILER = Profiler()


def get_profiler() -> Profiler:
    """Return the process's profiler, with all that can be done with it."""
    return PROFILER


def print_profiling_summary(tree: bool = False, file: TextIO | None = None) -> None:
    """Print what was measured so far: a table of sections, and below it, if asked for, their tree.

    Where there is nothing to print it says why. `file` is standard output unless it is given.
    """
    from gpudebug.training.profiling import summary

    print(summary.text(tree), file=file, flush=True)
