"""Whether a counted file was written between two looks, even if its content is the same again."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudebug.edges.snapshot.checkout import Checkout


@dataclass(frozen=True, slots=True)
class Marks:
    """Size, time of modification and time of change (ns) of each counted file that existed.

    Nobody can set the time of change back, and a file that was moved away and back has another one. Inodes
    are left out: some file systems make them up anew.
    """

    top: Path
    files: Mapping[bytes, tuple[int, int, int] | None]


def marks(checkout: Checkout) -> Marks:
    """How the counted files of a checkout look now: one lstat each."""
    return Marks(checkout.top, _looked(checkout.top, checkout.files))


def written_since(before: Marks) -> list[str]:
    """The files that were written since. Ask for their content before: what was put back by then is here."""
    now = _looked(before.top, before.files.keys())
    return sorted(os.fsdecode(path) for path, seen in before.files.items() if now[path] != seen)


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
    # What stands in for a submodule is a folder: writing beside its files is no change of them.
    if stat.S_ISDIR(found.st_mode):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
