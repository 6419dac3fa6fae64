"""Signals by which a cluster says that a job is about to end: what runs is ended as by Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from gpudebug.core.cluster.jobs import InsideJob

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_NOTICE = signal.SIGUSR1
"""Slurm's word some time before the time limit, or before a preemption."""


@dataclass
class Notice:
    """What a worker was told of the end of its job; `why` is None as long as that was nothing."""

    job: InsideJob
    why: str | None = None

    @contextlib.contextmanager
    def heeded(self, leaves: Callable[[str], None]) -> Iterator[None]:
        """Signals of the cluster end what runs in the block; `leaves` is told why, once it is left by one."""
        previous = {number: signal.signal(number, self._told) for number in (*_ENDING, _NOTICE)}
        previous[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        except KeyboardInterrupt:
            leaves(self.why or "interrupted")
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _told(self, number: int, _frame: FrameType | None) -> None:
        if number == _NOTICE:
            self.why = f"job {self.job.id} is near its end: its time limit, or a preemption"
            # To whoever counts Ctrl-C now: a launch does.
            signal.raise_signal(signal.SIGINT)
        else:
            self.why = self.why or f"job {self.job.id} was ended (signal {number})"
            raise KeyboardInterrupt
