"""What a campaign's worktrees leave behind: mended, kept as a patch, or taken away."""

from __future__ import annotations

import re
from pathlib import Path

from gpudebug.core.errors import GitError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.words import VERDICTS
from gpudebug.edges import git, store
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.worktrees import KeptChange, discard, folder, references, rescue

# Worktrees that a run happens in: not for writing.
_OF_RUNS = re.compile(r"base|h[0-9]+-trial")


def tidy(setup: Setup, document: ProgressFile) -> list[str]:
    """Repair or remove what a kill left half-made, and remove what ran; what was done.

    A change that has no verdict yet stays in its worktree, even if the claim has run out. If a
    hypothesis got its verdict by hand, or its entry is gone, what was written for it becomes a patch; so
    does what is in a worktree whose folder is not the one that gpudebug made, and so is left there.
    """
    waiting = {f"h{h.number}" for h in document.hypotheses if h.status not in VERDICTS}
    notes = _repaired(setup, document)
    for path in git.worktrees_in(setup.checkout.at, folder(setup)):
        if path.name not in waiting:
            notes += _cleared(setup, document, path)
    return notes


def _repaired(setup: Setup, document: ProgressFile) -> list[str]:
    """Mend the campaign's worktrees; what was written in one whose folder is another by now is kept first."""
    at, where, notes = setup.checkout.at, folder(setup), list[str]()
    for path in git.worktrees_in(at, where):
        if git.estranged(at, path) and (kept := _rescued(setup, document, path)) and kept.patch:
            notes.append(f"{path.name}: what was written in it is kept in {kept.patch}")
    return notes + git.repair(setup.checkout.top, where, lambda name: _numbered(name) is not None)


def _numbered(name: str) -> int | None:
    """Return the hypothesis whose change is written in a worktree of this name; None for those of runs."""
    found = re.fullmatch(r"h([0-9]+)", name)
    return int(found[1]) if found else None


def _rescued(setup: Setup, document: ProgressFile, path: Path) -> KeptChange | None:
    """Keep what was written in a worktree, as a patch or there. None if git cannot list it."""
    number = _numbered(path.name)
    if number is None:
        return KeptChange() if _OF_RUNS.fullmatch(path.name) else None
    touched = git.touched(setup.checkout.at, path)
    if not touched:
        return None if touched is None else KeptChange()
    try:
        return rescue(setup, document, number)
    except GitError:
        return None


def _cleared(setup: Setup, document: ProgressFile, path: Path) -> list[str]:
    """Remove a worktree; what was written in it becomes a patch first. A line on what was done."""
    kept = _rescued(setup, document, path)
    place = git.place_of(setup.checkout.at, path)
    if kept is None:
        return [f"{path.name}: git cannot list what was written in it, so {place} stays as it is"]
    if kept.worktree is not None:
        return []
    discard(setup, path.name)
    return [f"{path.name}: not needed any more; it is removed"]


def kept_here(setup: Setup) -> tuple[list[Path], list[str]]:
    """Return the worktrees and the references of this campaign."""
    at = setup.checkout.at
    found = [git.place_of(at, path) for path in git.worktrees_in(at, folder(setup))]
    return found, git.refs_below(at, references(setup))


def end(setup: Setup, document: ProgressFile) -> None:
    """The campaign has ended: its commits and worktrees go. A change without a verdict becomes a patch,
    or stays in its worktree if it holds a secret. What elements of job arrays stand on stays while there are
    any."""
    if setup.workspace.element is not None or store.Elements(setup.workspace).notes(setup.config.campaign):
        return
    _repaired(setup, document)
    for path in git.worktrees_in(setup.checkout.at, folder(setup)):
        _cleared(setup, document, path)
    git.forget(setup.checkout.top, references(setup))
