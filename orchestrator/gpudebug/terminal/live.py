"""How far a run is: in one line, and as the live line of a run.

That is redrawn on a terminal; in a pipe it is a line every 10 s at first, then ever rarer.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gpudebug.core.answers.status import RunProgress
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import name
from gpudebug.core.words import counted
from gpudebug.terminal.output import plain_line

if TYPE_CHECKING:
    from gpudebug.core.answers.next import Running
    from gpudebug.engine.run.live_line import Live


PIPE_INTERVAL_S = 10.0
RARER = 0.25
"""The least part of the whole time between two lines: an hour of runs is some twenty lines."""
_EACH_RUN_S = 120.0
"""For so long each run has a line when it begins."""


def line(live: Live) -> str:
    """Format elapsed time, step, loss, utilisation, time left and what is awaited, as far as known."""
    total = f"/{live.total_steps}" if live.total_steps else ""
    step = f"{live.unit} {live.step}{total}" if live.step is not None else ""
    latency = f"latency {numbers.seconds(live.latency)}" if live.latency is not None else ""
    reached = step or latency or ("no step yet" if live.unit else "")
    parts = [live.label, numbers.duration(live.elapsed), *([reached] if reached else [])]
    if live.loss is not None:
        parts.append(f"loss {numbers.number(live.loss)}")
    if live.reward is not None:
        parts.append(f"reward {numbers.number(live.reward)}")
    if live.rate is not None:
        parts.append(numbers.rate(*live.rate))
    parts.append(f"util {numbers.percent(live.gpu_util)}")
    if live.left is not None:
        parts.append(f"{numbers.duration(live.left)} left")
    if live.waits_for:
        parts.append(f"waits for {live.waits_for}")
    return "  ".join(parts)


class LiveLine:
    """Call it with each `Live`; it writes to standard error."""

    def __init__(self) -> None:
        self._screen: Any = None
        self._run, self._elapsed, self._before = "", 0.0, 0.0
        self._printed: float | None = None
        self._blind = False
        self._remarks: set[str] = set()
        self._since = time.monotonic()

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self._screen is not None:
            with contextlib.suppress(OSError):  # The terminal may be gone, and its line with it.
                self._screen.stop()
            self._screen = None

    def __call__(self, live: Live) -> None:
        """Show the state. If standard error fails, show nothing more: the training goes on."""
        if live.remark is not None:
            self._remark(live.remark)
            return
        self._show(line(live), live.label, live.elapsed)

    def new_notes(self, notes: Sequence[str]) -> tuple[str, ...]:
        """Drop the notes of an answer that were printed as a remark."""
        return tuple(n for n in notes if not any(r.endswith(f": {n}") for r in self._remarks))

    def _remark(self, text: str) -> None:
        """Print a line that stays, once."""
        if self._blind or text in self._remarks:
            return
        self._remarks.add(text)
        self.close()
        try:
            print(f"gpudebug: {plain_line(text)}", file=sys.stderr, flush=True)
        except OSError:
            self._blind = True

    def doing(self, text: str) -> None:
        """Show what a command without a run is doing; in a pipe only if it takes long."""
        self._show(text, "", time.monotonic() - self._since)

    def _show(self, text: str, label: str, elapsed: float) -> None:
        if self._blind:
            return
        text = text if text.isprintable() else plain_line(text)
        try:
            if sys.stderr.isatty():
                self._draw(text)
            else:
                self._print(text, label, elapsed)
        except OSError:
            self._blind = True

    def _draw(self, text: str) -> None:
        if self._screen is None:
            from rich.console import Console
            from rich.live import Live as Screen

            self._screen = Screen(console=Console(stderr=True), transient=True, auto_refresh=False)
            self._screen.start()
        from rich.text import Text

        self._screen.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _print(self, text: str, label: str, elapsed: float) -> None:
        begins = label != self._run
        if begins:
            self._before += self._elapsed
            self._run = label
        self._elapsed = elapsed
        total = self._before + elapsed
        rest = total - (self._printed or 0.0)
        due = rest >= max(PIPE_INTERVAL_S, RARER * total) or (begins and total <= _EACH_RUN_S)
        if not due:
            return
        self._printed = total
        print(text, file=sys.stderr, flush=True)


def progress(run: RunProgress | Running) -> str:
    """Format the run, its progress and its utilisation."""
    if run.run is None:
        return "no run has begun yet"
    parts = [run.run, _reached(run)]
    if run.elapsed_s is not None:
        parts.append(f"{numbers.duration(run.elapsed_s)} elapsed")
    left = numbers.UNKNOWN if run.left_s is None else numbers.duration(run.left_s)
    parts.append(f"time left {left}" if run.left_s is None else f"{left} left")
    least = f" (least {run.least.value:.1f}%, {name(run.least)})" if run.least else ""
    parts.append(f"gpu_util {numbers.percent(run.gpu_util)} so far{least}")
    if run.runs_done:
        parts.append(f"{counted(run.runs_done, 'run')} done")
    return ", ".join(parts)


def _reached(run: RunProgress | Running) -> str:
    if run.step is None and run.latency_s is not None:
        return f"latency {numbers.seconds(run.latency_s)}"
    step = numbers.UNKNOWN if run.step is None else str(run.step)
    return f"step {step}" + (f" of {run.steps}" if run.steps else "")
