"""What each waiting hypothesis is expected to bring, if there is a choice to make."""

from __future__ import annotations

from dataclasses import replace

from gpudebug.core.campaign import decide
from gpudebug.core.campaign.decide import ActionKind
from gpudebug.core.errors import CatalogueError
from gpudebug.core.words import Status
from gpudebug.engine.campaign.campaign import Loaded


def weighed(loaded: Loaded, campaign: decide.Campaign | None = None) -> decide.Campaign:
    """The campaign with the expected share of its untested hypotheses, where several wait for one decision.

    Elsewhere it stays as it is: neither catalogue nor evidence is looked at. A catalogue that cannot be read
    does not stop tests; the campaign notes it. `campaign` is by default the one that was read.
    """
    campaign = campaign or loaded.campaign
    if not _to_choose(campaign):
        return campaign
    from gpudebug.engine.diagnosis.case import case_of, shares_of

    try:
        case = case_of(loaded)
    except CatalogueError as e:
        return replace(campaign, unweighed=f"the catalogue cannot be read: {e}")
    shares = shares_of(loaded.entries.document, case)
    return replace(
        campaign,
        hypotheses=tuple(
            replace(h, share=shares.get(h.number)) if h.status is Status.UNTESTED else h
            for h in campaign.hypotheses
        ),
    )


def proposes(loaded: Loaded) -> bool:
    """Tell whether `next`, with nothing left to test, adds a hypothesis of the catalogue's and tests it."""
    if not loaded.setup.config.auto_propose:
        return False
    from gpudebug.engine.diagnosis.offer import outlook

    return outlook(loaded).adds


def _to_choose(campaign: decide.Campaign) -> bool:
    action = decide.decide(campaign)
    if action.kind not in (ActionKind.TEST, ActionKind.IMPLEMENT):
        return False
    chosen = next(h for h in campaign.hypotheses if h.number == action.hypothesis)
    return chosen.status is Status.UNTESTED and len(decide.waiting(campaign, chosen.mechanical)) > 1
