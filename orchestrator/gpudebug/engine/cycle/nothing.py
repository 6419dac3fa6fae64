"""`propose --none WHY`: the honest end of a session, or by a person of a campaign, with nothing left."""

from __future__ import annotations

import datetime
from pathlib import Path

from gpudebug.core import progress
from gpudebug.core.answers.next import NextAnswer, Request
from gpudebug.core.campaign.decide import Action, ActionKind, decide
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.progress import ProgressFile
from gpudebug.core.progress.nothing import LONGEST, NothingToPropose, add, read
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Baselines, Loaded, Setup
from gpudebug.engine.campaign.facts import standing
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.campaign.said import keep
from gpudebug.engine.cycle.finished import finished
from gpudebug.engine.cycle.tell import campaign_told

_LOOKED_AT = 1 << 16


class SomethingLeft(GpudebugError):
    """There is something to do, so that nothing can be said to be left."""

    code = "something_left"


def propose_nothing(directory: Path, why: str, session: str | None = None) -> NextAnswer:
    """Record that the caller has nothing to propose, and why; the answer is that of its `next` from now on.

    Done for a session; the end of the campaign for a person, and for the second session in a row. Refused
    while there is something to test, to write or to measure, and without a reason.
    """
    loaded = load(directory, session)
    reason = _reason(loaded.setup.workspace, why)
    done = finished(loaded)
    if done is not None:
        return done
    action = decide(loaded.campaign)
    if action.kind is ActionKind.STOP:
        return _stopped(loaded, action)
    _refuse(loaded, action)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
    said = NothingToPropose(session, now, standing(loaded.entries.document, loaded.history.baselines), reason)
    splice(loaded.setup, lambda document: _added(loaded.setup, loaded.history.baselines, document, said))
    loaded = load(directory, session)
    return finished(loaded) or _stopped(loaded, decide(loaded.campaign))


def _added(setup: Setup, baselines: Baselines, now: progress.ProgressFile, said: NothingToPropose) -> bytes:
    """By the file as it is at the moment of the write: another may propose at once."""
    if standing(now, baselines) != said.standing:
        raise SomethingLeft(
            "the campaign was changed in the meantime, and nothing was recorded",
            file=now.file,
            next="gpudebug next",
        )
    data = add(now, said)
    keep(setup, read(progress.parse(data, now.file))[-1])
    return data


def _reason(workspace: store.Workspace, why: str) -> str:
    scrub = workspace.scrub_prose
    reason = scrub(progress.harmless(scrub(why[:_LOOKED_AT]), limit=LONGEST))
    if not reason:
        raise UsageError(
            "--none needs a reason",
            next="gpudebug propose --none 'what was looked at, and why nothing is left'",
        )
    return reason


def _refuse(loaded: Loaded, action: Action) -> None:
    """Raise if something is to be done before anything can be proposed."""
    if action.kind is not ActionKind.PROPOSE:
        mine = action.kind is ActionKind.IMPLEMENT and _testing(loaded.entries.document, action.hypothesis)
        raise SomethingLeft(
            f"there is something to do first: {action.why}",
            next=f"gpudebug next, or gpudebug release {action.hypothesis}" if mine else "gpudebug next",
        )
    if loaded.setup.session is None and _testing(loaded.entries.document):
        raise SomethingLeft(
            "a session holds a hypothesis, whose verdict may leave more to propose",
            next="gpudebug status, then again when it has its verdict",
        )
    from gpudebug.engine.diagnosis.weights import proposes

    if proposes(loaded):
        raise SomethingLeft("auto_propose has a hypothesis of the catalogue's to test", next="gpudebug next")


def _testing(document: ProgressFile, number: int | None = None) -> bool:
    """Tell whether this hypothesis, by default any, is TESTING."""
    entries = document.hypotheses
    return any(h.status is Status.TESTING and number in (None, h.number) for h in entries)


def _stopped(loaded: Loaded, action: Action) -> Request:
    return Request(
        action=action.kind.value,
        campaign=loaded.setup.config.campaign,
        hypothesis=action.hypothesis,
        why=action.why,
        worktree=None,
        next_command="gpudebug status",
        files=(str(loaded.setup.progress_path),),
        tell=campaign_told(loaded, action.why),
    )
