"""The answer to a session that has had its hypothesis: stop."""

from __future__ import annotations

from gpudebug.core.answers.next import SessionDone
from gpudebug.core.campaign.decide import ActionKind, Campaign, Claimed, decide
from gpudebug.engine.campaign import claims
from gpudebug.engine.campaign.campaign import Entries, Loaded, Setup
from gpudebug.engine.cycle.tell import nothing_told, session_told


def finished(loaded: Loaded) -> SessionDone | None:
    """Return the answer to a session that has had its hypothesis, or has none to propose; None before, and
    for a person."""
    if any(loaded.entries.claimed(h) is Claimed.MINE for h in loaded.entries.document.hypotheses):
        # Its hypothesis goes on: `next --more`.
        return None
    had = claims.had(loaded.setup, loaded.history.records)
    if had is None:
        return _proposes_nothing(loaded.setup, loaded.entries, loaded.campaign)
    result = "its result was too late to be a verdict"
    if had:
        result = f"hypothesis {had['hypothesis']} is {had['status']}: {had['why']}"
    return SessionDone(
        campaign=loaded.setup.config.campaign,
        hypothesis=had.get("hypothesis"),
        verdict=had.get("status"),
        why=f"session {loaded.setup.session} has had its hypothesis, stop here; {result}",
        files=(str(loaded.setup.progress_path),),
        tell=session_told(loaded.setup, loaded.entries, had.get("hypothesis")),
    )


def _proposes_nothing(setup: Setup, entries: Entries, campaign: Campaign) -> SessionDone | None:
    """The answer to a session that said so, while nothing has changed since; None if the campaign is over."""
    if setup.session is None or setup.session not in campaign.nothing:
        return None
    if decide(campaign).kind is ActionKind.STOP:
        return None
    return SessionDone(
        campaign=setup.config.campaign,
        why=f"session {setup.session} has nothing to propose, stop here",
        files=(str(setup.progress_path),),
        tell=nothing_told(setup, entries, campaign),
    )
