"""The change of a hypothesis: as its entry tells it, or as somebody has just written it in a worktree."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.command import command_line
from gpudebug.core.errors import InterventionError, StoreError
from gpudebug.core.text.digests import short_digest
from gpudebug.edges import store
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Loaded

_NO_INTERVENTION = Intervention(())


class NoSuchPatch(StoreError):
    """A change names a patch that is not there."""


@dataclass(frozen=True)
class Change:
    """What a trial changes. `patch` is None for flags and variables alone.

    `written` says that the patch was taken from a worktree just now: the entry does not name it yet.
    """

    intervention: Intervention
    patch: bytes | None
    written: bool = False
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return change_digest(self.intervention, self.patch)


def tested_change(workspace: store.Workspace, written: str | None) -> str | None:
    """The digest of an entry's change as it is written now; None where none can be read."""
    try:
        change = parse_intervention(written) if written else None
        return change_digest(change, patch_of(workspace, change)) if change else None
    except (InterventionError, StoreError):
        return None


def patch_of(workspace: store.Workspace, change: Intervention) -> bytes | None:
    """The bytes of the patch that a change names; None where it names none.

    NoSuchPatch where the file is not there, StoreError where it leads out of the repository.
    """
    if change.patch is None:
        return None
    path = store.resolve_inside(workspace.root / change.patch, workspace.root)
    if not path.exists():
        raise NoSuchPatch(
            "there is no such patch",
            file=str(workspace.root / change.patch),
            next="put it back, or reword the entry",
        )
    return store.read_file(path)


def change_digest(intervention: Intervention, patch: bytes | None = None) -> str:
    """What tells one change from another: how it is written, and what its patch holds."""
    return digest_of(intervention.text, patch)


def digest_of(written: str, patch: bytes | None) -> str:
    """The digest of a change that is `written` like this."""
    text = written.encode("utf-8", "surrogateescape")
    return short_digest(text if patch is None else text + b"\0" + patch)


def change_of(loaded: Loaded, number: int) -> Change:
    """What the trial of a hypothesis changes; code that was written for it becomes a patch beside the others.

    InterventionError where the change may not be made, StoreError where its patch is not there.
    """
    from gpudebug.engine.campaign import patch_files

    entry = loaded.document.hypothesis(number)
    intervention = loaded.interventions.get(number, _NO_INTERVENTION)
    if intervention.changes and not intervention.needs_code:
        patch = patch_of(loaded.workspace, intervention)
        if patch is not None:
            patch_files.check(loaded, patch, str(intervention.patch))
        return Change(intervention, patch)
    found = worktrees.written_change(loaded, number)
    if found is None or not found.patch:
        raise InterventionError(
            f"hypothesis {number} has no change to test",
            file=str(loaded.progress_path),
            line=entry.line,
            next=f"write it in {worktrees.worktree_for(loaded, number)}, then gpudebug next",
        )
    patch_files.check(loaded, found.patch, f"the change of hypothesis {number}")
    as_patch = intervention.with_patch(f"{worktrees.PATCHES}/h{number}.new")
    patch_files.refuse_tested(loaded, number, as_patch, found.patch)
    path = worktrees.keep_patch(loaded, number, found.patch)
    left_out = (f"{each.path} is not part of the change: {each.why}" for each in found.left_out)
    notes = (*left_out, *worktrees.changed_in_links(loaded, number))
    return Change(intervention.with_patch(path), found.patch, written=True, notes=notes)


def refuse_before_running(loaded: Loaded, number: int | None, intervention: Intervention) -> None:
    """Refuse, before device time is spent, what the gates would refuse after it."""
    said = f"hypothesis {number}" if number is not None else "this hypothesis"
    where = str(loaded.progress_path)
    line = None
    if number is not None:
        line = loaded.document.hypothesis(number).line
    flags = [option.name for option in command_line.options(loaded.config.workload.argv())]
    locked = intervention.locked_by(loaded.config.locked, flags)
    if locked:
        raise InterventionError(
            f"{said} changes {', '.join(locked)}, which gpudebug.yaml locks",
            file=where,
            line=line,
            next="change something else, or take it out of `locked`; a flag that is only spelled like the "
            "beginning of a locked one is told from it where workload.command has it",
        )
    if intervention.size > 1 and not intervention.compound:
        raise InterventionError(
            f"{said} changes {intervention.size} things at once, so its result would name no cause",
            file=where,
            line=line,
            next="propose one change each, or add --compound to say that it is meant",
        )
