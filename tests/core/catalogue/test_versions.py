"""Versions and ranges of them, by their numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.catalogue.versions import bounds, compare, numbers, reaches_below, reaches_from, within

VERSION = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        ("4.39.0", "4.39", 0),
        ("4.4", "4.39", -1),
        ("4.39.0.dev0", "4.38.2", 1),
        ("2.13.0+cu128", "2.13", 0),
        ("0.6.2rc1", "0.6.2", 0),
        ("v1.2", "1.2", 0),
        ("new", "0", 0),
    ],
)
def test_versions_are_ordered_by_their_numbers(a: str, b: str, order: int) -> None:
    assert (compare(a, b), compare(b, a)) == (order, -order)


@given(VERSION, VERSION)
def test_the_order_is_that_of_the_numbers(a: str, b: str) -> None:
    left, right = (list(map(int, v.split("."))) for v in (a, b))
    size = max(len(left), len(right))
    padded = [part + [0] * (size - len(part)) for part in (left, right)]
    assert compare(a, b) == (padded[0] > padded[1]) - (padded[0] < padded[1])
    assert within(a, f">={a}") and within(a, f"<={a}") and not within(a, f"<{a}")


@pytest.mark.parametrize(
    ("version", "range_", "holds"),
    [
        ("0.5", ">=0.4,<0.6", True),
        ("0.6.0", ">=0.4, <0.6", False),
        ("0.3", ">=0.4", False),
        ("0.4", "!=0.4", False),
        ("0.4", "==0.4.0", True),
        ("0.5", ">0.4", True),
    ],
)
def test_a_range_holds_some(version: str, range_: str, holds: bool) -> None:
    assert within(version, range_) is holds


@pytest.mark.parametrize("text", ["new", ">=", "0.4", ">=0.4 <0.5", "", ">=0.4,"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a range of versions"):
        bounds(text)


@pytest.mark.parametrize(
    ("range_", "below", "beyond"),
    [
        (">=0.6", False, True),
        ("<0.6", True, False),
        (">=0.4", True, True),
        ("==0.5", True, False),
        ("<=0.6", True, True),
    ],
)
def test_how_far_a_range_reaches(range_: str, below: bool, beyond: bool) -> None:
    assert (reaches_below(range_, "0.6"), reaches_from(range_, "0.6")) == (below, beyond)


def test_what_is_no_version_has_no_numbers() -> None:
    assert (numbers("unknown"), numbers("1.2rc1")) == (None, (1, 2))
