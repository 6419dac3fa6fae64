"""The recorded order: read back as it was written, and put onto a campaign."""

from __future__ import annotations

import json

import pytest

from gpudebug.core.campaign.decide import Campaign, HypothesisState, decide
from gpudebug.core.campaign.order import NO_DIAGNOSIS, UNKNOWN, HypothesisOrder, order_in, ordered
from gpudebug.core.words import Status

ORDER = HypothesisOrder(
    "2026-11-23T14:02:00+00:00", "gpudebug next", ("0001-a",), "gpu_util", shares={2: 0.5}
)


def campaign() -> Campaign:
    return Campaign((), tuple(HypothesisState(n, Status.UNTESTED, mechanical=True) for n in (1, 2, 3)))


def test_what_was_written_is_read() -> None:
    for order in (
        ORDER,
        HypothesisOrder("w", "b", (), "m", unweighed="why"),
        HypothesisOrder("w", "b", (), "m", offer="x"),
        HypothesisOrder("w", "b", (), "m", shares={1: 0.0, 2: 0.0}),
    ):
        assert order_in(json.loads(json.dumps(order.as_json()))) == order


@pytest.mark.parametrize(
    "wrong",
    [
        {"when": None},
        {"baseline": "0001-a"},
        {"baseline": [1]},
        {"cost_s": "20"},
        {"offer": ["x"]},
    ],
)
def test_anything_else_is_no_order(wrong: dict[str, object]) -> None:
    assert order_in({**ORDER.as_json(), **wrong}) is None
    assert order_in([]) is None
    assert order_in({}) is None


def test_what_is_worth_most_goes_first() -> None:
    action = decide(ordered(campaign(), ORDER))
    assert action.hypothesis == 2
    assert action.why.endswith("the best expected gain of 3 untested (50.0% of the time)")


def test_the_share_of_the_time_decides_where_it_is_recorded() -> None:
    order = HypothesisOrder("w", "b", (), "m", shares={1: 0.36, 2: 0.3})
    assert order_in(json.loads(json.dumps(order.as_json()))) == order
    action = decide(ordered(campaign(), order))
    assert action.hypothesis == 1
    assert action.why.endswith("expected gain of 3 untested (36.0% of the time)")
    without = order_in({**json.loads(json.dumps(order.as_json())), "shares": [1]})
    assert decide(ordered(campaign(), without)).why.endswith(UNKNOWN)


def test_without_an_order_the_file_decides_and_the_command_is_named() -> None:
    for order in (None, HypothesisOrder("w", "b", (), "m", offer="x")):
        action = decide(ordered(campaign(), order))
        assert action.hypothesis == 1
        assert action.why.endswith(f"the first in the file: {UNKNOWN}")
    assert NO_DIAGNOSIS.endswith(": gpudebug diagnose")
