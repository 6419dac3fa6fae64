"""The answer to a session that has had its hypothesis: stop."""

from __future__ import annotations

from gpudebug.core.answers.next import SessionDone
from gpudebug.core.campaign.decide import ActionKind, Claimed, decide
from gpudebug.engine.campaign import claims
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.cycle.tell import nothing_told, session_told


def finished(loaded: Loaded) -> SessionDone | None:
    """Return the answer to a session that has had its hypothesis, or has none to propose; None before, and
    for a person."""
    if any(loaded.claimed(h) is Claimed.MINE for h in loaded.document.hypotheses):
        # Its hypothesis goes on: `next --more`.
        return None
    had = claims.had(loaded)
    if had is None:
        return _proposes_nothing(loaded)
    result = "its result was too late to be a verdict"
    if had:
        result = f"hypothesis {had['hypothesis']} is {had['status']}: {had['why']}"
    return SessionDone(
        campaign=loaded.config.campaign,
        hypothesis=had.get("hypothesis"),
        verdict=had.get("status"),
        why=f"session {loaded.session} has had its hypothesis, stop here; {result}",
        files=(str(loaded.progress_path),),
        tell=session_told(loaded, had.get("hypothesis")),
    )


def _proposes_nothing(loaded: Loaded) -> SessionDone | None:
    """The answer to a session that said so, while nothing has changed since; None if the campaign is over."""
    if loaded.session is None or loaded.session not in loaded.campaign.nothing:
        return None
    if decide(loaded.campaign).kind is ActionKind.STOP:
        return None
    return SessionDone(
        campaign=loaded.config.campaign,
        why=f"session {loaded.session} has nothing to propose, stop here",
        files=(str(loaded.progress_path),),
        tell=nothing_told(loaded),
    )
