"""Whether devices are as busy as they should be, so that throughput alone is left to gain."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.campaign.headroom import above_target
from gpudebug.core.evidence.together import mean_misleads
from gpudebug.core.statistics.across import LEAST, WORKING, across, misleading
from gpudebug.core.statistics.metrics import Metric
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.judged import Facts, judged, mean_of


def is_full(mean: float | None, runs: Sequence[Facts], loaded: Loaded | None = None) -> bool:
    """Whether these runs leave no room above the campaign's target, else the usual one.

    By the figure that a campaign of utilisation is judged by; without one, by what tells where the `mean`
    over devices (percent) misleads. `runs` are their evidence.json.
    """
    chosen: str | None = loaded.config.criteria.devices if loaded is not None else None
    if loaded is None or not loaded.metric.points:
        chosen = _telling(runs)
    figure = mean if chosen is None else mean_of(Metric(), judged(chosen, runs))
    return above_target(loaded.campaign if loaded is not None else None, figure)


def _telling(runs: Sequence[Facts]) -> str | None:
    """Which of several devices tell how busy a run is; None where their mean does."""
    if any(map(_waits, runs)):
        return WORKING
    return LEAST if misleading(across(*(e.get("devices") or () for e in runs))) else None


def _waits(facts: Facts) -> bool:
    awaited = facts.get("awaited") is not None
    return mean_misleads(facts.get("utilisation"), facts.get("working"), awaited=awaited) is not None
