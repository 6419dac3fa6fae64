"""Folders that are deeper than paths can name and than recursion goes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpudebug.edges import removal


@contextmanager
def deep_folders(top: Path, count: int = 3000) -> Iterator[None]:
    """`count` nested folders in `top` for the block: what clears up after the tests could not remove them."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    try:
        yield
    finally:
        with removal.folder(top) as folder:
            removal.remove_folder(folder, "d", removal.made_at(folder, "d"))
