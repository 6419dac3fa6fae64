"""A campaign in one picture, of whatever there is of it."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
from tests.support.campaign_data import (
    a_gain,
    a_hypothesis,
    a_run,
    a_step,
    campaign_data,
    empty_data,
)
from tests.support.pictures import painted, size

from gpudebug.edges import charts
from gpudebug.edges.charts import campaign, canvas, marks

HOSTILE = "$x^2_{ \\frac <b>&amp; 模型 \u202eright\x1b[31m\nline \ud800 " + "long " * 60
RATIO: dict[str, Any] = {"improvement": 1.5, "improvement_ci": [1.4, 1.6], "metric": "latency_p50"}
SLOW = {"metric": "latency_p50", "unit": "s", "lower": True, "reference": None}
EIGHT = tuple(f"GPU-{i}" for i in range(8))

DRAWN = {
    "nothing": empty_data(),
    "a baseline": campaign_data(),
    "each verdict": campaign_data(
        a_hypothesis(1, accepted=1),
        a_hypothesis(2, "REJECTED", 2.0),
        a_hypothesis(3, "INCONCLUSIVE", 15.0),
        a_hypothesis(4, "INVALID", None, why="the device was shared: 2 processes"),
        a_hypothesis(5, "UNTESTED"),
        gain=a_gain(20.0, 60.3, a_step(1, 20.0, 60.0)),
    ),
    "a hundred": campaign_data(*(a_hypothesis(n, "REJECTED", n / 10, trial_runs=[]) for n in range(1, 101))),
    "eight GPUs": campaign_data(a_hypothesis(1), devices=EIGHT),
    "hostile texts": campaign_data(
        a_hypothesis(1, title=HOSTILE, why=HOSTILE),
        a_hypothesis(2, "VALIDATED", None, title=HOSTILE, verified=False, claimed=HOSTILE),
    )
    | {"gpudebug": HOSTILE},
    "another metric": campaign_data(
        a_hypothesis(1, delta=None, **RATIO),
        gain=a_gain(0.04, 0.03, a_step(1, 0.04, 0.027), **{**SLOW, "target": 0.02}),
    ),
    "not measured since": campaign_data(
        a_hypothesis(1, accepted=1), gain=a_gain(None, None, a_step(1, None, None))
    ),
    "runs that are gone": {**campaign_data(a_hypothesis(1)), "runs": {}},
    "no interval": campaign_data(a_hypothesis(1, delta_ci=None)),
    "unknown utilisation": campaign_data(
        a_hypothesis(1), runs=[a_run("0001-baseline-workload", utilisation=None, timeline=[], spark=[])]
    ),
}


@functools.cache
def drawn(name: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return charts.campaign_picture(DRAWN[name])


@pytest.mark.parametrize("name", ["nothing", "each verdict", "hostile texts", "another metric"])
def test_a_campaign_is_drawn_as_wide_as_a_page(name: str) -> None:
    assert size(drawn(name))[0] == campaign.WIDTH * canvas.DPI


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_any_campaign_can_be_drawn(name: str) -> None:
    width, height = size(drawn(name))
    assert width == campaign.WIDTH * canvas.DPI
    assert 150 < height < 1600


@pytest.mark.slow
def test_it_grows_with_what_there_is_up_to_a_limit() -> None:
    heights = [size(drawn(name))[1] for name in ("nothing", "a baseline", "each verdict", "a hundred")]
    assert heights == sorted(heights)
    assert len(set(heights)) == len(heights)


def test_verdicts_and_both_sides_are_painted_in_their_colours() -> None:
    picture = drawn("each verdict")
    for status in marks.statuses():
        assert painted(picture, marks.of_status(status).colour) > 50
    for side in (marks.BEFORE, marks.AFTER):
        assert painted(picture, side) > 200
    assert painted(drawn("nothing"), marks.AFTER) == painted(drawn("nothing"), marks.BEFORE) == 0


def test_a_hypothesis_lies_where_its_baseline_and_its_delta_put_it() -> None:
    data = DRAWN["each verdict"]
    scale = campaign._Scale(data)
    spans = [scale.span(h) for h in data["hypotheses"]]
    assert spans[0] == pytest.approx((20.0, 60.0, 58.0, 62.0))
    assert spans[3] is None
    assert [(level.name, level.value) for level in scale.levels] == [
        ("baseline", 20.0),
        ("now", 60.3),
        ("target", 80.0),
        ("reference", 90.0),
    ]


def test_another_metric_is_drawn_in_times_its_baseline() -> None:
    data = DRAWN["another metric"]
    scale = campaign._Scale(data)
    assert scale.span(data["hypotheses"][0]) == pytest.approx((1.0, 1.5, 1.4, 1.6))
    assert {level.name: scale.level(level.value) for level in scale.levels} == pytest.approx(
        {"baseline": 1.0, "now": 4 / 3, "target": 2.0}
    )
