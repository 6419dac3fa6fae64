"""Which untracked files come along: under limits, by their names. What stays out has a reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

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
