"""Differences between what follows and what stands there."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpudebug.core.redaction.alike import alike, differences

RECORD: dict[str, Any] = {
    "status": "VALIDATED",
    "delta": {"value": 33.6, "low": 31.2, "high": 36.0},
    "gates": [{"name": "loss", "result": "pass"}, {"name": "delta", "result": "pass"}],
    "devices": [{"name": "A", "util": 1.0}, {"name": "A", "util": 2.0}],
    "curve": [[1.0, 2.0], [2.0, 1.5]],
    "hollow": False,
    "steps": 120,
    "reason": None,
}

DIFFERENT: dict[str, tuple[list[Any], Any, str]] = {
    "a text": (["status"], "REJECTED", "status"),
    "a digit": (["delta", "value"], 33.7, "delta.value"),
    "a gate, by its name": (["gates", 1, "result"], "fail", "gates[delta].result"),
    "one of two of a name, by its place": (["devices", 1, "util"], 9.0, "devices[1].util"),
    "unknown for a figure": (["delta"], None, "delta"),
    "a figure for unknown": (["reason"], 1, "reason"),
    "true for a number": (["steps"], True, "steps"),
    "a number for false": (["hollow"], 0, "hollow"),
    "a shorter list": (["curve"], [[1.0, 2.0]], "curve"),
    "text for a number": (["steps"], "120", "steps"),
    "a list for an object": (["delta"], [], "delta"),
    "a name that is none": (["gates", 0, "name"], ["x"], "gates[0].name"),
}


@pytest.mark.parametrize(("path", "value", "field"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_named(path: list[Any], value: Any, field: str) -> None:
    found = copy.deepcopy(RECORD)
    inside: Any = found
    for step in path[:-1]:
        inside = inside[step]
    expected, inside[path[-1]] = inside[path[-1]], value
    [difference] = differences(RECORD, found)
    assert (difference.field, difference.expected, difference.found) == (field, expected, value)


ALIKE: dict[str, tuple[Any, Any]] = {
    "rounding of another machine": (0.1 + 0.2, 0.3),
    "a whole number": (2.0, 2),
    "a key that was not known then": ({"a": 1, "b": 2}, {"a": 1}),
    "a key that is not known any more": ({"a": 1}, {"a": 1, "b": 2}),
    "gates in another order": (RECORD["gates"], RECORD["gates"][::-1]),
    "a secret that is known no more": ("login with abcdef12 failed", "login with [redacted] failed"),
}


@pytest.mark.parametrize(("expected", "found"), ALIKE.values(), ids=ALIKE)
def test_what_differs_for_no_reason_of_the_run_is_alike(expected: Any, found: Any) -> None:
    assert list(differences(expected, found)) == []


def test_a_gate_that_is_gone_and_one_too_many_are_named() -> None:
    found = [*RECORD["gates"][1:], {"name": "luck", "result": "pass"}]
    assert [(d.field, d.expected is None, d.found is None) for d in differences(RECORD["gates"], found)] == [
        ("[loss]", False, True),
        ("[luck]", True, False),
    ]


def test_the_first_value_of_a_series_stands_for_the_rest() -> None:
    assert [d.field for d in differences([1.0, 2.0, 3.0], [1.0, 5.0, 6.0])] == ["[1]"]


TEXTS = {
    "the same": ("27.4%", "27.4%", True),
    "other white space": ("a  b\nc", "a b c", True),
    "a digit": ("27.4%", "28.4%", False),
    "redacted, then": ("key=abc, end", "key=[redacted], end", True),
    "redacted, now": ("key=[redacted], end", "key=abc, end", True),
    "redacted twice": ("token=[redacted] key=[redacted]", "token=1 key=2", True),
    "redacted, and another end": ("key=abc, end", "key=[redacted], fin", False),
    "redacted, and another beginning": ("key=abc", "no=[redacted]", False),
    "redacted, and another middle": ("a=abcdef and b=ghijkl", "a=[redacted] or b=[redacted]", False),
    "a figure": ("+9.1pp (95% CI +8 to +10)", "+9[redacted])", False),
    "an outcome": ("SUCCESS", "[redacted]", False),
    "too short for a secret": ("lr is 0.1 now", "lr is [redacted] now", False),
    "an option": ("train.py --lr=0.1 --work=0.2", "train.py --lr=0.1 [redacted]", False),
    "two words": ("login with abcdef12 and more failed", "login with [redacted] failed", False),
    "a part of a word": ("login with abcdef12 failed", "login with ab[redacted] failed", False),
    "the parts overlap": ("aba", "ab[redacted]ba", False),
}


@pytest.mark.parametrize(("one", "other", "same"), TEXTS.values(), ids=TEXTS)
def test_texts_are_alike_whichever_is_redacted(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is alike(other, one) is same


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(json_values)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert list(differences(value, copy.deepcopy(value))) == []


@given(st.text(max_size=20), st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_whatever_was_redacted_the_rest_decides(before: str, after: str, secret: str) -> None:
    assume(secret.strip())
    named = f"{before} password={secret} {after}"
    assert alike(named, f"{before} password=[redacted] {after}")
