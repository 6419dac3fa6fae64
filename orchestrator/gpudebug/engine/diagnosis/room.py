"""Whether devices are as busy as they should be, so that throughput alone is left to gain."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.campaign.headroom import above_target
from gpudebug.core.evidence.devices import telling
from gpudebug.core.statistics.metrics import Metric
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.judged import Facts, judged, mean_of


def is_full(mean: float | None, runs: Sequence[Facts], loaded: Loaded | None = None) -> bool:
    """Tell whether these runs leave no room above the campaign's target, else the usual one.

    By the figure that a campaign of utilisation is judged by; without one, by what tells where the `mean`
    over devices (percent) misleads. `runs` are their evidence.json.
    """
    chosen: str | None = loaded.setup.config.criteria.devices if loaded is not None else None
    if loaded is None or not loaded.setup.metric.points:
        chosen = telling(runs)
    figure = mean if chosen is None else mean_of(Metric(), judged(chosen, runs))
    return above_target(loaded.campaign if loaded is not None else None, figure)
