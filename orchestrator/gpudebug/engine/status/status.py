"""`gpudebug status`: what was recorded where nothing has changed since, else what the evidence says.

People and agents ask all the time, so nothing here imports more than the recorded answer needs.
"""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.answers.status import StatusAnswer
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.status.recorded import recorded


def status(directory: Path, *, every: bool = True) -> StatusAnswer:
    """Where a campaign is. Reads only.

    Without `every` the answer holds the hypotheses that a text lists; `rest` counts the others by status.
    """
    session = session_of()
    found = recorded(directory, session, every=every)
    if found is not None:
        return found
    from gpudebug.engine.campaign.load import load
    from gpudebug.engine.status.answer import status_of

    return status_of(load(directory, session))
