"""Whether the diagnosis ranks first what a hypothesis would mend."""

from __future__ import annotations

from gpudebug.core.errors import CatalogueError
from gpudebug.engine.campaign.campaign import Loaded

# How well a hypothesis that names no cause must fit one to count as its test.
_FITS = 0.5


def ranked_first(loaded: Loaded, number: int) -> bool:
    """Whether a hypothesis tests the cause that the baseline's evidence makes most likely.

    It names that cause, as one of the catalogue's proposals does, or fits it better than any other. False if
    the diagnosis names none.
    """
    from gpudebug.engine.diagnosis.case import case_of

    try:
        case = case_of(loaded)
    except CatalogueError:
        return False
    if case.diagnosis.abstains or not case.diagnosis.causes:
        return False
    first = case.diagnosis.causes[0].id
    entry = loaded.document.hypothesis(number)
    if entry.cause is not None:
        return entry.cause == first
    matches = case.matches.get(number, {})
    return matches.get(first, 0.0) >= max(_FITS, *matches.values(), 0.0)
