"""Folders of any depth, walked through: `os.walk` recurses up to Python 3.11."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path


def walk(
    start: str | Path, onerror: Callable[[OSError], None] = lambda e: None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each folder from `start` down, with the names of its folders and of all else; links are not followed.

    As `os.walk` from the top down: of the folders those are walked that the caller leaves in the list, in its
    order, and what cannot be listed is handed to `onerror`.
    """
    left = [os.fspath(start)]
    while left:
        place = left.pop()
        folders: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else names).append(entry.name)
        except OSError as e:
            onerror(e)
            continue
        yield place, folders, names
        below = (os.path.join(place, name) for name in reversed(folders))
        left += [path for path in below if not os.path.islink(path)]


def files_below(
    folder: Path, *, deepest: int, most_folders: int, enter: Callable[[Path], bool] = lambda path: True
) -> Iterator[Path]:
    """Yield what is no folder in it and in those below that `enter` allows, the highest first, by name.

    Links are passed over, and so are folders that cannot be listed. `deepest` counts folders below it.
    """
    pending, visited = [(folder, 0)], 0
    while pending and visited < most_folders:
        here, depth = pending.pop(0)
        visited += 1
        try:
            with os.scandir(here) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = here / entry.name
            if entry.is_symlink():
                continue
            if not _is_folder(entry):
                yield path
            elif depth < deepest and enter(path):
                pending.append((path, depth + 1))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Tell whether it is a folder or a link to one; not what cannot be looked at."""
    try:
        return entry.is_dir()
    except OSError:
        return False
