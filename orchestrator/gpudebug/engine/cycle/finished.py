"""The answer to a session that has had its hypothesis: stop."""

from __future__ import annotations

from gpudebug.core.answers.next import SessionDone
from gpudebug.engine.campaign import claims
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.cycle.tell import session_told


def finished(loaded: Loaded) -> SessionDone | None:
    """Return the answer to a session that has had its hypothesis; None while it has not, and for a person."""
    had = claims.had(loaded)
    if had is None:
        return None
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
