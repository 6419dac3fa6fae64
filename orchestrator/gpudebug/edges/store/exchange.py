"""A folder of files that is written beside and put in place at once: all of it, or what was there before."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from gpudebug.core.errors import StoreError
from gpudebug.edges import opener, removal, temporary
from gpudebug.edges.opener import os_error, saying
from gpudebug.edges.removal import Identity, identity_of
from gpudebug.edges.store.files import in_git

_HEAD = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANOTHER = "name another folder with -o"

IsOurs = Callable[[str, bytes], bool]


def replace_folder(path: Path, files: Mapping[str, bytes], *, is_ours: IsOurs) -> None:
    """Make `path` a folder of exactly these files, by name. StoreError leaves it as it is.

    Refused: a link, a folder below .git, anything in it that is not `is_ours` by its name and the beginning
    of its bytes. Between the two renames that put it in place nothing is there; half a folder never is.
    """
    refuse_foreign(path, is_ours)
    with saying(path, "cannot write; it is unchanged"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with removal.folder(path.parent.resolve()) as parent:
            _sweep(parent, is_ours)
            with temporary.new_folder(parent) as made:
                for name, data in files.items():
                    temporary.write(made.fd, name, data, 0o644)
                os.fchmod(made.fd, 0o755)
                try:
                    _put_in_place(parent, made, path, is_ours)
                except BaseException:
                    with suppress(OSError, removal.NotOurs):
                        removal.remove_folder(parent, made.name, made.identity)
                    raise
            temporary.confirm(parent)


def _put_in_place(parent: int, made: temporary.Made, path: Path, is_ours: IsOurs) -> None:
    """Give the folder `made` the name of `path`; what has it goes only as far as it was looked at."""
    try:
        fd = os.open(path.name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        removal.move_folder(parent, made.name, path.name, made.identity)
        return
    try:
        old = identity_of(os.fstat(fd))
        _looked_at(fd, path, is_ours)
        aside = temporary.name_of(old)
        removal.move_folder(parent, path.name, aside, old)
        try:
            # Once more, now that it is not found by its name.
            known = _looked_at(fd, path, is_ours)
            removal.move_folder(parent, made.name, path.name, made.identity)
        except BaseException:
            removal.move_folder(parent, aside, path.name, old)
            raise
        _discard(parent, aside, fd, known, path)
    finally:
        os.close(fd)


def _discard(parent: int, name: str, fd: int, known: Mapping[str, Identity], path: Path) -> None:
    """Remove a folder that was looked at, file by file: what came since then stays, and is named."""
    for file, identity in known.items():
        removal.remove_file(fd, file, identity)
    if not removal.remove_empty(parent, name) and os.listdir(fd):
        raise StoreError(
            "was replaced; what was written into the old folder meanwhile was kept",
            file=str(path.with_name(name)),
            next="look through it and move it where it belongs",
        )


def _looked_at(fd: int, path: Path, is_ours: IsOurs) -> dict[str, Identity]:
    """Return all that the open folder holds; StoreError at what is not an export's."""
    return {name: _identity(fd, name, path, is_ours) for name in sorted(os.listdir(fd))}


def _identity(fd: int, name: str, path: Path, is_ours: IsOurs) -> Identity:
    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISREG(status.st_mode):
        with opener.opened(name, at=fd) as file:
            same = identity_of(os.fstat(file.fileno())) == identity_of(status)
            if same and is_ours(name, opener.read(file, _HEAD)):
                return identity_of(status)
    raise StoreError(f"holds {name}, which is not of an export", file=str(path), next=_ANOTHER)


def refuse_foreign(path: Path, is_ours: IsOurs) -> None:
    """Refuse a place whose content is not ours to replace."""
    where = str(path)
    if path.is_symlink():
        raise StoreError("is a link", file=where, next=_ANOTHER)
    if ".git" in path.absolute().parts or in_git(path.resolve()):
        raise StoreError("lies inside of .git", file=where, next=_ANOTHER)
    try:
        fd = os.open(path, _FOLDER)
    except FileNotFoundError:
        return
    except OSError as e:
        raise os_error(e, path, "cannot write there") from None
    try:
        with saying(path, "cannot write there"):
            _looked_at(fd, path, is_ours)
    finally:
        os.close(fd)


def _sweep(parent: int, is_ours: IsOurs) -> None:
    """Remove the folders that a killed export left in the open folder `parent`, with nothing else in them."""
    temporary.sweep(parent)
    for found in temporary.left(parent):
        if not stat.S_ISDIR(os.fstat(found.fd).st_mode):
            continue
        temporary.sweep(found.fd)
        with suppress(StoreError, OSError):
            path = Path(found.name)
            for name, identity in _looked_at(found.fd, path, is_ours).items():
                removal.remove_file(found.fd, name, identity)
            removal.remove_empty(parent, found.name)
