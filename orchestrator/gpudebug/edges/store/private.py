"""Small files in a folder that no work tree reaches: opened without following a link, closed to others."""

from __future__ import annotations

import os
from pathlib import Path

from gpudebug.core.errors import StoreError
from gpudebug.edges import opener, removal, temporary
from gpudebug.edges.opener import os_error

LARGEST = 1 << 20


def read_private(anchor: Path, names: tuple[str, ...], name: str) -> bytes | None:
    """Return the file `anchor/names…/name`; None if it is missing.

    StoreError if it, or a folder below `anchor`, is a link or of another kind, another user's or too large.
    """
    path = anchor.joinpath(*names, name)
    try:
        with removal.folder(anchor, *names) as parent, opener.opened(name, at=parent) as file:
            if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
                raise StoreError("belongs to another user", file=str(path), next="move it away")
            data = opener.read(file, LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise os_error(e, path, "cannot read") from None
    if len(data) > LARGEST:
        raise StoreError(f"larger than {LARGEST >> 20} MB", file=str(path), next="move it away")
    return data


def write_private(anchor: Path, names: tuple[str, ...], name: str, data: bytes) -> None:
    """Replace `anchor/names…/name` at once and durably; its folders are made, mode 0700, the file 0600."""
    path = anchor.joinpath(*names, name)
    try:
        _make(anchor, names)
        with removal.folder(anchor, *names) as parent:
            temporary.write(parent, name, data, 0o600)
    except OSError as e:
        raise os_error(e, path, "cannot write") from None


def remove_private(anchor: Path, names: tuple[str, ...], name: str) -> None:
    """Remove the file `anchor/names…/name`, if it is there: no folder, and a link itself."""
    try:
        with removal.folder(anchor, *names) as parent:
            made = removal.identity_at(parent, name)
            if made is not None:
                removal.remove_file(parent, name, made)
    except FileNotFoundError:
        return
    except OSError as e:
        raise os_error(e, anchor.joinpath(*names, name), "cannot remove") from None


def _make(anchor: Path, names: tuple[str, ...]) -> None:
    for count, name in enumerate(names):
        with removal.folder(anchor, *names[:count]) as parent:
            try:
                os.mkdir(name, 0o700, dir_fd=parent)
            except FileExistsError:
                continue
