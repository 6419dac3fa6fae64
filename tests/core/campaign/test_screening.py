"""Which hypotheses are looked at before one is tested, and the order that looks give."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.campaign.decide import Campaign, HypothesisState, decide
from gpudebug.core.campaign.screening import MOST, pays, seen_gain, tied, with_looks
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import Status


def campaign(*worths: float | None) -> Campaign:
    return Campaign(
        (),
        tuple(
            HypothesisState(n, Status.UNTESTED, mechanical=True, worth=worth, cost_s=20.0)
            for n, worth in enumerate(worths, 1)
        ),
    )


@pytest.mark.parametrize(
    ("worths", "expected"),
    [
        ((None, None, None), (1, 2, 3)),
        ((0.0, 0.0, 0.0), (1, 2, 3)),
        ((1.0, 1.0, 1.0, 0.5), (1, 2, 3)),
        ((1.0, 1.0, 0.5, 0.5), ()),
        ((None, None), ()),
        ((0.0, 2.0, 0.0, 0.0), ()),
        ((None,) * 12, tuple(range(1, MOST + 1))),
    ],
)
def test_three_that_wait_alike_are_looked_at(
    worths: tuple[float | None, ...], expected: tuple[int, ...]
) -> None:
    assert tied(campaign(*worths)) == expected


def test_no_look_where_another_thing_is_next() -> None:
    waiting = campaign(None, None, None)
    assert tied(replace(waiting, unweighed="the catalogue cannot be read")) == ()
    assert tied(replace(waiting, hypothesis_budget=0)) == ()
    one, *others = waiting.hypotheses
    assert tied(replace(waiting, hypotheses=(replace(one, problem=True), *others))) == ()


def test_the_best_look_goes_first_and_a_failed_one_last() -> None:
    waiting = campaign(None, None, None)
    action = decide(with_looks(waiting, {1: 2.0, 2: -math.inf, 3: 12.5}))
    assert action.hypothesis == 3
    assert action.why == (
        "hypothesis 3, the best of 3 untested by a short look each (12.5pp there, no verdict)"
    )
    action = decide(with_looks(waiting, {1: -4.0, 2: -math.inf, 3: -1.0}))
    assert action.hypothesis == 3
    assert "(no gain there, no verdict)" in action.why
    assert tied(with_looks(waiting, {1: -4.0, 2: -math.inf, 3: -1.0})) == ()


@given(st.lists(st.floats(-100, 100), min_size=3, max_size=8, unique=True))
def test_looks_order_whatever_they_showed(gains: list[float]) -> None:
    seen = dict(enumerate(gains, 1))
    action = decide(with_looks(campaign(*(None for _ in gains)), seen))
    best = max(seen.values())
    # Two gains may be equal once they are divided by what a trial costs.
    assert action.hypothesis is not None
    assert seen[action.hypothesis] == pytest.approx(best, abs=1e-9)


def test_those_that_were_not_looked_at_are_not_counted() -> None:
    action = decide(with_looks(campaign(None, None, None, 0.0), {1: 2.0, 2: 1.0, 3: 12.5}))
    assert "the best of 3 untested" in action.why


def test_a_look_is_short_beside_a_run_and_within_the_budget() -> None:
    assert pays(20.0, 40.0, 3, None)
    assert not pays(30.0, 40.0, 3, None)
    assert pays(20.0, 40.0, 3, 101.0)
    assert not pays(20.0, 40.0, 3, 100.0)


def test_the_gain_is_in_points_or_relative_and_unknown_without_a_side() -> None:
    assert seen_gain(Metric(), 20.0, 55.0) == pytest.approx(35.0)
    assert seen_gain(Metric("steps_per_s"), 10.0, 15.0) == pytest.approx(0.5)
    assert seen_gain(Metric("step_time", lower=True), 0.2, 0.1) == pytest.approx(1.0)
    assert seen_gain(Metric(), None, 55.0) is None
    assert seen_gain(Metric(), 20.0, None) is None
