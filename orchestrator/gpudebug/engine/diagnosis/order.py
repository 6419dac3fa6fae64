"""The order that `next` and `diagnose` find for what waits, recorded for `status`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from gpudebug.core.campaign import decide
from gpudebug.core.campaign.decide import ActionKind
from gpudebug.core.campaign.order import HypothesisOrder, order_in
from gpudebug.core.errors import StoreError
from gpudebug.edges import store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.campaign import Setup

if TYPE_CHECKING:
    from gpudebug.engine.campaign.campaign import Loaded


def record_order(loaded: Loaded, by: str) -> None:
    """Record the order of what waits now. A folder that cannot be written does not stop the work."""
    if not loaded.setup.workspace.runs.is_dir():
        return
    with suppress(StoreError):
        store.put_order(loaded.setup.workspace, _order(loaded, by).as_json())


def recorded_order(setup: Setup) -> HypothesisOrder | None:
    """Return the order that was recorded last; None if there is none in the unit of the campaign's metric."""
    found = order_in(store.get_order(setup.workspace))
    if found is None or found.metric != setup.config.metric:
        return None
    return found if found.shares or found.unweighed or found.offer else None


def _order(loaded: Loaded, by: str) -> HypothesisOrder:
    from gpudebug.engine.diagnosis.offer import outlook
    from gpudebug.engine.diagnosis.weights import weighed

    campaign = weighed(loaded)
    weighing = campaign is not loaded.campaign
    shares = {h.number: h.share for h in campaign.hypotheses if h.share is not None}
    proposes = decide.decide(campaign).kind is ActionKind.PROPOSE
    return HypothesisOrder(
        when=now(),
        by=by,
        baseline=loaded.history.baselines["workload"].runs,
        metric=loaded.setup.config.metric,
        unweighed=campaign.unweighed,
        offer=outlook(loaded).text if proposes else None,
        shares=shares if weighing and campaign.unweighed is None else None,
    )
