"""Nothing to measure: what `next` asks its caller for, or why the campaign stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.answers.next import Request
from gpudebug.core.campaign.decide import Action, ActionKind
from gpudebug.engine.campaign import claims, upkeep, worktrees
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.run.prepare import Cycle

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
        claims.take(loaded, action.hypothesis)
        worktree = worktrees.worktree_for(loaded, action.hypothesis)
    elif action.kind is ActionKind.STOP:
        upkeep.end(loaded)
    page = None
    if action.kind is not ActionKind.STOP:
        from gpudebug.engine.brief.brief import brief

        remarks, offer = _drifted(loaded), found.offer if found else None
        page = brief(
            loaded,
            action.kind,
            action.why,
            hypothesis=action.hypothesis,
            session=loaded.session,
            worktree=worktree,
            remarks=remarks,
            diagnosis=found.lines() if found else (),
            instructions=_instructions(loaded, action),
            offer=offer.ranked.id if offer else None,
        )
    place = (str(worktree),) if worktree else ()
    return Request(
        action=action.kind.value,
        campaign=loaded.config.campaign,
        hypothesis=action.hypothesis,
        brief=page,
        why=action.why,
        worktree=next(iter(place), None),
        diagnosis=found.causes() if found else None,
        next_command=(found.command if found else None) or _NEXT_COMMAND[action.kind],
        files=(str(loaded.progress_path), *place),
    )


def _instructions(loaded: Loaded, action: Action) -> list[str]:
    """The catalogue on the code that is asked for."""
    if action.kind is not ActionKind.IMPLEMENT or action.hypothesis is None:
        return []
    from gpudebug.engine.diagnosis.offer import instructions

    return instructions(loaded, loaded.document.hypothesis(action.hypothesis))


def _drifted(loaded: Loaded) -> list[str]:
    """What was changed in the checkout, if nothing of it is measured for a session."""
    if not loaded.code.drifted:
        return []
    return [
        "files changed in the checkout, which is not measured. Write your change in the worktree that "
        "`gpudebug next` names; leave the checkout as it was"
    ]
