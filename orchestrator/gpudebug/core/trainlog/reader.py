"""The streaming reader of a training program's output.

bytes -> segments (text) -> shape of each (shape) -> readings -> steps, losses, durations, failure (state).
Memory is bounded whatever comes; the result does not depend on how the bytes were cut into chunks.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping

from gpudebug.core.errors import ConfigError
from gpudebug.core.text.expressions import Expression, Unbounded, bounded
from gpudebug.core.trainlog.state import GROUP, LogState
from gpudebug.core.trainlog.summary import LogSummary
from gpudebug.core.trainlog.text import Splitter


class LogReader:
    """Reads output as it comes. `patterns` is the user's `log:` mapping; ConfigError if it is broken.

    By `clock` they get some seconds in all: from a log that takes them longer, they tell nothing.
    """

    def __init__(self, patterns: Mapping[str, str] | None = None, clock: Callable[[], float] = float) -> None:
        self._splitter = Splitter()
        self._state = LogState(compile_patterns(patterns), clock)

    def feed(self, data: bytes, time: float | None = None) -> None:
        """Takes a chunk in, cut anywhere; `time` is when it was there, in seconds since launch."""
        state = self._state
        for segment, at in self._splitter.push(data, time):
            state.read(segment, at)

    @property
    def step(self) -> int | None:
        """The last step reached so far, as printed; None while nothing is known to count steps."""
        leader = self._state.steps.leader
        return self._state.steps.current if leader is not None and leader.counts else None

    @property
    def total_steps(self) -> int | None:
        steps = self._state.steps
        return steps.total(steps.leader)

    @property
    def loss(self) -> float | None:
        """The training loss printed last."""
        best = self._state.losses.best()
        return best.last if best else None

    @property
    def latency(self) -> float | None:
        """The median of the latencies printed last, in seconds."""
        return self._state.latencies.recent

    def summary(self, exit_status: int | None = None, signal: int | None = None) -> LogSummary:
        """Return what the log says up to now, the unfinished line included; reading may go on afterwards.

        `exit_status` (negative or 128+N for a signal) and `signal` decide about `failure`.
        """
        state = self._state
        segment, time = self._splitter.pending()
        if segment:
            state = copy.deepcopy(state)
            state.read(segment, time)
        return state.summary(exit_status, signal)


SIMPLER = r"write it with fewer repeats, as in loss[=:]\s*(?P<value>\S+)"


def compile_patterns(patterns: Mapping[str, str] | None) -> dict[str, Expression]:
    """`log:` of the configuration compiled; ConfigError for one that is no expression, lacks the group, or
    could take for ever on some line."""
    compiled: dict[str, Expression] = {}
    for name, pattern in (patterns or {}).items():
        try:
            compiled[name] = bounded(pattern)
        except Unbounded as error:
            raise ConfigError(f"log.{name}: {pattern!r} {error}", next=SIMPLER) from None
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(
                f"log.{name}: not a regular expression: {error}", next=f"mend the pattern {pattern!r}"
            ) from error
        if GROUP not in compiled[name].pattern.groupindex:
            raise ConfigError(
                f"log.{name}: the pattern {pattern!r} has no group named `{GROUP}`",
                next=f"put (?P<{GROUP}>...) around the number",
            )
    return compiled
