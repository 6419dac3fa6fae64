"""What earlier runs of gpudebug wrote last, of this user: a file in that state is no one's loss.

A line for each state, `SIZE MTIME PATH`, in the user's cache folder; the guard inside a training looks its
own up there. What native code may have written is behind `n `: it is only not named again.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import opener, removal
from gpudebug.edges.store.seen import cache_folder

NATIVE = "n "
LARGEST = 4 << 20
"""Then the older half is left to one other file; the guard reads as much of each."""
_FILE = "written"


def earlier_file() -> Path | None:
    """Return where the states are; None without a cache folder."""
    folder = cache_folder()
    return folder / _FILE if folder is not None else None


def add_earlier(lines: Collection[str]) -> None:
    """Add states; nothing if the cache folder cannot be written to."""
    path = earlier_file()
    data = b"".join(os.fsencode(f"{line}\n") for line in lines)
    if path is None or not data or len(data) > LARGEST:
        return
    with suppress(OSError, GpudebugError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with removal.folder(path.parent) as parent:
            fd = opener.descriptor(_FILE, flags, at=parent)
            try:
                if os.fstat(fd).st_size + len(data) > LARGEST:
                    os.replace(_FILE, f"{_FILE}.1", src_dir_fd=parent, dst_dir_fd=parent)
                    os.close(fd)
                    fd = opener.descriptor(_FILE, flags, at=parent)
                os.write(fd, data)
            finally:
                os.close(fd)


def get_earlier() -> frozenset[str]:
    """Return all states; none if they cannot be read."""
    path, found = earlier_file(), b""
    for each in (path.with_name(f"{_FILE}.1"), path) if path is not None else ():
        with suppress(OSError, GpudebugError):
            found += opener.read_head(each, LARGEST)
    return frozenset(map(os.fsdecode, found.split(b"\n")))
