"""Files that a user names for gpudebug to write: recognised by their content, never another's."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from gpudebug.core.errors import GpudebugError, StoreError
from gpudebug.core.samples.row import HEADER
from gpudebug.edges import store

TEXT_MARK = "Written by gpudebug analyze"
JSON_MARK = "gpudebug analyze"
_PART = 4096
_RUN = re.compile(r"[0-9]{4,9}-")
_PAGE = re.compile(rb'<meta name="generator" content="gpudebug ')
_ENTRY = re.compile(rb"^#{2,4}[ \t]*[*_]*(hypothesis[ \t]+\d|baseline[ \t:*_-])", re.I | re.M)
_ANOTHER = "name another file"

Ours = Callable[[bytes, bytes], bool]
"""Whether a file is one that gpudebug wrote, by its first and last bytes."""


def is_page(head: bytes, tail: bytes) -> bool:
    return _PAGE.search(head) is not None


def is_picture(head: bytes, tail: bytes) -> bool:
    return head.startswith(b"\x89PNG") and b"Software\0gpudebug" in head


def is_text(head: bytes, tail: bytes) -> bool:
    return tail.endswith(f"\n{TEXT_MARK}\n".encode())


def is_document(head: bytes, tail: bytes) -> bool:
    return head.startswith(f'{{\n "written_by": "{JSON_MARK}"'.encode())


def is_samples(head: bytes, tail: bytes) -> bool:
    return head.startswith(HEADER.encode())


def refuse(path: Path, ours: Ours, *, force: bool) -> None:
    """StoreError if `path` is a campaign's own, in git's folder, or, without `force`, another program's file.

    A missing or empty file is free. With `force` NotAPerson for another program's file, but to a person.
    """
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # RuntimeError up to Python 3.12
        raise StoreError("links lead in a circle", file=str(path), next="remove the link") from None
    refuse_campaigns_own(path, target)
    if not target.is_file() or target.stat().st_size == 0:
        return
    if _ENTRY.search(store.read_head(target, 1 << 20)):
        raise StoreError("is a progress file", file=str(path), next=_ANOTHER)
    if ours(store.read_head(target, _PART), store.read_tail(target, _PART)):
        return
    if not force:
        raise StoreError(
            "is not a file that gpudebug wrote; it is unchanged",
            file=str(path),
            next="name another file, or add --force to replace it",
        )
    if sys.platform == "linux":  # elsewhere there is no /proc that would tell who calls
        from gpudebug.engine.campaign.session import persons_only

        persons_only(f"replacing {path.name}, which gpudebug did not write,", _ANOTHER)


def refuse_campaigns_own(path: Path, target: Path) -> None:
    """StoreError if `target`, to which `path` leads, is evidence, settings, in a worktree or in .git."""
    run = next((p for p in target.parents if _is_run(p)), None)
    if run is not None:
        raise StoreError(
            f"is in the run folder {run.name}, whose manifest it would break", file=str(path), next=_ANOTHER
        )
    if store.in_git(target) or any(p.parts[-2:] == ("runs", "worktrees") for p in target.parents):
        raise StoreError("is in a worktree or in .git", file=str(path), next=_ANOTHER)
    if target.name.lower() == store.CONFIG:
        raise StoreError("is the settings of a campaign", file=str(path), next=_ANOTHER)
    if target == _progress_of(target.parent):
        raise StoreError("is a progress file", file=str(path), next=_ANOTHER)


def _is_run(folder: Path) -> bool:
    if not _RUN.match(folder.name):
        # `gpudebug-why-1`, or a run that was moved: it is sealed whatever its name is.
        return (folder / "run.json").is_file() and (folder / "manifest.json").is_file()
    return (folder / "run.json").exists() or (folder.parents[1] / store.CONFIG).exists()


def _progress_of(folder: Path) -> Path | None:
    """The progress file of the campaign at or above a folder; None if there is none that can be read."""
    from gpudebug.engine.campaign.files import progress_path, read_config

    root = store.find_root(folder)
    if root is None:
        return None
    workspace = store.Workspace(root)
    try:
        return progress_path(workspace, read_config(workspace)).resolve()
    except (GpudebugError, OSError, RuntimeError):
        return None
