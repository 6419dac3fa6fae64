"""The lines of a progress file as Markdown shows them."""

from __future__ import annotations

import time

import pytest

from gpudebug.core import progress
from gpudebug.core.progress.shown import shown_lines


def shown(text: str) -> list[str]:
    document = progress.parse(text.encode(), "p.md")
    return [line.text for line in shown_lines(document, 0, len(document.data))]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("<!-- a\nb -->\nc", ["c"]),
        ("<!-- a --> b\nc", ["b", "c"]),
        ("<!--> b\nc", ["b", "c"]),
        ("<!--->\nc\n<!-- -->", ["c"]),
        ("a <!-- b --> c", ["a c"]),
        ("`<!--` a `-->`", ["<!-- a -->"]),
        ("\\<!-- a -->", ["<!-- a -->"]),
        ("a <!-- b\nc", ["a <!-- b", "c"]),
        ("<!-- a", []),
        ("> - [x] **a** <b>b</b> [c](d)", ["a b c"]),
    ],
)
def test_comments_and_marks_are_not_shown(text: str, seen: list[str]) -> None:
    assert shown(text) == seen


def test_fences_are_marked_and_rows_have_their_columns() -> None:
    document = progress.parse(b"```\nlog\n```\n| a | b |\n|---|---|\n| x | 2 |\n", "p.md")
    lines = list(shown_lines(document, 0, len(document.data)))
    assert [line.fenced for line in lines] == [True, False, False]
    assert lines[-1].cells == (("a", "x"), ("b", "2"))
    assert lines[-1].keyed == ("x", "2")
    assert document.data[lines[-1].offset :] == b"| x | 2 |\n"


@pytest.mark.parametrize("part", ["<!--", "`<!--", "--> <!--", "\n<!-- -->", "\n```\n```", "|", "\n|a|\n|-|"])
def test_no_file_takes_long(part: str) -> None:
    begun = time.process_time()
    shown("a " + part * 20_000)
    assert time.process_time() - begun < 8
