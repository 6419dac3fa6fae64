"""Run operations one at a time in the main thread, where a signal reaches them as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType
from typing import Any

from gpudebug.core.answers.answer import Answer
from gpudebug.core.errors import GpudebugError, InterruptedRun, refused
from gpudebug.terminal import output

# A job that was asked to stop is asked again after this time.
PRESS_AGAIN_S = 1.5
PRESSES = 4
# Not SIGINT, which ends the server unless a job is interrupted by it.
_CANCEL = signal.SIGUSR1


@dataclass(frozen=True)
class JobResult:
    """The result of an operation: the object that `--json` prints; an error if `failed`."""

    document: Answer | dict[str, Any]
    failed: bool = False
    interrupted: bool = False


@dataclass(eq=False)
class WorkerJob:
    """One operation; the worker's thread calls `work`, then `settle` with its result."""

    work: Callable[[], Answer]
    settle: Callable[[JobResult], None]
    cancelled: bool = False


class Worker:
    """A queue of jobs for the thread that calls `run`; any thread may add and cancel."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[WorkerJob | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._current: WorkerJob | None = None
        self._deaf = self._closed = False
        self._idle = threading.Event()
        self._idle.set()

    def run(self) -> None:
        """Do jobs until `close`, in the main thread only; KeyboardInterrupt if a signal asks to end."""
        handlers = {signal.SIGINT: self._pressed, _CANCEL: self._cancelled}
        previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            while (job := self._jobs.get()) is not None:
                self._do(job)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def submit(self, job: WorkerJob) -> None:
        self._jobs.put(job)

    def cancel(self, job: WorkerJob) -> None:
        """Stop a job as Ctrl-C does: gracefully the first time, at once the second; nothing after its end."""
        with self._lock:
            job.cancelled = True
            if self._current is job:
                signal.pthread_kill(threading.main_thread().ident or 0, _CANCEL)

    def close(self) -> None:
        """Stop the current job and let `run` return. Not in the main thread."""
        self._closed = True
        self._jobs.put(None)
        for again in range(PRESSES):
            with self._lock:
                job = self._current
            if job is not None and (again or not job.cancelled):
                self.cancel(job)
            if self._idle.wait(PRESS_AGAIN_S):
                return

    def _pressed(self, _number: int, _frame: FrameType | None) -> None:
        if not self._deaf:
            raise KeyboardInterrupt

    def _cancelled(self, _number: int, frame: FrameType | None) -> None:
        """Do what Ctrl-C does now, but only to the job that was cancelled: the signal may come too late."""
        job, handler = self._current, signal.getsignal(signal.SIGINT)
        if not self._deaf and job is not None and job.cancelled and callable(handler):
            handler(signal.SIGINT, frame)

    def _do(self, job: WorkerJob) -> None:
        # Deaf outside the work itself: a cancellation that comes too late must not end the server.
        self._deaf = True
        with self._lock:
            self._current = job
            self._idle.clear()
        answer = self._answer(job)
        job.settle(answer)
        with self._lock:
            self._current = None
            self._idle.set()
        self._deaf = False
        if answer.interrupted and not job.cancelled:
            raise KeyboardInterrupt

    def _answer(self, job: WorkerJob) -> JobResult:
        try:
            try:
                self._deaf = False
                if job.cancelled or self._closed:
                    raise KeyboardInterrupt
                return outcome(job.work)
            finally:
                self._deaf = True
        except KeyboardInterrupt:
            self._deaf = True
            return _failed(InterruptedRun("interrupted", next="gpudebug status"), interrupted=True)


def outcome(work: Callable[[], Answer]) -> JobResult:
    """Return an operation's answer, or its error as `--json` prints it; a defect leaves a log file."""
    try:
        return JobResult(work())
    except InterruptedRun as e:
        return _failed(e, interrupted=True)
    except GpudebugError as e:
        return _failed(e)
    except Exception as e:  # noqa: BLE001  # a defect of ours
        return _failed(refused(e) or output.defect(e))


def _failed(error: GpudebugError, *, interrupted: bool = False) -> JobResult:
    return JobResult(output.error_document(error), failed=True, interrupted=interrupted)
