"""Whether the metric of a campaign can show a success at all, above what its baseline has."""

from __future__ import annotations

from gpudebug.core.campaign.decide import DEFAULT_TARGET, Campaign, goal
from gpudebug.core.statistics.units import rate_for

FULL = 100.0


def no_room(
    campaign: Campaign,
    success: float,
    utilisation: float | None,
    unit: str | None = None,
    busy: str | None = None,
) -> str | None:
    """Return why utilisation cannot show a success of so many points; None if it can, or is not the metric.

    `utilisation` is the baseline's in percent, None if it is not known; `unit` what it counts as work; `busy`
    what it counts as the device's work and is none.
    """
    if not campaign.metric.points or utilisation is None:
        return None
    instead = f"set metric: {rate_for(unit)} in gpudebug.yaml"
    if busy is not None:
        return f"{busy}, so utilisation cannot show that this became less; {instead}"
    if utilisation + success <= FULL:
        return None
    return (
        f"utilisation cannot show a success: the baseline is at {utilisation:.1f}%, and criteria.success "
        f"asks for {success:g} points more; {instead}"
    )


def above_target(campaign: Campaign | None, utilisation: float | None) -> bool:
    """Tell whether utilisation (percent) is where it should be, so that throughput alone is left to gain.

    Without a campaign, or if it is judged by another metric, the usual target counts.
    """
    target = goal(campaign) if campaign is not None else None
    return utilisation is not None and utilisation >= (DEFAULT_TARGET if target is None else target)
