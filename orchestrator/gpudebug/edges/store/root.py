"""Where a campaign lies: the folder of its gpudebug.yaml, and the names in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

CONFIG = "gpudebug.yaml"
RUNS = "runs"
WORKTREES = (RUNS, "worktrees")
RUN_NAME = re.compile(r"[0-9]{4,9}-[a-z]")


def find_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` that holds gpudebug.yaml.

    Inside one of a campaign's worktrees it is the folder of that campaign, not its copy there.
    """
    start = start.resolve()
    above = (start, *start.parents)
    owners = (d.parents[1] for d in above if d.parts[-2:] == WORKTREES)
    outermost = [d for d in owners if os.path.lexists(d / CONFIG)]
    if outermost:
        return outermost[-1]
    return next((d for d in above if os.path.lexists(d / CONFIG)), None)
