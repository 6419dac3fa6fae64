"""The change of a hypothesis: as its entry records it, or as just written in a worktree."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import Synonyms, folded
from gpudebug.core.errors import InterventionError
from gpudebug.core.progress import ProgressFile
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.campaign import Entries, MeasuredCode, Setup
from gpudebug.engine.campaign.measured_code import change_digest, patch_of

_NO_INTERVENTION = Intervention(())


@dataclass(frozen=True)
class TrialChange:
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


def change_of(setup: Setup, entries: Entries, code: MeasuredCode, number: int) -> TrialChange:
    """What the trial of a hypothesis changes; code that was written for it becomes a patch beside the others.

    InterventionError if the change may not be made, StoreError if its patch is missing.
    """
    from gpudebug.engine.campaign import patch_files

    entry = entries.document.hypothesis(number)
    intervention = entries.interventions.get(number, _NO_INTERVENTION)
    if intervention.changes and not intervention.needs_code:
        patch = patch_of(setup.workspace, intervention)
        if patch is not None:
            patch_files.check(setup, patch, str(intervention.patch))
        return TrialChange(intervention, patch)
    found = worktrees.written_change(setup, number)
    if found is None or not found.patch:
        raise InterventionError(
            f"hypothesis {number} has no change to test",
            file=str(setup.progress_path),
            line=entry.line,
            next=f"write it in {worktrees.worktree_for(setup, code, number)}, then gpudebug next",
        )
    patch_files.check(setup, found.patch, f"the change of hypothesis {number}")
    as_patch = intervention.with_patch(f"{worktrees.PATCHES}/h{number}.new")
    patch_files.refuse_tested(setup, entries, number, as_patch, found.patch)
    path = worktrees.keep_patch(setup, entries.document, number, found.patch)
    left_out = (f"{each.path} is not part of the change: {each.why}" for each in found.left_out)
    notes = (*left_out, *worktrees.changed_in_links(setup, number))
    return TrialChange(intervention.with_patch(path), found.patch, written=True, notes=notes)


def refuse_before_running(
    setup: Setup, document: ProgressFile, number: int | None, intervention: Intervention, synonyms: Synonyms
) -> None:
    """Refuse, before device time is spent, what the gates would refuse after it."""
    name = f"hypothesis {number}" if number is not None else "this hypothesis"
    where = str(setup.progress_path)
    line = None
    if number is not None:
        line = document.hypothesis(number).line
    flags = [option.name for option in command_line.options(setup.config.workload.argv())]
    locked = intervention.locked_by(setup.config.locked, flags, synonyms)
    if locked:
        named = {folded(touched) for touched in intervention.names}
        other = "" if named & set(map(folded, locked)) else f", here called {', '.join(intervention.names)}"
        raise InterventionError(
            f"{name} changes {', '.join(locked)}, which gpudebug.yaml locks{other}",
            file=where,
            line=line,
            next="change something else, or take it out of `locked`; a flag that only begins like a locked "
            "one is separate if workload.command has it",
        )
    if intervention.size > 1 and not intervention.compound:
        raise InterventionError(
            f"{name} changes {intervention.size} things at once, so its result would name no cause",
            file=where,
            line=line,
            next="propose one change each, or add --compound if it is meant",
        )
