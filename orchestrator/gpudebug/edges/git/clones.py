"""The repository of its own that a worktree has, for those who work in it: as `git clone --shared` makes one.

It borrows the user's objects and settings, and nothing that is done in it reaches the user's repository. It
lies in the worktree, where any training may write: once it is made, gpudebug does not ask it again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpudebug.edges import opener, removal
from gpudebug.edges.git import grounds
from gpudebug.edges.git.address import Address, finish, looked, start
from gpudebug.edges.git.repository import Repository

_GIT = ".git"
# What git reads of its folder beside settings and objects; a missing file is no matter.
_COPIED = ("shallow", "info/exclude", "info/attributes")
_PLAIN = ("-c", "init.defaultRefFormat=files", "-c", "core.logAllRefUpdates=false")
# Programs ask for the version by these.
_NAMES = ("--format=%(objectname) %(refname)", "refs/heads", "refs/tags", "refs/remotes")
# Of a repository of ten million files.
_LARGEST_INDEX = 2 << 30
_POINTER = b"version https://git-lfs.github.com/spec/"
_NAMED = 3


def _own(at: Address) -> Address:
    """Where git works by the worktree's own repository: with the index that gpudebug looks at it by."""
    return replace(at, git_dir=Path(_GIT))


def make(at: Address, commit: str) -> None:
    """Make the repository of the worktree at `at`, which has none, with `commit` checked out by its HEAD."""
    own = replace(_own(at), index=None)
    kind = "sha256" if len(commit) == 64 else "sha1"
    _do(own, "init", "--quiet", "--template=", f"--object-format={kind}")
    _do(own, "config", "include.path", _way(at, "config"))
    _borrow(at)
    with _opened(at) as folder:
        grounds.write_file(folder, "packed-refs", finish(start(at, "for-each-ref", *_NAMES), at.top))
        os.mkdir("info", dir_fd=folder)
    for name in _COPIED:
        if (at.common / name).is_file():
            with _opened(at, *name.split("/")[:-1]) as folder:
                data = opener.read_file(at.common / name, follow=True)
                grounds.write_file(folder, name.rpartition("/")[2], data)
    _do(own, "update-ref", "--no-deref", "HEAD", commit)


def _borrow(at: Address, *more: bytes) -> None:
    """Let it have the user's objects; `more` names them once more, as git-lfs follows no relative path."""
    lines = (os.fsencode(_way(at, "objects", "objects")), *(path for path in more if b"\n" not in path))
    with _opened(at, "objects", "info") as folder:
        grounds.replace_file(folder, "alternates", b"\n".join(lines) + b"\n")


def give_index(at: Address) -> None:
    """Let it begin with the files as gpudebug checked them out."""
    assert at.index is not None
    with _opened(at) as folder:
        grounds.write_file(folder, "index", opener.read_file(at.index, _LARGEST_INDEX))


def is_there(inside: int) -> bool:
    """Tell whether a worktree, open as `inside`, has a repository of its own. What is in it is its user's."""
    try:
        return stat.S_ISDIR(os.stat(_GIT, dir_fd=inside, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def drop(inside: int) -> None:
    """Take away what is in its place."""
    found = removal.identity_at(inside, _GIT)
    if found is not None:
        (removal.remove_folder if is_there(inside) else removal.remove_file)(inside, _GIT, found)


def _do(own: Address, *arguments: str) -> None:
    finish(start(own, *_PLAIN, *arguments), own.top)


def _way(at: Address, name: str, *start_at: str) -> str:
    """Return the way from the worktree's repository to the user's: it stays in one that moves as a whole."""
    begin = os.path.join(os.path.realpath(at.top), _GIT, *start_at)
    return os.path.relpath(os.path.join(os.path.realpath(at.common), name), begin)


@contextmanager
def _opened(at: Address, *names: str) -> Iterator[int]:
    with grounds.failing("make a git repository", at.top), removal.folder(at.place, _GIT, *names) as folder:
        yield folder


def fetch_stored(inside: Repository) -> list[str]:
    """Replace pointers of Git LFS in a new worktree by the contents that are kept here; notes on the others.

    Nothing is downloaded.
    """
    if inside.ask("config", "--get-regexp", r"^filter\.lfs\.(smudge|process)$").status:
        return []
    magic = inside.with_variables(GIT_LITERAL_PATHSPECS="0")
    paths = magic.names("ls-files", "-z", "--", ":(attr:filter=lfs)")
    if not paths:
        return []
    own = _own(inside.at)
    kept = os.fsdecode(looked(inside.at, "config", "lfs.storage") or b"lfs\n").removesuffix("\n")
    _do(replace(own, index=None), "config", "lfs.storage", _way(inside.at, kept))
    _borrow(inside.at, os.fsencode(inside.common / "objects"))
    if not any(_is_pointer(inside, path) for path in paths):
        return []
    # It reads the local store only; where it fails, the pointers that stay are named.
    Repository(own, extra={"GIT_LITERAL_PATHSPECS": "0"}).ask("lfs", "checkout")
    left = [os.fsdecode(path) for path in paths if _is_pointer(inside, path)]
    if not left:
        return []
    shown = ", ".join(left[:_NAMED]) + (f" and {len(left) - _NAMED} more" if len(left) > _NAMED else "")
    return [f"git-lfs has only pointers of {shown}: git lfs pull fetches the contents"]


def _is_pointer(inside: Repository, path: bytes) -> bool:
    try:
        with opener.opened(inside.at.place / os.fsdecode(path)) as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False
