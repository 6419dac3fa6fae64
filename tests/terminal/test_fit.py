"""Texts fitted to a screen: none is wider, no number becomes another, each locale gets its letters."""

from __future__ import annotations

import io
import re
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.terminal.fit import Screen, screen, width

HERE = Screen(40)
PLAIN = Screen(40, ascii=True)
# Letters that are wide, that take no room, that turn the line around, that rewrite a terminal.
TEXTS = st.text(st.sampled_from("ab 1.模e\u0301\u200f\u202e\x1b[\t\n\u200d🤖") | st.characters(), max_size=60)


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("short", 10, "short"),
        ("exactly 10", 10, "exactly 10"),
        ("a" * 11, 10, "aaaaaaaaa…"),
        ("two\nlines\tand  a tab", 40, "two lines and a tab"),
        ("模型模型", 8, "模型模型"),
        ("模型模型模", 8, "模型模…"),
        ("e\u0301" * 9, 10, "e\u0301" * 9),
        ("rate of 123456", 12, "rate of…"),
        ("rate of 1e-5", 11, "rate of…"),
        ("rate of 1.5 and more", 13, "rate of 1.5…"),
        ("123456789012", 10, "…"),
        ("\x1b[31mred\x07", 40, "[31mred"),
        ("\u202ered\u200f", 40, "red"),
        ("", 10, ""),
    ],
)
def test_a_title_is_cut_to_its_columns(text: str, columns: int, shown: str) -> None:
    assert HERE.cut(text, columns) == shown


def test_without_unicode_the_ellipsis_is_three_dots() -> None:
    assert PLAIN.cut("a" * 11, 10) == "aaaaaaa..."
    assert PLAIN.wrapped("one two three four", 9, 1) == ["one ..."]
    assert PLAIN.spark([0, 50, 100], 40) == ".+@"
    assert HERE.spark([0, 50, 100], 40) == "▁▅█"


def test_letters_that_the_encoding_lacks_are_escaped_before_they_are_counted() -> None:
    assert Screen(40, encoding="ascii", ascii=True).cut("Größe", 40) == "Gr\\xf6\\xdfe"
    assert HERE.cut("\udc80", 40) == ""


@pytest.mark.parametrize(
    ("runs", "columns", "said"),
    [
        (0, 75, None),
        (1, 75, "▁{40}"),
        (2, 75, "▁{32} ▁{32}"),
        (5, 75, "▁{12} ▁{12} ▁{12} ▁{12} ▁{12}"),
        (7, 75, "▁{10} ▁{10} ▁{10} ▁{10} ▁{10} \\+ 2 runs"),
        (2, 29, "▁{11} \\+ 1 run"),
        (3, 5, "▁ \\+ 2 runs"),
    ],
)
def test_as_many_runs_as_there_is_room_for(runs: int, columns: int, said: str | None) -> None:
    lines = HERE.sparks([[0.0] * 40] * runs, columns)
    assert [bool(re.fullmatch(f"gpu_util {said}", line)) for line in lines] == (
        [] if said is None else [True]
    )


@given(TEXTS, st.integers(5, 60))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    for here in (HERE, PLAIN, Screen(40, encoding="ascii", ascii=True)):
        shown = here.cut(text, columns)
        assert width(shown) <= columns
        assert shown.isprintable()


@given(TEXTS)
def test_a_million_marks_on_one_letter_are_cut_too(text: str) -> None:
    assert len(HERE.cut("e" + "\u0301" * 100_000 + text, 20)) <= 81


@given(st.lists(st.text("ab1模", min_size=1, max_size=12), max_size=30), st.integers(12, 40))
def test_wrapped_lines_fit_and_hold_every_word(words: list[str], columns: int) -> None:
    lines = HERE.wrapped(" ".join(words), columns)
    assert " ".join(lines).split() == words
    assert all(width(line) <= columns or " " not in line for line in lines)
    for before, after in pairwise(lines):
        assert width(f"{before} {after.split(' ')[0]}") > columns


@given(st.lists(st.text("ab1", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(1, 4))
def test_what_is_left_out_is_whole_words(words: list[str], most: int) -> None:
    lines = HERE.wrapped(" ".join(words), 20, most)
    assert len(lines) <= most and all(width(line) <= 20 for line in lines)
    shown = " ".join(lines).split()
    assert shown == words or (shown[-1] == "…" and shown[:-1] == words[: len(shown) - 1])


def test_a_word_that_is_longer_than_a_line() -> None:
    assert HERE.wrapped("a /path/of/many/letters end", 12) == ["a", "/path/of/many/letters", "end"]
    assert HERE.wrapped("a /path/of/many/letters end", 12, 3) == ["a", "/path/of/ma…", "end"]


def test_lines_behind_a_label_are_aligned() -> None:
    assert Screen(20).labelled("Next     ", "test: hypothesis 1") == [
        "Next     test:",
        "         hypothesis",
        "         1",
    ]
    assert Screen(20).labelled("Next     ", "") == ["Next"]


@pytest.mark.parametrize(
    ("variables", "encoding", "drawn"),
    [
        ({}, "utf-8", True),
        ({"LANG": "en_GB.UTF-8"}, "utf-8", True),
        ({"LC_ALL": "C"}, "utf-8", False),
        ({"LC_ALL": "POSIX", "LANG": "en_GB.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "en_GB.UTF-8", "LANG": "C"}, "utf-8", True),
        ({"LC_ALL": "", "LANG": "en_GB.UTF-8"}, "utf-8", True),
        ({}, "ascii", False),
        ({}, "latin-1", False),
        ({}, "cp437", False),
        ({}, "no such", False),
    ],
)
def test_the_letters_of_the_screen(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], encoding: str, drawn: bool
) -> None:
    class Out(io.StringIO):
        pass

    Out.encoding = encoding  # type: ignore[assignment]
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Out())
    assert screen().ascii is not drawn


@pytest.mark.parametrize(("said", "columns"), [("120", 120), ("7", 32), ("-3", 80), ("x", 80), ("", 80)])
def test_the_columns_of_the_screen(monkeypatch: pytest.MonkeyPatch, said: str, columns: int) -> None:
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    monkeypatch.setenv("COLUMNS", said)
    assert screen().columns == columns
