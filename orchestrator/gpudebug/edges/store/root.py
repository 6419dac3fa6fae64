"""Where a campaign lies: the folder of its gpudebug.yaml, and the names in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

CONFIG = "gpudebug.yaml"
RUNS = "runs"
WORKTREES = (RUNS, "worktrees")
ELEMENTS = (RUNS, ".array")
"""Where the elements of job arrays keep theirs: a folder each, named by the number before its first run's."""
RUN_NAME = re.compile(r"[0-9]{4,9}-[a-z]")
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
