"""A change that makes its own processes wait for cores raises what others take of their time."""

from __future__ import annotations

import math
import random

import pytest

from gpudebug.core.statistics.level import RATIOS, Seen, follow
from gpudebug.core.verdict.gates.delta import is_gain, is_too_small
from gpudebug.core.verdict.protocol import is_over
from gpudebug.core.verdict.turns import NextRun, following
from gpudebug.core.words import Status

SUCCESS, FAILURE, MOST = math.log(1.2), math.log(1.1), 8


def campaign(draw: random.Random, gain: float, own: float) -> Status:
    """The verdict on a change that gains so much and adds `own` points to the share of others, who take 20 to
    60 % of a rate."""
    seen: list[Seen] = []

    def run(changed: bool) -> None:
        taken = draw.uniform(20, 60)
        value = math.log(1 - taken / 100) + draw.gauss(0, 0.07) + (math.log(gain) if changed else 0.0)
        seen.append(Seen(len(seen), changed, value, min(taken + own, 95) if changed else taken))

    run(False)
    run(False)
    step = NextRun.TRIAL
    while True:
        run(step is NextRun.TRIAL)
        effect = follow(seen, RATIOS)
        if is_gain(effect, SUCCESS, FAILURE):
            return Status.VALIDATED
        if is_too_small(effect, SUCCESS, FAILURE):
            return Status.REJECTED
        if effect.closed and is_over(effect, SUCCESS, FAILURE, MOST):
            return Status.INCONCLUSIVE
        last = max(one.place for one in seen if not one.changed)
        step = following(effect.trials, MOST, closed=effect.closed, since=len(seen) - last)


@pytest.mark.parametrize(
    ("gain", "own", "least", "most"),
    [(1.0, 20.0, 0, 60), (1.36, 0.0, 340, 400)],
    ids=["nothing, and its own share", "a gain"],
)
def test_the_values_alone_have_to_show_a_gain(gain: float, own: float, least: int, most: int) -> None:
    draw = random.Random(3)
    found = [campaign(draw, gain, own) for _ in range(400)]
    assert least <= found.count(Status.VALIDATED) <= most
