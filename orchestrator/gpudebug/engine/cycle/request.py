"""Nothing to measure: what `next` asks its caller for, or why the campaign stops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.answers.next import Request
from gpudebug.core.campaign.decide import Action, ActionKind
from gpudebug.core.progress import ProgressFile
from gpudebug.core.records import Evidence
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.campaign import claims, upkeep, worktrees
from gpudebug.engine.campaign.campaign import Loaded, MeasuredCode
from gpudebug.engine.cycle.tell import campaign_told
from gpudebug.engine.run.prepare import Cycle
from gpudebug.engine.trial.crashes import CodeCrashed, how

if TYPE_CHECKING:
    from gpudebug.engine.diagnosis.offer import Outlook

_NEXT_COMMAND = {
    ActionKind.PROPOSE: "gpudebug propose --title T --description D --method M --set FLAG=VALUE",
    ActionKind.IMPLEMENT: "gpudebug next",
    ActionKind.STOP: "gpudebug status",
}


def ask(cycle: Cycle, action: Action, found: Outlook | None = None) -> Request:
    """Nothing to measure: what the caller is asked for, or why the campaign stops."""
    loaded = cycle.loaded
    worktree = None
    if action.kind is ActionKind.IMPLEMENT:
        assert action.hypothesis is not None
        claims.take(loaded.setup, loaded.entries, action.hypothesis)
        worktree = worktrees.worktree_for(loaded.setup, loaded.code, action.hypothesis)
    elif action.kind is ActionKind.STOP:
        upkeep.end(loaded.setup, loaded.entries.document)
    page = None
    if action.kind is not ActionKind.STOP:
        from gpudebug.engine.brief.brief import brief
        from gpudebug.engine.brief.shown import only_new

        remarks, offer = _drifted(loaded.code), found.offer if found else None
        page = brief(
            loaded,
            action,
            worktree=worktree,
            remarks=remarks,
            diagnosis=found.lines() if found else (),
            instructions=_instructions(loaded.setup.workspace, loaded.entries.document, action),
            offer=offer.ranked.id if offer else None,
            seen=found.places() if found else _places(loaded, action),
        )
        page = only_new(loaded.setup.workspace, loaded.setup.session, page)
    place = (str(worktree),) if worktree else ()
    return Request(
        action=action.kind.value,
        campaign=loaded.setup.config.campaign,
        hypothesis=action.hypothesis,
        brief=page,
        why=action.why,
        worktree=next(iter(place), None),
        diagnosis=found.causes() if found else None,
        next_command=(found.command if found else None) or _NEXT_COMMAND[action.kind],
        files=(str(loaded.setup.progress_path), *place),
        tell=campaign_told(loaded, action.why) if action.kind is ActionKind.STOP else None,
    )


def mend(cycle: Cycle, crash: CodeCrashed) -> Request:
    """Code of a change crashed: its author is asked to mend it, where it is written."""
    loaded, number, e = cycle.loaded, crash.number, crash.run.evidence
    change = loaded.entries.interventions.get(number)
    coded = change is None or change.needs_code
    worktree = worktrees.worktree_for(loaded.setup, loaded.code, number) if coded else None
    patch = None if change is None or coded else change.patch
    why, remark = map(loaded.setup.workspace.scrub, _failed_once(number, e))
    asked = to_correct(loaded, number, why, remark, worktree=worktree, patch=patch)
    return replace(
        asked,
        next_command=_NEXT_COMMAND[ActionKind.IMPLEMENT],
        files=(
            str(loaded.setup.progress_path),
            *([asked.worktree] if asked.worktree else []),
            *([str(loaded.setup.workspace.root / patch)] if patch else []),
            str(crash.run.folder.path),
        ),
    )


def _failed_once(number: int, e: Evidence) -> tuple[str, str]:
    """Return why its author has a change again whose code failed in a run, and what to do."""
    kind = f" ({e.failure.kind})" if e.failure else ""
    line = f": {e.failure.lines[-1]}" if e.failure and e.failure.lines else ""
    why = f"hypothesis {number} is still yours: its code {how(e)}{line}"
    if e.outcome is not Outcome.CRASHED:
        return why, f"Mend what makes the loss NaN, see the log of {e.run}; a second time is REJECTED."
    return why, (
        f"Mend the crash of {e.run}{kind}, whose last lines are above; the rest of the change is as it was. "
        "A second crash is REJECTED."
    )


def to_correct(
    loaded: Loaded,
    number: int,
    why: str,
    remark: str,
    *,
    worktree: Path | None = None,
    patch: str | None = None,
) -> Request:
    """Return what the session of `loaded` is asked if a change cannot be tested as it is."""
    from gpudebug.engine.brief.brief import brief

    page = brief(
        loaded,
        Action(ActionKind.IMPLEMENT, why, hypothesis=number),
        worktree=worktree,
        remarks=[remark],
        patch=patch,
    )
    return Request(
        action=ActionKind.IMPLEMENT.value,
        campaign=loaded.setup.config.campaign,
        hypothesis=number,
        brief=page,
        why=why,
        worktree=str(worktree) if worktree is not None else None,
    )


def _places(loaded: Loaded, action: Action) -> tuple[tuple[str, int | None], ...]:
    """Return where the cause of the hypothesis that is to be written was seen."""
    if action.kind is not ActionKind.IMPLEMENT or action.hypothesis is None:
        return ()
    from gpudebug.engine.diagnosis.offer import places_of

    return places_of(loaded, loaded.entries.document.hypothesis(action.hypothesis).cause)


def _instructions(workspace: store.Workspace, document: ProgressFile, action: Action) -> list[str]:
    """Return the catalogue on the code that is asked for."""
    if action.kind is not ActionKind.IMPLEMENT or action.hypothesis is None:
        return []
    from gpudebug.engine.diagnosis.offer import instructions

    return instructions(workspace, document.hypothesis(action.hypothesis))


def _drifted(code: MeasuredCode) -> list[str]:
    """Return what was changed in the checkout, if nothing of it is measured for a session."""
    if not code.drifted:
        return []
    return [
        "files changed in the checkout, which is not measured. Write your change in the worktree that "
        "`gpudebug next` names; leave the checkout as it was"
    ]
