"""`gpudebug status`: what was recorded where nothing has changed since, else what the evidence says.

People and agents ask all the time, so nothing here imports more than the recorded answer needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.status.recorded import recorded


def status(directory: Path, *, every: bool = True) -> dict[str, Any]:
    """`status`'s JSON. Reads only.

    Without `every` the answer holds the hypotheses that a text lists; `rest` counts the others by status.
    """
    session = session_of()
    found = recorded(directory, session, every=every)
    if found is not None:
        return found
    from gpudebug.engine.campaign.load import load
    from gpudebug.engine.status.answer import status_of

    return status_of(load(directory, session))
