"""Whether the metric of a campaign can show a success at all, above what its baseline has."""

from __future__ import annotations

from gpudebug.core.campaign.decide import DEFAULT_TARGET, Campaign, goal

FULL = 100.0
_INSTEAD = "set metric: steps_per_s in gpudebug.yaml"


def no_room(campaign: Campaign, success: float, utilisation: float | None) -> str | None:
    """Why utilisation cannot show a success of so many points; None if it can, or is not the metric.

    `utilisation` is the baseline's in percent, None if it is not known.
    """
    if not campaign.metric.points or utilisation is None:
        return None
    target = goal(campaign)
    target = DEFAULT_TARGET if target is None else target
    if utilisation <= target - success:
        return None
    asked = f"criteria.success asks for {success:g} points"
    if utilisation + success > FULL:
        left = f"the baseline is at {utilisation:.1f}%, and {asked} more"
        return f"utilisation cannot show a success: {left}; {_INSTEAD}"
    return (
        f"utilisation can hardly show a success: the baseline is at {utilisation:.1f}%, above the target of "
        f"{target:g}% less the {success:g} points of criteria.success; {_INSTEAD}"
    )
