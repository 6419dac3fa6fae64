"""What a worktree of ours is, and how far its making or removing came: a file of its own, locked meanwhile.

The journal stands before git is asked for the worktree and is the last thing to go: whatever a kill leaves
between is known to be ours. The lock is inherited by the git processes that work on it, so that it is free
only when the last of them has ended.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpudebug.core.errors import BusyError
from gpudebug.edges.snapshot.checkout import PATIENCE_S
from gpudebug.edges.snapshot.repository import failing

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Record:
    """`token` stands in git's folder of the worktree too; `before`: the ids that were there at the start."""

    state: Literal["making", "ready", "removing"]
    token: str
    commit: str
    id: str = ""
    linked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def _beside(folder: Path) -> Path:
    """Where the journals of the worktrees in `folder` are, so that it holds worktrees only."""
    return folder.with_name(f".{folder.name}")


def file_of(path: Path) -> Path:
    return _beside(path.parent) / f"{path.name}.json"


def worktrees_of(folder: Path) -> list[Path]:
    """The worktrees in `folder` that have a journal, finished or not."""
    return sorted(folder / p.stem for p in _beside(folder).glob("*.json"))


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of one worktree, held."""

    path: Path
    descriptor: int

    def read(self) -> Record | None:
        """What it says; None where it says nothing yet. One that is torn was cut off in the making."""
        with failing("read the journal of a worktree", self.path):
            data = os.pread(self.descriptor, 2**24, 0)
        return _read(data)

    def write(self, record: Record) -> None:
        with failing("write the journal of a worktree", self.path):
            data = json.dumps(asdict(record)).encode()
            # Written over, then cut: at no moment does it say nothing.
            if os.pwrite(self.descriptor, data, 0) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.ftruncate(self.descriptor, len(data))

    def remove(self) -> None:
        with failing("remove the journal of a worktree", self.path):
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.parent.rmdir()


def _read(data: bytes) -> Record | None:
    if not data:
        return None
    try:
        told = json.JSONDecoder().raw_decode(data.decode())[0]
        facts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
        return Record(**facts)
    except (ValueError, TypeError, AttributeError):
        return Record("making", "", "")


def peek(path: Path) -> Record | None:
    """The record of the worktree at `path` without holding it; None where it is none of ours."""
    try:
        return _read(file_of(path).read_bytes())
    except FileNotFoundError:
        return None


@contextmanager
def held(path: Path, patience: float = PATIENCE_S) -> Iterator[Journal]:
    """The journal of the worktree at `path`, alone. BusyError where another has it for `patience` seconds."""
    journal = _hold(path, patience)
    try:
        yield journal
    finally:
        if journal.read() is None:
            journal.remove()
        os.close(journal.descriptor)


def _open(file: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with failing("open the journal of a worktree", file):
        while True:
            file.parent.mkdir(parents=True, exist_ok=True)
            # Another command may take the empty folder away in between.
            with suppress(FileNotFoundError):
                return os.open(file, flags, 0o644)


def _hold(path: Path, patience: float) -> Journal:
    file = file_of(path)
    deadline = time.monotonic() + patience
    while True:
        descriptor = _open(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(descriptor, file):
                return Journal(file, descriptor)
        except OSError as e:
            if e.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                os.close(descriptor)
                raise
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise BusyError(
                "another command is making or removing this worktree",
                file=str(path),
                next="wait for it, then try again",
            )
        time.sleep(_POLL_S)


def _same(descriptor: int, file: Path) -> bool:
    """Whether the file that was locked is still the one of that name."""
    try:
        there = os.stat(file, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
