"""Which hypotheses get a short look before one is tested, and what it shows. A look is not a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gpudebug.core.campaign.decide import ActionKind, Campaign, HypothesisState, decide, waiting, wanted
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import Status

LOOK_SHARE = 1 / 3
"""Of a run's planned window, what a look waits for."""
LEAST, MOST = 3, 8
"""Two are tested as they stand; of many the first are looked at."""
_OF_A_RUN = 0.6


def tied(campaign: Campaign) -> tuple[int, ...]:
    """The hypotheses that wait with the same best claim to be tested next, at least three, at most eight.

    None if one stands out, since its turn is known. The diagnosis may expect no gain of them: it knows only
    the catalogue's causes.
    """
    action = decide(campaign)
    first = next((h for h in campaign.hypotheses if h.number == action.hypothesis), None)
    if action.kind is not ActionKind.TEST or first is None or first.status is not Status.UNTESTED:
        return ()
    best = wanted(first)
    found = [h.number for h in waiting(campaign, mechanical=True) if wanted(h) == best]
    testable = not first.problem and campaign.unweighed is None
    return tuple(found[:MOST]) if testable and len(found) >= LEAST else ()


def pays(look_s: float, run_s: float, looks: int, left_s: float | None) -> bool:
    """Whether so many looks of `look_s` seconds are worth it beside runs of `run_s` each.

    A look that takes most of a run shows less than the run would. `left_s` is what the budget has left.
    """
    return look_s <= _OF_A_RUN * run_s and (left_s is None or looks * look_s + run_s < left_s)


def seen_gain(metric: Metric, before: float | None, after: float | None) -> float | None:
    """What a look shows of a change, in points of utilisation or relative; None if a side is unknown."""
    if before is None or after is None:
        return None
    found = metric.improvement(metric.scale(after) - metric.scale(before))
    return found if metric.points else found - 1


def with_looks(campaign: Campaign, gains: Mapping[int, float]) -> Campaign:
    """The campaign with what looks showed in the place of what was expected."""
    points = campaign.metric.points
    return replace(campaign, hypotheses=tuple(_looked(h, gains, points) for h in campaign.hypotheses))


def _looked(h: HypothesisState, gains: Mapping[int, float], points: bool) -> HypothesisState:
    if h.number not in gains or h.status is not Status.UNTESTED:
        return h
    seen = gains[h.number]
    gain = max(seen, 0.0)
    # 50 % more in the same time is a third of the time; points are of all of it.
    share = gain / 100 if points else 1.0 if math.isinf(gain) else gain / (1 + gain)
    return replace(
        h, looked=seen, worth=gain / (h.cost_s or 1.0), share=share if h.share is not None else None
    )
