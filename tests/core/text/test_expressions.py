"""Expressions of others are bounded: those that could take for ever are refused, all others are quick."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text.expressions import LONGEST, Unbounded, bounded


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
        *(
            r"(?i)(?:ſa|sa)+x",
            r"(?i)(?:µa|μa)+x",
            r"(?i)(?:ςa|σa)+x",
            r"(?i)(?:ka|\u212aa)+x",
            r"(?i)(?:ıa|ia)+x",
        ),
        *(r"(?i)(?:İa|ia)+x", r"(?i)(?:\ufb05a|\ufb06a)+x", r"(?:[^éa]|è)+x", r"(?a)(?:\W|é)+x"),
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
        *(
            r"(?:损失|准确)+x",
            r"(?i)(?:säge|söge)+x",
            r"(?:\d{1,3},)*\d{1,3}",
            r"[^|]*\|[^|]*\|(?P<value>[^|]*)",
            r"epoch (\d+)(?: of (\d+))?",
        ),
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


def test_letters_are_the_same_where_re_takes_them_for_one_another() -> None:
    from gpudebug.core.text.expressions import _caseless

    try:
        pairs = importlib.import_module("re._casefix")._EXTRA_CASES.items()
    except ImportError:  # Python 3.10
        pairs = [(e[0], e[1:]) for e in importlib.import_module("sre_compile")._equivalences]
    lower = importlib.import_module("_sre").unicode_tolower
    cased = [c for c in range(0x110000) if lower(c) != c]
    assert [c for c in cased if _caseless(c) != _caseless(lower(c))] == []
    assert [(c, d) for c, others in pairs for d in others if _caseless(c) != _caseless(d)] == []


DRAWN = """
import random, re
from gpudebug.core.text.expressions import Unbounded, bounded

draw = random.Random(7)
ALIKE = ["sſS", "kK\u212a", "iIıİ", "µμΜ", "ςσΣ", "ßẞ", "éÉ", "èÈ", "aA"]
SETS = ["[^éa]", "[sé]", "[ſ-ƀ]"]
TEXTS = ["s", "k", "i", "μ", "σ", "é", "è", "ß", "sa", "ka", "ia", "μa", "σa", "ßa"]

def spelt(word):
    return "".join(draw.choice(next(a for a in ALIKE if c in a)) for c in word)

def drawn(depth):
    kind = draw.randrange(4) if depth else 3
    if kind < 2:
        word = draw.choice(TEXTS)
        some = [draw.choice((spelt(word), spelt(word), drawn(0))) for _ in range(draw.choice((2, 2, 3)))]
        return "(?:" + "|".join(some) + ")"
    if kind == 2:
        return f"(?:{drawn(depth - 1)}){draw.choice(('+', '*', '?', '{1,3}'))}"
    return draw.choice((spelt(draw.choice(TEXTS)), draw.choice(SETS)))

taken = 0
for _ in range(4000):
    pattern = draw.choice(("(?i)", "(?i)", "")) + f"(?:{drawn(2)})+" + draw.choice(("x", "!$"))
    try:
        expression = bounded(pattern)
    except Unbounded:
        continue
    taken += 1
    print(ascii(pattern), flush=True)
    for text in TEXTS:
        # What takes for ever does so on less.
        list(expression.finditer((text * 60)[: min(60, expression.longest)]))
print("taken", taken)
"""


def test_letters_with_two_lower_cases_end_in_time() -> None:
    done = subprocess.Popen([sys.executable, "-c", DRAWN], stdout=subprocess.PIPE, text=True)
    try:
        said, _ = done.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        done.kill()
        said, _ = done.communicate()
        pytest.fail(f"takes for ever: {said.splitlines()[-1]}")
    assert done.returncode == 0
    assert int(said.split()[-1]) > 200
