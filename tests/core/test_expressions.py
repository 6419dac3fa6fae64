"""Expressions of others are bounded: those that could take for ever are refused, all others are quick."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudebug.core.expressions import LONGEST, Unbounded, bounded


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"(\w+\s?)+\x21",
            "(a+)+b",
            "(a*)*b",
            "(a|a)*b",
            "(.*a){12}",
            "(a?){30}a{30}",
            "a?" * 30 + "a" * 30,
        ),
        *(r".*.*.*x", r"(a)\1", r"(x+x+)+y", r"^(\d+)*$", r"(?=(a+)+b)x", r"((a{0,100}){0,100}){0,100}b"),
        *(r"(?:step|steps)+x", r"(ab|abab)+c", r"(?s:(?:.*\n)*x)", r"(?i)([a-z]+)*", r"(?P<a>x)(?(a)y|z)"),
        *(r"(a|b|ab)*c", r"(?:(?:ab)?c?)*d", r"(?:[a-z]+[a-y]*)+!", r"(\s*\w*\s*)*=", "x" * 1001),
    ],
)
def test_what_could_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(Unbounded):
        bounded(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"loss:\s*(?P<value>\S+)", r"loss[=:]\s*(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"),
        *(r"step\s+(\d+).*loss.*acc=(?P<value>\S+)", r"(?:\w+\s+)*!", r"(?:\\.|[^\"\\])*\"", r"^\[\d+/\d+\]"),
        *(
            r".*loss (?P<value>[\d.]+)",
            r"(?i)(?:train|val)_loss[ :=]+(?P<value>\S+)",
            r"\bloss\b",
            r"(?<!val_)loss",
        ),
        *(r"(?:\d{1,3},)*\d{1,3}", r"[^|]*\|[^|]*\|(?P<value>[^|]*)", r"epoch (\d+)(?: of (\d+))?"),
    ],
)
def test_what_people_write_is_taken(pattern: str) -> None:
    assert bounded(pattern).longest >= 200


def test_a_text_is_matched_up_to_what_is_bounded() -> None:
    expression = bounded("a+$")
    assert expression.longest < LONGEST
    assert not list(expression.finditer("b" * expression.longest + "a"))


ATOMS = st.sampled_from(["a", "b", ".", r"\w", r"\d", r"\s", "[ab]", "[^a]", "ab", "1", " "])
PARTS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{0,3}", "{2,9}", "*?"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: f"(?:{'|'.join(p)})"),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(PARTS, st.sampled_from(["a", "ab", "1a", "aab ", " ", "1"]))
def test_whatever_is_taken_is_quick(pattern: str, piece: str) -> None:
    try:
        expression = bounded(f"{pattern}!$")
    except Unbounded:
        return
    text = (piece * LONGEST)[: expression.longest]
    start = time.process_time()
    list(expression.finditer(text))
    assert time.process_time() - start < 10
