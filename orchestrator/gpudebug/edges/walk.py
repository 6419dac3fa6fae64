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


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or a link to one; not what cannot be looked at."""
    try:
        return entry.is_dir()
    except OSError:
        return False
