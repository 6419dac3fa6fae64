from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import facts, stacks

from gpudebug.core.catalogue.model import Condition, Share, Term
from gpudebug.core.diagnosis.figures import equal, figure, holds, largest, number, similar, truth
from gpudebug.core.records import SectionFigures

SECTIONS = tuple(
    SectionFigures(name=n, calls=1, total_s=1, self_s=1, mean_s=1, min_s=1, max_s=1, share=s)
    for n, s in (("env.render", 0.3), ("env.resize", 0.1), ("update", 0.5))
)
KNOWN = facts(
    data_wait_share=0.6,
    loader_workers=0.0,
    amp=False,
    trains_on="cpu",
    sections=SECTIONS,
    flags={"workers": "0", "dataset.streaming": "true", "cache": True, "lr": "1e-3"},
    printed={"data.num_workers": "4", "policy": "act"},
    stacks=stacks(("data", "a/b.py:load", 1, 3.0, 0.0), ("other", "a/c.py:log", 1, 1.0, 1.0)),
    workers=stacks(("other", "d/decode.py:decode", 1, 1.0, 0.9)),
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"signal": "data_wait_share", "above": 0.2}, True),
        ({"signal": "data_wait_share", "below": 0.2}, False),
        ({"signal": "data_wait_share", "above": 0.5, "below": 0.7}, True),
        ({"signal": "data_wait_share", "above": 0.6}, False),
        ({"signal": "gc_share", "above": 0.2}, None),
        ({"signal": "loader_workers", "equals": 0}, True),
        ({"signal": "amp", "equals": False}, True),
        ({"signal": "amp", "above": 0.5}, None),
        ({"signal": "trains_on", "equals": "cuda"}, False),
        ({"signal": "trains_on", "above": 1}, None),
        ({"signal": "trains_on", "matches": "CPU|mps"}, True),
        ({"signal": "trains_on", "matches": "^(?!cpu)"}, False),
        ({"section": "render|resize", "above": 0.2}, True),
        ({"section": "teacher", "above": 0.2}, None),
        ({"flag": "(num_)?workers", "below": 1}, True),
        ({"flag": "work", "below": 1}, None),
        ({"flag": "cache", "equals": True}, True),
        ({"flag": r"dataset\.streaming", "equals": True}, True),
        ({"flag": "lr", "above": 0.0005, "below": 0.01}, True),
        ({"printed": "num_workers", "above": 2}, True),
        ({"printed": "policy", "equals": "ACT"}, True),
        ({"stack": "load", "phase": "data", "state": "waiting", "above": 0.7}, True),
        ({"stack": "decode", "above": 0.1}, False),
        ({"stack": "decode", "of": "workers", "above": 0.1}, True),
    ],
    ids=str,
)
def test_whether_a_condition_holds(condition: dict[str, Any], expected: bool | None) -> None:
    assert holds(Condition.model_validate(condition), KNOWN) is expected


def test_stacks_that_nobody_told_are_unknown_and_code_that_never_ran_is_not() -> None:
    term = Term(stack="decode")
    assert figure(term, facts()) is None
    found = figure(term, KNOWN)
    assert found is not None
    assert (found.value, found.place) == (0.0, None)


@pytest.mark.parametrize(
    ("value", "as_number", "as_truth"),
    [
        (True, None, True),
        ("off", None, False),
        ("0", 0.0, False),
        ("1e-3", 0.001, None),
        (4.0, 4.0, None),
        ("act", None, None),
        (None, None, None),
    ],
)
def test_values_as_numbers_and_truths(value: Any, as_number: float | None, as_truth: bool | None) -> None:
    assert number(value) == as_number
    assert value is None or truth(value) is as_truth


def test_values_are_equal_however_they_are_spelled() -> None:
    assert all(equal(a, b) for a, b in [("4", 4.0), (True, "yes"), ("Off", False), ("cuda", "CUDA")])
    assert not any(equal(a, b) for a, b in [("4", "5"), (True, "no"), ("x", True), ("cpu", "cuda")])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(0.6, 0.5, True), (0.6, 0.3, False), (0.04, 0.0, True), (0, 0, True), (8, 10, True), ("a", "A", True)],
)
def test_similar_figures(one: Any, other: Any, expected: bool) -> None:
    assert similar(one, other) is expected
    assert similar(other, one) is expected


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], None),
        ([{"signal": "gc_share"}], None),
        ([{"signal": "gc_share"}, {"signal": "data_wait_share"}], 0.6),
        ([{"signal": "data_wait_share", "times": 0.5}], 0.3),
        ([{"signal": "data_wait_share", "times": 9}], 1.0),
        ([{"stack": "decode", "of": "workers", "within": "data_wait_share"}], 0.6),
        ([{"stack": "decode", "of": "workers", "within": "gc_share"}], None),
        ([{"stack": "log"}, {"stack": "load"}], 0.75),
    ],
    ids=str,
)
def test_the_share_that_a_cause_explains(shares: list[dict[str, Any]], expected: float | None) -> None:
    found = largest(tuple(Share.model_validate(s) for s in shares), KNOWN)
    assert found == (None if expected is None else pytest.approx(expected))
