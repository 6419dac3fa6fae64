"""`gpudebug init --agent NAME`: describe gpudebug to a coding agent, in the file that it reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.agents import instructions
from gpudebug.core.agents.instructions import AgentInstructions
from gpudebug.edges import store, templates


class Instruction(NamedTuple):
    """One instruction file to be written: its bytes as they were (None: not there) and as they will be."""

    path: Path
    old: bytes | None
    new: bytes
    note: str | None


def prepare(root: Path, chosen: Iterable[AgentInstructions]) -> list[Instruction]:
    """Return what the files of these agents will hold, one a file; nothing is written yet.

    StoreError if a link leads out of `root`, BrokenMarkers.
    """
    # One may be a link to the other.
    files = {store.resolve_inside(root / a.path, root): a for a in chosen}
    return [_prepare(root, agent) for agent in files.values()]


def _prepare(root: Path, agent: AgentInstructions) -> Instruction:
    path = root / agent.path
    old = store.read_file(path, follow=True) if store.resolve_inside(path, root).exists() else None
    text = templates.render("agents.md.j2")
    return Instruction(path, old, instructions.with_block(old, text, agent.front, str(path)), agent.note)


def write(root: Path, prepared: Iterable[Instruction]) -> list[str]:
    """Return the files that were written; one that says the same already is left alone."""
    written = []
    for path, old, new, _ in prepared:
        if new == old:
            continue
        store.replace_file(path, new, root=root, expected=None if old is None else store.digest(old))
        written.append(str(path))
    return written
