"""Whether utilisation can show a success above the baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.campaign.headroom import above_target, no_room
from gpudebug.core.statistics.metrics import Metric

CAMPAIGN = Campaign(baselines=(), hypotheses=())


@pytest.mark.parametrize(
    ("utilisation", "target", "room"),
    # A target is a wish: below it and above, only what is free up to 100 % bounds a success.
    [
        (93.4, None, False),
        (80.1, None, False),
        (80.0, None, True),
        (65.0, None, True),
        (13.7, 30.0, True),
        (None, None, True),
    ],
)
def test_only_what_is_free_bounds_a_success(
    utilisation: float | None, target: float | None, room: bool
) -> None:
    found = no_room(replace(CAMPAIGN, target=target), 20.0, utilisation)
    assert (found is None) is room
    assert found is None or found == (
        f"utilisation cannot show a success: the baseline is at {utilisation}%, and criteria.success asks "
        "for 20 points more; set metric: steps_per_s in gpudebug.yaml"
    )


def test_another_metric_has_no_ceiling() -> None:
    assert no_room(replace(CAMPAIGN, metric=Metric("steps_per_s")), 0.1, 99.0) is None


@pytest.mark.parametrize(
    ("unit", "metric"),
    [
        (None, "steps_per_s"),
        ("optimizer steps", "steps_per_s"),
        ("environment steps", "work_per_s (environment steps)"),
    ],
)
def test_the_campaigns_unit_of_work_is_offered(unit: str | None, metric: str) -> None:
    found = no_room(CAMPAIGN, 20.0, 93.4, unit)
    assert found is not None
    assert found.endswith(f"set metric: {metric} in gpudebug.yaml")


@pytest.mark.parametrize(
    ("utilisation", "target", "above"),
    [(93.4, None, True), (80.0, None, True), (65.0, None, False), (93.4, 95.0, False), (None, None, False)],
)
def test_above_the_target_throughput_alone_is_left_to_gain(
    utilisation: float | None, target: float | None, above: bool
) -> None:
    assert above_target(replace(CAMPAIGN, target=target), utilisation) is above
    assert above_target(None, 81.0)
