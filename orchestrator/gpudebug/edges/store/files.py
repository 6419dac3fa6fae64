"""Files read and replaced safely: regular ones only, at once, durably, never over another save."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpudebug.core.errors import StoreError
from gpudebug.edges import opener, removal, temporary
from gpudebug.edges.opener import file_digest, os_error, read_file, saying
from gpudebug.edges.store.root import RUNS


class SavedInBetween(StoreError):
    """The file was saved between our reading and our writing; nothing was overwritten."""


def start_file(path: Path) -> None:
    """Make an empty file for a run's output, mode 0600; an older one of that name is emptied.

    A link is refused: its target need not be gpudebug's.
    """
    with saying(path, "cannot write"):
        os.close(opener.descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))


def check_output(path: Path, *, make_folder: bool = False) -> None:
    """StoreError if `put_file` could not write: to be asked before the work that yields the content.

    With `make_folder` its folder may be missing: one above it must let it be made.
    """
    try:
        target = path.resolve()
        folder = target.parent
        if make_folder:
            folder = next(p for p in target.parents if os.path.lexists(p))
        if not folder.is_dir():
            if os.path.lexists(folder):
                raise StoreError(
                    f"{folder.name} is a file, not a folder", file=str(path), next="name another place"
                )
            raise StoreError("its folder is missing", file=str(path), next=f"mkdir -p {folder}")
        status = target.stat() if target.exists() else None
    except RuntimeError:  # up to Python 3.12
        raise StoreError("links lead in a circle", file=str(path), next="remove the link") from None
    except OSError as e:
        raise os_error(e, path, "cannot write") from None
    if status and not stat.S_ISREG(status.st_mode):
        what = "is a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise StoreError(what, file=str(path), next="name another file")
    place = target if status else folder
    if not os.access(place, os.W_OK):
        frozen = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
        raise os_error(OSError(errno.EROFS if frozen else errno.EACCES, ""), path, "cannot write")


def put_file(path: Path, data: bytes, check: Callable[[], None] = lambda: None) -> None:
    """Write a file that the user named, at once; a regular file of that name is replaced, its mode kept.

    `check` is asked once more when all but the name is there: what it raises leaves the old file.
    """
    check_output(path)
    with saying(path, "cannot write; it is unchanged"):
        target = path.resolve()
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        write_beside(target, data, mode, check)


def copy_into(path: Path, data: bytes) -> None:
    """Write a new file of a run folder, mode 0600."""
    with saying(path, "cannot write"):
        write_beside(path, data, 0o600)


def put_json(path: Path, value: Any) -> None:
    """Write a private JSON file at once."""
    copy_into(path, json.dumps(value).encode("utf-8", "surrogateescape"))


def appeared(path: Path) -> bool:
    """Tell whether something is at `path`, for what another host may have put there this moment.

    An NFS client answers for up to a minute from what it knew of a folder, unless the folder is opened
    (close-to-open consistency, nfs(5)).
    """
    with contextlib.suppress(OSError):
        os.close(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    return os.path.lexists(path)


def get_json(path: Path) -> Any:
    """Return what a private JSON file holds; {} if it is missing, or has no JSON in it."""
    if not os.path.lexists(path):
        return {}
    try:
        return json.loads(read_file(path).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return {}


def digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def resolve_inside(path: Path, root: Path) -> Path:
    """`path` with its links followed; refused where it leaves `root`, leads into git's folder or is no
    regular file."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # RuntimeError up to Python 3.12
        raise StoreError("links lead in a circle", file=str(path), next="remove the link") from None
    if not target.is_relative_to(root.resolve()):
        raise StoreError(
            f"leads out of the repository, to {target}", file=str(path), next="keep it inside the repository"
        )
    if in_git(target):
        raise StoreError(
            f"leads into git's folder, to {target}", file=str(path), next="keep it outside of .git"
        )
    try:
        status = target.stat()
    except FileNotFoundError:
        return target
    except OSError as e:
        raise os_error(e, path, "cannot read") from None
    if not stat.S_ISREG(status.st_mode):
        raise StoreError("not a regular file", file=str(path), next="put a plain file in its place")
    return target


def in_git(target: Path) -> bool:
    """Tell whether a path without links is git's own, or lies in a folder of git's, whatever that is called.

    A work tree may lie in such a folder; what is in the work tree is not git's.
    """
    for place in (target, *target.parents):
        if place.name.lower() == ".git" or all(
            os.path.exists(place / name) for name in ("HEAD", "objects", "refs")
        ):
            return True
        if os.path.lexists(place / ".git"):
            return False
    return False


def replace_file(path: Path, data: bytes, *, root: Path, expected: str | None) -> None:
    """Replace a file at once and durably: readers see the old bytes or the new ones.

    A link is followed and its target replaced beside itself; the mode is kept. `expected` is the digest
    that the file had when it was read, None if it was not there: SavedInBetween where it differs now.
    """
    target = resolve_inside(path, root)

    def check() -> None:
        if (file_digest(target) if target.exists() else None) != expected:
            raise SavedInBetween(
                "was changed in the meantime; nothing was overwritten",
                file=str(path),
                next="run the same command again",
            )

    with saying(path, "cannot write; it is unchanged"):
        check()
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "", str(target))
        write_beside(target, data, mode, check)


def write_beside(
    target: Path, data: bytes, mode: int | None, check: Callable[[], None] = lambda: None
) -> None:
    """Write a file at once and durably, in a folder that is no link. OSError; see `temporary.write`.

    Windows cannot open folders: there it is written in its place.
    """
    if os.open not in os.supports_dir_fd:
        check()
        with os.fdopen(opener.descriptor(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
        return
    with opened_folder(target.parent) as parent:
        temporary.write(parent, target.name, data, mode, check)


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """Open a folder that is not a link; only runs/ may be one: the command that found it looked at it."""
    follow = 0 if path.name == RUNS else os.O_NOFOLLOW
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | follow)
    except OSError as e:
        if e.errno not in (errno.ELOOP, errno.ENOTDIR) or not path.is_symlink():
            raise
        raise StoreError("is a link", file=str(path), next="remove the link") from None
    try:
        yield fd
    finally:
        os.close(fd)


def remove_file(path: Path) -> None:
    """Remove a file of gpudebug's own, if it is there: no folder, and a link itself."""
    with (
        saying(path, "cannot remove"),
        contextlib.suppress(FileNotFoundError),
        opened_folder(path.parent) as fd,
    ):
        made = removal.identity_at(fd, path.name)
        if made is not None:
            removal.remove_file(fd, path.name, made)


def make_folder(path: Path) -> None:
    """A folder that may be there already; in git's folder it and those above are closed to other users."""
    with saying(path, "cannot make the folder"):
        _make_folder(path, 0o700 if in_git(path) else 0o777)


def _make_folder(path: Path, mode: int) -> None:
    if not path.parent.exists():
        _make_folder(path.parent, mode)
    path.mkdir(mode, exist_ok=True)
