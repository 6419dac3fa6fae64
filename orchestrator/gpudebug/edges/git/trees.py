"""A tree object of what lies in a work tree, made through an index of its own.

Which untracked files come along is by limits and by their names. What stays out has a reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.errors import GitError
from gpudebug.edges.git.repository import Repository


def listed(names: Iterable[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


def refuse_unmerged(repository: Repository) -> None:
    """A conflict's markers are not code: it would be unknown what was measured."""
    found = repository.names("ls-files", "--unmerged", "-z")
    if found:
        path = os.fsdecode(found[0].partition(b"\t")[2])
        raise GitError(
            "has an unresolved merge conflict",
            file=str(repository.top / path),
            next="resolve it, or git merge --abort",
        )


def tree_as_it_lies(index: Repository, *, left: Callable[[bytes], bool]) -> tuple[str, list[LeftOut]]:
    """Update `index` to the files as they are; the tree, and what stays out of it.

    Untracked paths for which `left` is true stay out unnamed.
    """
    _look_at_all(index)
    index.run("add", "--update", *index.sparse_too)
    others = index.names("ls-files", "-z", "--others", "--exclude-standard")
    taken, left_out = chosen(index.at.place, [name for name in others if not left(name)])
    index.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", data=listed(taken))
    return index.line("write-tree"), left_out


def _look_at_all(index: Repository) -> None:
    """Take the marks off the files that git is set not to look at, if they exist: they are what runs."""
    lines = [line.partition(b" ") for line in index.names("ls-files", "-z", "-v")]
    marked = [(tag, path) for tag, _, path in lines if tag == b"S" or tag.islower()]
    there = [(tag, path) for tag, path in marked if os.path.lexists(index.at.place / os.fsdecode(path))]
    for flag, tags in (("--no-assume-unchanged", b"hs"), ("--no-skip-worktree", b"Ss")):
        names = [path for tag, path in there if tag in tags]
        if names:
            index.run("update-index", flag, "-z", "--stdin", data=listed(names))


def gitlinks(repository: Repository, commit: str) -> list[tuple[bytes, bytes]]:
    """Return the submodules of a commit: path and the pinned commit."""
    entries = repository.names("ls-tree", "-r", "-z", commit)
    split = [entry.partition(b"\t") for entry in entries if entry.startswith(b"160000 ")]
    return [(path, head.split(b" ")[2]) for head, _, path in split]


def relative(top: Path, paths: Iterable[Path]) -> list[str]:
    """`paths` relative to the top, those outside of it left out."""
    absolute = [path if path.is_absolute() else top / path for path in paths]
    return [str(path.relative_to(top)) for path in absolute if path != top and path.is_relative_to(top)]


def within(prefixes: Iterable[str]) -> Callable[[bytes], bool]:
    """Return a predicate: is a path one of `prefixes` or below one?"""
    encoded = [os.fsencode(prefix) for prefix in prefixes]
    return lambda path: any(path.rstrip(b"/") == p or path.startswith(p + b"/") for p in encoded)


# Code and configuration fit easily; what is larger is data, which worktree.link is for.
MAX_FILE = 2**20
MAX_TOTAL = 50 * 2**20
MAX_FILES = 10_000
NAMED = 100

_SECRET = (
    *(".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.ppk"),
    *("*.keystore", "*.kdbx", "*.ovpn", "id_rsa*", "id_ed25519*", "id_ecdsa*", "id_dsa*"),
    *(".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", ".my.cnf"),
    *(".dockercfg", "kubeconfig", "*credential*", "*secret*", "*password*", "*passwd*"),
    *("service_account*.json", "service-account*.json", "token", "tokens", "*.token", "*.tokens"),
    *("token.*", "*_token", "*-token", "*_token.*", "*-token.*", "*api_key*", "*api-key*", "*apikey*"),
    *("*private_key*", "*private-key*"),
)
# Examples to copy from hold no secret.
_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")
_SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".azure", ".gcloud", ".docker", "secrets"})


class LeftOut(NamedTuple):
    """A path of the checkout or worktree that is in no commit of ours, and the reason."""

    path: str
    why: str


def secret_named(path: str) -> bool:
    """Tell whether a file's name, or a folder above it, says that it holds a secret."""
    *folders, name = path.lower().split("/")
    if name in _HARMLESS:
        return False
    # A module about passwords or tokens is code: its secrets would be tracked ones.
    if name.endswith((".py", ".pyi", ".md", ".rst")):
        return not _SECRET_FOLDERS.isdisjoint(folders)
    return any(fnmatchcase(name, shape) for shape in _SECRET) or not _SECRET_FOLDERS.isdisjoint(folders)


def chosen(top: Path, names: Iterable[bytes]) -> tuple[list[bytes], list[LeftOut]]:
    """Of untracked paths, as git lists them, those that come along, the smallest first; and the others."""
    left: list[LeftOut] = []
    sized: list[tuple[int, bytes]] = []
    for name in names:
        size, why = _judged(top, name)
        if why is not None:
            left.append(LeftOut(os.fsdecode(name), why))
        elif size is not None:
            sized.append((size, name))
    taken: list[bytes] = []
    total = 0
    for size, name in sorted(sized):
        total += size
        if total > MAX_TOTAL:
            left.append(LeftOut(os.fsdecode(name), "over 50 MB of untracked files in all"))
        elif len(taken) == MAX_FILES:
            left.append(LeftOut(os.fsdecode(name), f"over {MAX_FILES:,} untracked files in all"))
        else:
            taken.append(name)
    return taken, sorted(left)


def _judged(top: Path, name: bytes) -> tuple[int | None, str | None]:
    """Return the size of a file that may come along, or why it may not; neither where it is gone."""
    path = os.fsdecode(name)
    if path.endswith("/"):
        return None, "a git repository of its own"
    if secret_named(path):
        return None, "by its name it holds a secret"
    try:
        found = os.lstat(top / path)
    except FileNotFoundError:
        return None, None
    except OSError as e:
        return None, f"cannot be read: {e.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return found.st_size, None if _stays(
            path, os.readlink(top / path)
        ) else "a link out of the repository"
    if not stat.S_ISREG(found.st_mode):
        return None, "no regular file"
    if found.st_size > MAX_FILE:
        return None, f"larger than 1 MB ({found.st_size / 2**20:.1f} MB)"
    return found.st_size, None if os.access(top / path, os.R_OK) else "cannot be read: no permission"


def _stays(path: str, target: str) -> bool:
    """Tell whether a link means the same from a worktree: absolute, or relative and inside."""
    if os.path.isabs(target):
        return True
    joined = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return joined != ".." and not joined.startswith("../")


def capped(left: list[LeftOut]) -> tuple[LeftOut, ...]:
    """At most NAMED of them and one that counts the others."""
    if len(left) <= NAMED:
        return tuple(left)
    rest = len(left) - NAMED
    return (*left[:NAMED], LeftOut("…", f"{rest:,} more paths"))
