"""Where a campaign lies: the folder of its gpudebug.yaml, the names in it, and its private folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gpudebug.core.errors import StoreError
from gpudebug.core.text.values import short_digest
from gpudebug.edges import opener

CONFIG = "gpudebug.yaml"
RUNS = "runs"
WORKTREES = (RUNS, "worktrees")
ELEMENTS = (RUNS, ".array")
"""Where the elements of job arrays keep theirs: a folder each, named by the number before its first run's."""
PRIVATE = "gpudebug"
"""The folder of gpudebug's in git's, where its records lie too."""
_FOLDERS = "folders"
_NAMES = 1 << 16
RUN_NAME = re.compile(r"[0-9]{4,7}-[a-z]")
"""Trainers keep folders of theirs in runs/, too: `20261129-resnet`, or a UUID that begins with digits."""
_ELEMENT = re.compile(r"[0-9]{4,9}", re.ASCII)


def find_root(start: Path) -> Path | None:
    """Return the nearest folder at or above `start` that holds gpudebug.yaml.

    Inside one of a campaign's worktrees it is the folder of that campaign, not its copy there.
    """
    start = start.resolve()
    above = (start, *start.parents)
    owners = (d.parents[1] for d in above if d.parts[-2:] == WORKTREES)
    outermost = [d for d in owners if os.path.lexists(d / CONFIG)]
    if outermost:
        return outermost[-1]
    return next((d for d in above if os.path.lexists(d / CONFIG)), None)


def find_element(start: Path) -> tuple[Path, str] | None:
    """The campaign's folder and the name of the array element whose folder `start` is in; None outside.

    By the words of the path: `runs` may be a link to another disk.
    """
    for folder in (start, *start.parents):
        if folder.parent.parts[-2:] == ELEMENTS and _ELEMENT.fullmatch(folder.name):
            root = folder.parents[2]
            return (root, folder.name) if os.path.lexists(root / CONFIG) else None
    return None


def private_folder(root: Path) -> Path:
    """Return where gpudebug keeps what it believes of the campaigns at `root` besides their runs.

    It lies in git's common folder, where nothing lies that a clone brings: what has the same name in runs/
    counts for nothing. Without a repository, where nothing can be brought, it is in runs/. StoreError if the
    folder of gpudebug's in git's is another user's.
    """
    for top in (root, *root.parents):
        common = _common(top / ".git")
        if common is not None:
            private = common / PRIVATE
            _refuse_others(private)
            return private / _FOLDERS / place_name(root, top, common)
    return root / RUNS / f".{PRIVATE}"


def place_name(root: Path, top: Path, common: Path) -> str:
    """Return a name for the campaigns at `root` among those of a repository.

    Linked worktrees share git's common folder: each has campaigns of its own.
    """
    name = _short(os.path.relpath(root, top))
    return name if common == top / ".git" else f"{name}-{_short(str(top))}"


def _short(path: str) -> str:
    return short_digest(os.fsencode(path))[:8]


def _common(entry: Path) -> Path | None:
    """Return git's common folder by the `.git` of a work tree; None if that is no repository."""
    try:
        if entry.is_file():
            named = opener.read_file(entry, _NAMES, follow=True).removeprefix(b"gitdir:").strip()
            entry = Path(os.path.realpath(entry.parent / os.fsdecode(named)))
        shared = entry / "commondir"
        common = entry
        if shared.is_file():
            common = Path(os.path.realpath(entry / os.fsdecode(opener.read_file(shared, _NAMES).strip())))
        return common if (common / "objects").is_dir() and os.path.lexists(entry / "HEAD") else None
    except (OSError, StoreError, ValueError):
        return None


def _refuse_others(folder: Path) -> None:
    try:
        owner = os.lstat(folder).st_uid
    except OSError:
        return
    if owner not in (os.geteuid(), 0) and os.geteuid() != 0:
        raise StoreError("belongs to another user", file=str(folder), next="see whose it is")
