"""What earlier commands left: temporaries of killed writers, and removal of what was looked at before."""

from __future__ import annotations

import stat
from pathlib import Path

from gpudebug.edges import removal, temporary
from gpudebug.edges.opener import saying
from gpudebug.edges.store.files import opened_folder


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
