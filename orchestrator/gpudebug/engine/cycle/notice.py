"""Signals by which a cluster says that a job is about to end or to stop: what runs is ended as by Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.engine.run.attempts import NEAR_ITS_END

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_NOTICE = signal.SIGUSR1
"""Slurm's word some time before the time limit, or before a preemption."""
_PAUSE = signal.SIGTSTP
"""Slurm's word 2 s before it stops all processes of a job that it suspends."""


@dataclass
class Notice:
    """What a worker was told of its job: `why` it ends, None as long as it does not; `paused` if it was
    suspended while it was `doing` something."""

    job: InsideJob
    why: str | None = None
    doing: bool = False
    paused: bool = False

    @property
    def origin(self) -> str:
        """From where what runs is ended, for its record."""
        did = "suspended" if self.paused else "ended"
        return f"by the cluster: {self.why or f'it {did} job {self.job.id}'}"

    @contextlib.contextmanager
    def heeded(self, leaves: Callable[[str], None]) -> Iterator[None]:
        """Signals of the cluster end what runs in the block; `leaves` is told why, once it is left by one.

        Of a suspended job what runs alone is over: its clocks go on while its processes do not.
        """
        previous = {number: signal.signal(number, self._told) for number in (*_ENDING, _NOTICE, _PAUSE)}
        previous[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        except KeyboardInterrupt:
            leaves(self.why or "interrupted")
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """What runs in the block is void once the job is suspended."""
        self.doing, self.paused = True, False
        try:
            yield
        finally:
            self.doing = False

    def _told(self, number: int, _frame: FrameType | None) -> None:
        if number == _PAUSE:
            if self.doing and not self.paused:
                self.paused = True
                signal.raise_signal(signal.SIGINT)
        elif number == _NOTICE:
            self.why = f"job {self.job.id} {NEAR_ITS_END}"
            # To whoever counts Ctrl-C now: a launch does.
            signal.raise_signal(signal.SIGINT)
        else:
            self.why = self.why or f"job {self.job.id} was ended (signal {number})"
            raise KeyboardInterrupt
