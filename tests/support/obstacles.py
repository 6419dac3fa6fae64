"""What a training, a clone or another program may leave in place of a file."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path


def _socket(path: Path) -> None:
    """A name in a socket is at most 108 bytes long, a path here may be longer."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _huge(path: Path) -> None:
    """Larger than any memory, and nothing on the disk."""
    path.touch()
    os.truncate(path, 1 << 40)


OTHER_KINDS: dict[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "socket": _socket,
}
OBSTACLES = {**OTHER_KINDS, "huge": _huge}
