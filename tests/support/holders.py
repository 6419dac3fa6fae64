"""Processes that hold something until they are told to let go, or are killed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from tests.support.processes import fork


class Holder:
    """A forked process inside `with enter():`. `user` is the number of the user that it becomes first."""

    def __init__(self, enter: Callable[[], AbstractContextManager[object]], user: int | None = None) -> None:
        told, tell = os.pipe()
        self._ended, self._go = False, -1
        wait, go = os.pipe()

        def body() -> None:
            become(user)
            with enter():
                os.write(tell, b"held")
                os.read(wait, 1)

        self.pid = fork(body)
        os.close(tell)
        os.close(wait)
        self._go = go
        said = os.read(told, 4)
        os.close(told)
        if said != b"held":
            self._end()
            raise AssertionError("the holder could not take it")

    def release(self) -> None:
        """Let go and end."""
        os.write(self._go, b".")
        self._end()

    def kill(self) -> None:
        """`kill -9`, and wait until nothing of it is left."""
        os.kill(self.pid, signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        os.waitpid(self.pid, 0)
        os.close(self._go)
        self._ended = True

    def close(self) -> None:
        if not self._ended:
            self.kill()


@contextlib.contextmanager
def holding(enter: Callable[[], AbstractContextManager[object]], user: int | None = None) -> Iterator[Holder]:
    """A Holder for the length of a block, killed at its end where it is still there."""
    holder = Holder(enter, user)
    try:
        yield holder
    finally:
        holder.close()


def become(user: int | None) -> None:
    """Make this process that user's, without any group of before."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def as_user(user: int, body: Callable[[], object]) -> int:
    """Run `body` as another user in a process of its own; its exit status, 1 where it raised."""
    pid = fork(lambda: (become(user), body()))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def all_end(pids: list[int]) -> dict[int, int]:
    """Exit status (negative: signal) of each of these children, once all have ended."""
    return {pid: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids}
