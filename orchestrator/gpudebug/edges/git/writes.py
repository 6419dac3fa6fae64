"""Whether a counted file was written between two looks, even if its content is the same again."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudebug.edges import opener
from gpudebug.edges.git.checkout import Checkout

MOST_UNCOUNTED = 200
LARGEST = 5 << 20
# The kernel stamps files with the time of its last tick.
_TICK_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class FileMarks:
    """Size, time of modification and time of change (ns) of each counted file that existed.

    The time of change cannot be set back, and a file that was moved away and back has another one. Inodes
    are left out: some file systems make them up again. `at` is when it was looked, in ns since the epoch.
    """

    top: Path
    at: int
    files: Mapping[bytes, tuple[int, int, int] | None]


def marks(checkout: Checkout) -> FileMarks:
    """Return how the counted files of a checkout look now: one lstat each."""
    # First: what is written meanwhile is newer.
    at = time.time_ns()
    return FileMarks(checkout.top, at, _looked(checkout.top, checkout.files))


def written_since(before: FileMarks) -> list[str]:
    """The files that were written since. Ask for their content before: what was put back by then is here."""
    now = _looked(before.top, before.files.keys())
    return sorted(os.fsdecode(path) for path, seen in before.files.items() if now[path] != seen)


def uncounted(before: FileMarks, paths: Iterable[str]) -> dict[str, str]:
    """Of files below the top those that are no counted part of the code, or are gone: what each holds.

    That is a digest; of a large file its size and time of change. `written` says that it was written since.
    """
    found = sorted(path for path in set(paths) if not _counts(before, path))
    held = {path: _held(before, path) for path in found[:MOST_UNCOUNTED]}
    more = len(found) - len(held)
    return {**held, f"{more} more files": "not named"} if more > 0 else held


def _counts(before: FileMarks, path: str) -> bool:
    """Tell whether a path, or what it leads to inside of the top, is a counted file that is there."""
    return any(before.files.get(os.fsencode(name)) for name in _names(before.top, path)) and os.path.exists(
        before.top / path
    )


def _names(top: Path, path: str) -> Iterator[str]:
    yield path
    yield os.path.relpath(os.path.realpath(top / path), os.path.realpath(top))


def _held(before: FileMarks, path: str) -> str:
    try:
        file = opener.opened(before.top / path, follow=True)
    except opener.NotRegular:
        return "no file"
    except OSError:
        return "gone"
    with file:
        found = os.fstat(file.fileno())
        if found.st_size > LARGEST:
            held = f"{found.st_size} bytes of {found.st_ctime_ns}"
        else:
            held = hashlib.sha256(opener.read(file, LARGEST + 1)).hexdigest()
    return f"{held} written" if found.st_ctime_ns > before.at - _TICK_NS else held


def _looked(top: Path, paths: Collection[bytes]) -> dict[bytes, tuple[int, int, int] | None]:
    folder = os.open(top, os.O_PATH | os.O_DIRECTORY)
    try:
        return {path: _look(folder, path) for path in paths}
    finally:
        os.close(folder)


def _look(folder: int, path: bytes) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path, dir_fd=folder)
    except OSError:
        return None
    # In place of a submodule there is a folder: writing beside its files is no change of them.
    if stat.S_ISDIR(found.st_mode):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
