"""What a worktree of ours is, and how far its making or removing came: a record of its own, locked meanwhile.

Records lie in git's common folder, where no clone, patch or other user puts a file. The record is written
before anything is made and is the last thing to go: whatever a kill leaves between is known to be ours. The
lock is inherited by the git processes that work on the worktree, so that it is free only when the last of
them has ended. Beside the record is the index that gpudebug looks at the worktree by.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpudebug.core.errors import BusyError, GitError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import opener, removal
from gpudebug.edges.git import grounds
from gpudebug.edges.git.address import PATIENCE_S
from gpudebug.edges.git.grounds import PRIVATE, failing
from gpudebug.edges.removal import Identity

_POLL_S = 0.02
_PLACE = "worktrees"
_RECORD, _LOCK, _INDEX, _BESIDE = ".json", ".held", ".index", ".linked"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_ID = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*)?")


@dataclass(frozen=True, slots=True)
class WorktreeRecord:
    """One worktree.

    `path` is where it is: of another name where that was taken. `made` is the identity of its folder, None
    before gpudebug made it; `born` is when that was made, None also if the file system does not tell.
    `mending` says that its own repository is being made again. `id` and `admin` are name and identity of
    git's folder of a worktree that an earlier version linked to the user's repository.
    """

    state: Literal["making", "ready", "removing"]
    commit: str
    path: str
    made: Identity | None = None
    linked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    born: int | None = None
    mending: bool = False
    id: str = ""
    admin: Identity | None = None

    def at(self, path: Path) -> Path:
        """Where the worktree that is asked for as `path` is: beside it, also in a repository that moved."""
        return path.with_name(Path(self.path).name)


def _names(common: Path, folder: Path) -> tuple[str, str]:
    """Return where the records of the worktrees in `folder` are: it moves with the repository."""
    way = os.path.relpath(os.path.abspath(folder), os.path.abspath(common))
    name = re.sub(r"[^A-Za-z0-9._-]", "_", folder.name).lstrip(".") or "_"
    return _PLACE, f"{name}-{short_digest(os.fsencode(way))[:8]}"


def place_of(common: Path, folder: Path) -> Path:
    """Return the folder with the records of the worktrees in `folder`."""
    return common.joinpath(PRIVATE, *_names(common, folder))


def file_of(common: Path, path: Path, kind: str = _RECORD) -> Path:
    return place_of(common, path.parent) / f"{_plain(path)}{kind}"


def index_of(common: Path, path: Path, record: WorktreeRecord) -> Path:
    """Return the index that gpudebug looks at a worktree by; that of a linked one until it has its own."""
    own = file_of(common, path, _INDEX)
    return common / "worktrees" / record.id / "index" if record.id and not own.exists() else own


def worktrees_of(common: Path, folder: Path) -> list[Path]:
    """The worktrees in `folder` that have a record, finished or not, or the lock of one that a kill left."""
    place = place_of(common, folder)
    try:
        found = {name.rpartition(".")[0] for name in os.listdir(place) if name.endswith((_RECORD, _LOCK))}
    except FileNotFoundError:
        return []
    except OSError as e:
        raise GitError(f"cannot list it: {e.strerror}", file=str(place), next="see whose it is") from None
    for name in found:
        if name in ("", ".", ".."):
            raise _unreadable(place / f"{name}{_RECORD}")
    return sorted(folder / name for name in found)


@dataclass(frozen=True, slots=True)
class Journal:
    """The record of one worktree, held. `folder` is open, and so is the lock `descriptor`."""

    common: Path
    path: Path
    folder: int
    descriptor: int

    @property
    def file(self) -> Path:
        return file_of(self.common, self.path)

    @property
    def index(self) -> Path:
        return file_of(self.common, self.path, _INDEX)

    def read(self) -> WorktreeRecord | None:
        """Return the record; None if there is none. GitError if it cannot be read."""
        return _read(grounds.read_file(self.folder, self.file.name), self.file)

    def write(self, record: WorktreeRecord) -> None:
        with failing("write the record of a worktree", self.file):
            grounds.replace_file(self.folder, self.file.name, json.dumps(asdict(record)).encode())

    def put_beside(self, data: bytes) -> None:
        """Keep `data` with the record, until that goes."""
        with failing("write what a worktree borrows", self.file):
            grounds.replace_file(self.folder, f"{self.path.name}{_BESIDE}", data)

    def remove(self) -> None:
        """Remove the record, the last of what is kept of a worktree."""
        with failing("remove the record of a worktree", self.file):
            for kind in (_INDEX, f"{_INDEX}.lock", _BESIDE, _RECORD):
                grounds.drop_file(self.folder, f"{self.path.name}{kind}")


def _unreadable(file: Path) -> GitError:
    return GitError(
        "is not a readable record of a worktree, so nothing is removed for it",
        file=str(file),
        next="move it away; a worktree that it was for stays as it is",
    )


def _read(data: bytes | None, file: Path) -> WorktreeRecord | None:
    if data is None:
        return None
    try:
        facts: dict[str, Any] = json.loads(data)
        # Linked worktrees had one.
        facts.pop("token", None)
        record = WorktreeRecord(**{key: _plain_value(key, value) for key, value in facts.items()})
        sound = (
            record.state in ("making", "ready", "removing")
            and _COMMIT.fullmatch(record.commit)
            and _ID.fullmatch(record.id)
            and os.path.isabs(record.path)
            and Path(record.path).name not in ("", ".", "..")
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        sound = None
    if not sound:
        raise _unreadable(file)
    return record


def _plain_value(key: str, value: Any) -> Any:
    if key in ("made", "admin"):
        return None if value is None else Identity(*map(int, value))
    if key == "born":
        return None if value is None else int(value)
    if key in ("linked", "notes"):
        return tuple(str(word) for word in value)
    if not isinstance(value, bool if key == "mending" else str):
        raise TypeError(key)
    return value


def peek(common: Path, path: Path) -> WorktreeRecord | None:
    """Return the record of the worktree at `path` without holding it; None if it is not ours."""
    file = file_of(common, path)
    return _read(grounds.read_file(file.parent, file.name), file)


def read_beside(common: Path, path: Path) -> bytes | None:
    file = file_of(common, path, _BESIDE)
    return grounds.read_file(file.parent, file.name)


@contextmanager
def held(common: Path, path: Path, patience: float = PATIENCE_S) -> Iterator[Journal]:
    """The record of the worktree at `path`, alone. BusyError if another has it for `patience` seconds."""
    file = file_of(common, path, _LOCK)
    with grounds.private(common, *_names(common, path.parent)) as folder:
        descriptor = _hold(folder, file, path, patience)
        try:
            yield Journal(common, path, folder, descriptor)
        finally:
            try:
                # Under the lock: a waiting process checks that it is still the file of that name.
                grounds.drop_file(folder, file.name)
            finally:
                os.close(descriptor)


def _hold(folder: int, file: Path, path: Path, patience: float) -> int:
    deadline = time.monotonic() + patience
    while True:
        with failing("lock the record of a worktree", file):
            descriptor = opener.descriptor(file.name, os.O_RDWR | os.O_CREAT, at=folder)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if removal.identity_at(folder, file.name) == removal.identity_of(os.fstat(descriptor)):
                    return descriptor
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


def _plain(path: Path) -> str:
    if path.name in ("", ".", ".."):
        raise GitError(f"{str(path)!r} names no worktree", file=str(path), next="report this")
    return path.name
