"""What the writing half hands over: a base, what stayed out of it, a worktree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class LeftOut(NamedTuple):
    """A path of the checkout or worktree that is in no commit of ours, and the reason."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Base:
    """A commit under refs/gpudebug/. `tree` is the label (a digest) that it was made for."""

    commit: str
    tree: str
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree of ours. `linked`: paths in it (relative, posix) that are links to the checkout's."""

    path: Path
    notes: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
