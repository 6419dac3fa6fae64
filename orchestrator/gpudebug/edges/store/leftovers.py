"""What earlier commands left: temporaries of killed writers and where the system keeps temporary files, and
removal of what was looked at before."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gpudebug.edges import removal, temporary
from gpudebug.edges.opener import saying
from gpudebug.edges.store.files import opened_folder

DEMO = "gpudebug-demo-"
# As tempfile and edges.temporary name them, with the letters that these draw from.
_IN_TMP = re.compile(
    rf"{DEMO}[a-z0-9_]{{8}}|gpudebug-defect-[a-z0-9_]{{8}}\.log"
    r"|gpudebug-(?:campaign|probe|gpu|ask|profiling)-[0-9a-f]{16}"
)


def temporaries(folder: Path) -> list[Path]:
    """Return the temporaries in a folder that killed writers left; none if it cannot be listed."""
    try:
        with opened_folder(folder) as fd:
            return [folder / made.name for made in temporary.left(fd)]
    except OSError:
        return []


def remove(path: Path, made: tuple[int, int]) -> None:
    """Remove the file or folder that was looked at; NotOurs if another one has its name by now."""
    identity = removal.Identity(*made)
    with saying(path, "cannot remove"), opened_folder(path.parent) as folder:
        if removal.identity_at(folder, path.name) is None:
            return
        if stat.S_ISDIR(path.lstat().st_mode):
            removal.remove_folder(folder, path.name, identity)
        else:
            removal.remove_file(folder, path.name, identity)


def remove_as_is(path: Path) -> None:
    """Remove the file or folder that has this name now; nothing if it is missing."""
    with suppress(FileNotFoundError):
        status = path.lstat()
        remove(path, (status.st_dev, status.st_ino))


def remove_empty(root: Path, names: Iterable[str]) -> None:
    """Remove those of these folders below `root` that are empty, in this order."""
    for name in names:
        path = root / name
        with suppress(OSError, removal.NotOurs), opened_folder(path.parent) as folder:
            removal.remove_empty(folder, path.name)


def in_tmp(place: Path) -> list[Path]:
    """Return demos, reports of defects and workplaces of this user that lie among the temporary files."""
    with suppress(OSError):
        entries = [entry for entry in os.scandir(place) if _IN_TMP.fullmatch(entry.name)]
        mine = (e for e in entries if e.stat(follow_symlinks=False).st_uid == os.geteuid())
        return sorted(Path(entry.path) for entry in mine if not entry.is_symlink())
    return []
