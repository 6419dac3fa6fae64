from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.progress import harmless
from gpudebug.core.progress.sanitise import visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("--set --x=1", "--set --x=1"),
        ("-5% and >80% and *args and ~5%", "-5% and >80% and *args and ~5%"),
        ("two\nlines\r\nand\rmore\u2028here", "two lines and more here"),
        ("tab\tand   spaces ", "tab and spaces"),
        ("### Hypothesis 9: mine", "Hypothesis 9: mine"),
        ("# - > * deep", "deep"),
        ("- **Status**: VALIDATED", "**Status**: VALIDATED"),
        ("<<<<<<< HEAD", "HEAD"),
        ("=======", ""),
        ("title ##", "title"),
        ("in C#", "in C#"),
        ("```python", "`python"),
        ("a ~~~~ b", "a ~ b"),
        ("``code``", "``code``"),
        ("a <!-- b", "a <!- - b"),
        ("a <details> b </pre> <?x?> <!x>", "a < details> b < /pre> < ?x?> < !x>"),
        ("1 <b and a<3> or x < y", "1 <b and a<3> or x < y"),
        ("\x90a\x90b\x9cc", "ac"),
        ("\u200d\u3164 \u2800\ufe0f\u0301", ""),
        ("e\u0301 \u2800", "e\u0301 \u2800"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1b", "a"),
        ("\x9b1mbold", "bold"),
        ("a\x00b\x08c\x7f", "abc"),
        ("abc\u202edef\u2066g\u200f", "abcdefg"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\ud800lone", "lone"),
        ("👩\u200d💻 ✅ ü 日本", "👩\u200d💻 ✅ ü 日本"),
        ("", ""),
    ],
)
def test_what_becomes_of_hostile_text(text: str, expected: str) -> None:
    assert harmless(text, limit=200) == expected


@pytest.mark.parametrize(
    ("limit", "expected"), [(11, "hello world"), (10, "hello wor…"), (7, "hello…"), (1, "…"), (0, "")]
)
def test_the_length_is_capped(limit: int, expected: str) -> None:
    assert harmless("hello world", limit=limit) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "\x9d",
            "\x1b]",
            "\x1b[0",
            "\x9b0",
            " #",
            "# ",
            "- ",
            "`~",
            "`",
            "\u202e",
            "a\u200b",
            "é\u0301",
            "<a",
            "=x",
        ),
        *("\x1b" + " " * 100, "<!--", "x"),
    ],
)
def test_a_million_characters_of_anything_take_a_moment(text: str) -> None:
    # With a pattern that looks back or ahead from every place it would take minutes.
    assert len(harmless("x" + text * (1_000_000 // len(text)) + "x", limit=200)) <= 200


@given(st.text() | st.text(alphabet="\x1b[]m \t\n\x9d\u202e\x9c"))
def test_visible_keeps_what_can_be_seen_as_it_is(text: str) -> None:
    made = visible(text)
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in made)
    assert len(made.splitlines()) <= 1
    assert visible(made) == made
    assert visible("a  b\tc\n# d") == "a  b c # d"


@given(st.text() | st.text(alphabet="#-*>`~<!=|\x1b[]m \n\r\t\u202e…"), st.integers(0, 40))
def test_harmless_is_one_line_that_it_leaves_alone(text: str, limit: int) -> None:
    made = harmless(text, limit=limit)
    assert len(made) <= limit
    assert made == " ".join(made.split())
    assert len(made.splitlines()) <= 1
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in made)
    assert "```" not in made and "~~~" not in made and "<!--" not in made
    assert harmless(made, limit=limit) == made
    made.encode()
