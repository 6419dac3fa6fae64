"""Indexes of gpudebug's own for a command or two, in its folder in git's: a kill leaves none elsewhere."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpudebug.edges import removal
from gpudebug.edges.git import grounds
from gpudebug.edges.git.grounds import PRIVATE, alone, failing
from gpudebug.edges.host import boot_id

_PLACE = "indexes"
_NO_BOOT = "unknown"
# On NFS another host's lock cannot be seen: what it made is left alone for longer than a command takes.
_OTHERS_S = 3600.0


@contextmanager
def temporary(common: Path) -> Iterator[Path]:
    """The path of an index that is gone afterwards, and with it those that kills left: their lock is free."""
    place = common / PRIVATE / _PLACE
    with grounds.private(common, _PLACE) as parent:
        name = f"{boot_id() or _NO_BOOT}.{secrets.token_hex(8)}"
        with failing("make a temporary index", place), alone(common):
            os.mkdir(name, 0o700, dir_fd=parent)
            with removal.folder(place, name) as made:
                kept = _locked(made)
            _sweep(parent, place)
        try:
            yield place / name / "index"
        finally:
            with failing("remove a temporary index", place):
                _remove(parent, name)
            os.close(kept)


def _locked(folder: int) -> int:
    """A lock in a folder that has just been made: a later holder knows that its process has ended."""
    descriptor = os.dup(folder)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _sweep(parent: int, place: Path) -> None:
    for name in os.listdir(parent):
        with suppress(OSError, removal.NotOurs), removal.folder(place, name) as left:
            boot = name.rpartition(".")[0]
            elsewhere = boot not in ("", boot_id() or _NO_BOOT)
            if elsewhere and time.time() - os.fstat(left).st_mtime < _OTHERS_S:
                continue
            try:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as e:
                # One that is held is at work; without locks it is unknown.
                if e.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOLCK, errno.ENOTSUP):
                    continue
                raise
            _remove(parent, name)


def _remove(parent: int, name: str) -> None:
    found = removal.identity_at(parent, name)
    if found is not None:
        removal.remove_folder(parent, name, found)
