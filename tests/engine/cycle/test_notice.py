"""What a cluster says of a job's end, as a signal."""

from __future__ import annotations

import os
import signal

import pytest

from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.engine.cycle.notice import Notice

JOB = InsideJob(id="12", node="n0", nodes=("n0",))


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (signal.SIGUSR1, "job 12 is near its end: its time limit, or a preemption"),
        (signal.SIGTERM, "job 12 was ended (signal 15)"),
        (signal.SIGINT, "interrupted"),
    ],
)
def test_a_signal_ends_the_block_and_says_why(number: signal.Signals, why: str) -> None:
    notice, said = Notice(JOB), list[str]()
    before = signal.getsignal(number)
    with notice.heeded(said.append):
        os.kill(os.getpid(), number)
        signal.pause()
    assert said == [why]
    assert signal.getsignal(number) == before


def test_without_a_signal_nothing_is_said() -> None:
    notice, said = Notice(JOB), list[str]()
    with notice.heeded(said.append):
        pass
    assert (notice.why, said) == (None, [])


def test_a_job_that_is_suspended_ends_what_runs_and_nothing_else() -> None:
    notice, said = Notice(JOB), list[str]()
    with notice.heeded(said.append):
        signal.raise_signal(signal.SIGTSTP)
        with notice.busy():
            assert not notice.paused
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTSTP)
            assert (notice.paused, notice.origin) == (True, "by the cluster: it suspended job 12")
        with notice.busy():
            assert (notice.paused, notice.origin) == (False, "by the cluster: it ended job 12")
    assert (notice.why, said) == (None, [])
