"""The end of a log as a terminal would have shown it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text.terminal_text import rows

BARS = "".join(
    f"\r train: {n}%\n\r eval:  {n // 2}%\x1b[A" if n < 3 else f"\r train: {n}%\n\r eval:  {n // 2}%\n"
    for n in range(4)
)

TEXTS = {
    "lines": ("one\ntwo\n", ["one", "two"]),
    "no end": ("one\ntwo", ["one", "two"]),
    "crlf": ("one\r\ntwo\r\n", ["one", "two"]),
    "blank lines are left out": ("one\n\n  \ntwo\n\n", ["one", "two"]),
    "a bar's last redraw": ("start\n\r 10%\r 50%\r100%", ["start", "100%"]),
    "a shorter redraw leaves nothing of the longer": ("\rloading ...\rdone\n", ["done"]),
    "a bar that was wiped": ("start\n\r 10%\r      \r", ["start"]),
    "a return alone takes nothing away": ("\r100%\r", ["100%"]),
    "backspaces": ("10/100\x08\x08\x08\x08\x08\x0820/100\n", ["20/100"]),
    "more backspaces than letters": ("ab\x08\x08\x08\x08cd", ["cd"]),
    "two bars": (BARS, [" train: 3%", " eval:  1%"]),
    "the cursor goes up": ("a\nb\n\x1b[2AA\nB\nc", ["A", "B", "c"]),
    "up beyond the first line": ("a\n\x1b[99999AA\n", ["A"]),
    "wiped lines": ("bar 1\n\x1b[1A\x1b[2Kbar 2\n", ["bar 2"]),
    "wiped below": ("a\nb\nc\x1b[2A\x1b[Ja2", ["a2"]),
    "a cleared screen begins below": ("one\x1b[2J\x1b[Htwo", ["one", "two"]),
    "colours": ("\x1b[1;31mred\x1b[0m and \x1b]8;;http://x\x1b\\link\x1b]8;;\x07", ["red and link"]),
    "no sequence is left to a terminal": ("a\x1b[?1049hb\x1bcd\x9b2Je\x00\x07", ["abde"]),
    "direction marks": ("a\u202egpj.exe\u2066", ["agpj.exe"]),
    "tabs": ("a\tb", ["a   b"]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.values(), ids=TEXTS)
def test_rows(text: str, shown: list[str]) -> None:
    assert rows(text) == shown


@given(st.text(alphabet="ab\r\n\x08\x1b[2AJKHBGm;\u202e\x9b", max_size=60))
def test_whatever_comes_it_is_harmless(text: str) -> None:
    assert all(row.isprintable() and row.strip() for row in rows(text))
