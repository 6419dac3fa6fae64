"""`gpudebug clean`: what gpudebug left here, with sizes; a person removes what is proven to be its own.

Without a campaign that is what `gpudebug why` left in the folder. `--all` adds what `everything` finds.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.answers.setup import CleanAnswer, KeptPath, LeftPath
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.progress import ProgressFile
from gpudebug.edges import launcher, store
from gpudebug.edges.store import leftovers
from gpudebug.edges.walk import walk
from gpudebug.engine.campaign import upkeep
from gpudebug.engine.campaign.campaign import History, Loaded, Setup
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.why import FOLDER, ROLE
from gpudebug.engine.run.prepare import claim_of

_NAME = re.compile(rf"{FOLDER}-[1-9][0-9]*")
STILL_S = 60.0
"""A look that was not finished is under way if something of it was written in so many seconds."""


def looks_in(place: Path) -> Iterator[store.RunFolder]:
    """Yield the looks that lie in a folder, in the order of their numbers; none if it cannot be listed."""
    try:
        found = [path for path in place.iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return
    for path in sorted(found, key=lambda path: int(path.name.rpartition("-")[2])):
        look = store.RunFolder(path, lambda text: text)
        if path.is_symlink() or not path.is_dir():
            continue
        record = stored_record(look, "run.json")
        if record.get("name") == path.name and record.get("role") == ROLE:
            yield look


def under_way(look: store.RunFolder) -> bool:
    """Tell whether gpudebug still writes to it: a process of its run lives, or something of it is new."""
    if look.sealed:
        return False
    return bool(launcher.marked(str(look.path))) or time.time() - _written(look.path) < STILL_S


def _written(folder: Path) -> float:
    """When something in it was written last, in seconds of the clock; 0.0 if it is gone."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return 0.0


EVIDENCE, UNUSED, TEMPORARY = "evidence", "unused run", "temporary"
WORKTREE, REFERENCE = "worktree", "reference"
LOOK, PRIVATE, FORMER = "look", "private", "former"
_FORMER_NAMES = (".status", ".claim", ".claim.holder", ".detached", ".allocation", ".loop", ".loop.holder")
"""What gpudebug 0.2 kept in runs/, and no command reads any more; nothing proves whose these are."""
_HOLDS = (
    "holds what may not become a patch, such as a secret; is not what gpudebug made there; or jobs of an "
    "array need it"
)


@dataclass(frozen=True)
class Left:
    """One thing that gpudebug left: its kind, path and size; `made` says which file or folder it is.

    `go` removes what is not a file or folder of gpudebug's alone, and returns why it is there still, or None.
    """

    kind: str
    path: Path
    size: int
    made: tuple[int, int]
    go: Callable[[], str | None] | None = None

    def told(self) -> LeftPath:
        return LeftPath(kind=self.kind, path=str(self.path), bytes=self.size)


def survey(directory: Path) -> tuple[Loaded | None, list[Left]]:
    """All that is there, in the order in which it is shown, with the campaign; None if there is none."""
    loaded = load(directory) if store.find_root(directory) is not None else None
    found = [
        *(_left(loaded.setup, loaded.entries.document, loaded.history) if loaded is not None else ()),
        *_looks(directory, loaded),
    ]
    # Looks stay in the order of their numbers.
    return loaded, sorted(found, key=lambda left: (left.kind, "" if left.kind == LOOK else str(left.path)))


def _looks(directory: Path, loaded: Loaded | None) -> Iterator[Left]:
    """Yield those of this folder, and of a campaign's own places."""
    places = [
        directory,
        *((loaded.setup.workspace.root, loaded.setup.workspace.runs) if loaded is not None else ()),
    ]
    for place in {one.resolve(): one for one in places}.values():
        yield from (found_at(LOOK, look.path) for look in looks_in(place))


def listing(loaded: Loaded | None, left: Sequence[Left], chosen: Sequence[Left] = ()) -> CleanAnswer:
    """Return the answer before anything is removed; `chosen` is what would be."""
    return CleanAnswer(
        action="listed",
        campaign=loaded.setup.config.campaign if loaded is not None else None,
        left=tuple(one.told() for one in left),
        bytes=sum(one.size for one in left),
        chosen=tuple(str(one.path) for one in chosen),
    )


def remove(
    loaded: Loaded | None, left: Sequence[Left], chosen: Sequence[Left], session: str | None
) -> CleanAnswer:
    """Remove what was chosen, in this order, while nothing runs here; what is not as it was listed is kept.

    UsageError under a session: what agents may not judge they may not remove.
    """
    if session is not None:
        raise UsageError(
            f"session {session} may not remove what gpudebug left", next="a person runs gpudebug clean"
        )
    removed, kept = list[str](), list[KeptPath]()
    with nullcontext() if loaded is None else claim_of(loaded.setup.workspace, "gpudebug clean"):
        trees = any(one.kind in (WORKTREE, REFERENCE) for one in chosen)
        still = _trees_left(loaded.setup, loaded.entries.document) if loaded is not None and trees else ()
        for one in chosen:
            why = _removed(one, still)
            if why is None:
                removed.append(str(one.path))
            else:
                kept.append(KeptPath(path=str(one.path), why=why))
    found = listing(loaded, left, chosen)
    return replace(found, action="cleaned", removed=tuple(removed), kept=tuple(kept))


def _trees_left(setup: Setup, document: ProgressFile) -> Collection[str]:
    """End the campaign's worktrees and references; return those that are there still."""
    upkeep.end(setup, document)
    return {str(there) for kept_there in upkeep.kept_here(setup) for there in kept_there}


def _removed(one: Left, still: Collection[str]) -> str | None:
    """Remove one thing; why it is there still, None if it is not.

    Worktrees and references went together before this: `still` names those that did not.
    """
    if one.go is not None:
        return one.go()
    if one.kind in (WORKTREE, REFERENCE):
        return _HOLDS if str(one.path) in still else None
    if one.kind == LOOK and under_way(store.RunFolder(one.path, lambda text: text)):
        return "gpudebug why is still at work there, or was within the last minute"
    try:
        leftovers.remove(one.path, one.made)
    except GpudebugError as e:
        return e.message
    return None


def _left(setup: Setup, document: ProgressFile, history: History) -> Iterator[Left]:
    workspace = setup.workspace
    named = {name for entry in document.baselines for name in entry.runs}
    named |= {name for entry in document.hypotheses for name in (*entry.runs, *entry.earlier_runs)}
    for name in history.judged:
        named |= {
            str(used["name"]) for used in stored_record(workspace.run(name), "verdict.json").get("runs", ())
        }
    # What accepted changes are worth together follows from the runs that were made in turn with them.
    paired = {history.records.get(name, {}).get("paired") for name in named} - {None}
    named |= {name for name, record in history.records.items() if record.get("paired") in paired}
    for name in workspace.run_names():
        run = workspace.run(name)
        # A folder whose own record names another run, or none, is not proven to be one.
        if not run.path.is_symlink() and stored_record(run, "run.json").get("name") == name:
            yield found_at(EVIDENCE if name in named else UNUSED, run.path)
    worktrees, references = upkeep.kept_here(setup)
    for path in worktrees:
        yield found_at(WORKTREE, path)
    for name in references:
        yield Left(REFERENCE, Path(name), 0, (0, 0))
    private = setup.checkout.private
    if private.is_dir() and not private.is_symlink():
        yield found_at(PRIVATE, private)
    for path in (workspace.runs / name for name in _FORMER_NAMES):
        if os.path.lexists(path):
            yield found_at(FORMER, path)
    for lock in sorted(workspace.runs.glob(".*.lock")):
        if lock.is_file() and not lock.is_symlink():
            yield found_at("lock", lock)
    folders = (workspace.root, setup.progress_path.parent, workspace.runs, workspace.root / "hypotheses")
    for folder in dict.fromkeys(folders):
        for path in leftovers.temporaries(folder):
            yield found_at(TEMPORARY, path)


def found_at(kind: str, path: Path, go: Callable[[], str | None] | None = None) -> Left:
    """Return what lies at a path, with its size. OSError if it is missing."""
    status = path.lstat()
    return Left(kind, path, _size(path, status), (status.st_dev, status.st_ino), go)


def _size(path: Path, status: os.stat_result) -> int:
    """Bytes on the disk, of a folder with all in it, however deep; what cannot be looked at counts as 0."""
    if not stat.S_ISDIR(status.st_mode):
        return status.st_blocks * 512
    total = 0
    for place, _, names in walk(path):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total
