"""Free text in Markdown as GitHub reads it: CommonMark with tables, strikethrough and bare addresses."""

from __future__ import annotations

import html
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gpudebug.core.progress.sanitise import harmless
from gpudebug.core.text.shown import inline, most_alike, rows, verbatim

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# What GitHub makes a link of after Markdown was rendered.
LINKS = re.compile(r"@\w|#\w|\bGH-\d|://|\bwww\.|:[\w+-]+:", re.IGNORECASE)

HOSTILE = (
    "<script>alert(1)</script>",
    "<!-- never closed",
    "<img src=x onerror=y>",
    "a | b | c",
    "# no heading",
    "#123 and owner/repo#45 and GH-7",
    "thanks @octocat and @org/team, a@b.example",
    "[a](javascript:x) ![b](c) [ref][] [x]: y",
    "`code` ``more`` ```fence",
    "*a* **b** _c_ __d__ ~e~ ~~f~~ num_workers",
    "https://github.com/o/r/issues/1 www.example.org",
    "&lt;b&gt; &amp; &#64;octocat &copy;",
    ":tada: 10:20:30 a:b",
    "$x^2$ and $$y$$ and $`z`$",
    "1. one",
    "2) two",
    "- item",
    "-- ---",
    "===",
    "+ plus",
    "> quoted",
    "trailing backslash \\",
    "\\| \\` \\@octocat \\",
    "two\n\nparagraphs\r# heading",
    "\u202eright to left\u202c \x1b[31mred\x00",
    "{{ jinja }} {% raw %}",
    "",
)


def rendered(markdown: str) -> str:
    return str(GITHUB.render(markdown))


def shown(markup: str) -> str:
    """What a reader sees of it."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup)).replace("\u200b", "").strip()


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_shown_as_it_is(text: str) -> None:
    plain = harmless(text, limit=300)
    for markup in (rendered(inline(text)), rendered(f"- {inline(text)}"), rendered(f"Said: {inline(text)}.")):
        assert set(re.findall(r"</?(\w+)", markup)) <= {"p", "ul", "li", "span"}
        assert plain in shown(markup)
    assert not LINKS.search(html.unescape(re.sub(r"<[^>]*>", "", rendered(inline(text)))))


@given(st.text(st.sampled_from("ab1_*`[]()<>|#@:/.-+=~$&!\\ \n\t"), max_size=30))
def test_nothing_made_of_markup_becomes_some(text: str) -> None:
    markup = rendered(f"| x |\n|---|\n| {inline(text)} |\n")
    (cell,) = re.findall(r"<td>(.*?)</td>", markup, re.DOTALL)
    assert markup.count("<tr>") == 2
    assert set(re.findall(r"</?(\w+)", cell)) <= {"span"}
    assert shown(cell) == harmless(text, limit=300).strip()
    assert not LINKS.search(html.unescape(re.sub(r"<[^>]*>", "", cell)))


def test_an_everyday_title_stays_readable_in_the_source() -> None:
    said = "Too few workers (num_workers=0), 12.5% of steps: 3 ms"
    assert inline(said) == said


def test_it_is_cut_where_it_is_too_long() -> None:
    assert inline("a" * 30, 10) == "a" * 9 + "…"
    assert verbatim("a b\n c" * 30, 10) == "a b ca b …"


def test_a_code_span_gets_what_can_be_seen() -> None:
    assert verbatim("\x1b[31m--set\u202e a=`b`\n c") == "--set a=`b` c"


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


SAME = [
    ("The loader waits", "the LOADER waits"),
    ("The loader waits for the store", "Waiting for the store: the loader"),
    ("The loader has too few workers", "Too few loader workers"),
    ("Unused image frames are copied to the GPU", "Image frames that nobody uses are copied to the GPU"),
    ("Batches are copied from pageable memory", "Pageable memory slows batch copies"),
    ("Synchronous logging stalls each step", "Logging synchronously stalls every step"),
    ("cudnn.benchmark is off", "cudnn benchmark disabled"),
    ("num_workers is 0", "Num workers is 0"),
    ("Mixed precision is off", "Mixed-precision off"),
    ("ＬＯＡＤＥＲ waits", "loader waits"),
]
OTHER = [
    ("The loader has too few workers", "Checkpoints are written each step"),
    ("Checkpoints block the training", "Evaluation blocks the training"),
    ("The tokenizer runs in the main process", "The image decoder runs in the main process"),
    ("Data is decoded in the main process", "Data is augmented in the main process"),
    ("The loader waits", "The store waits"),
    ("The loader waits", "GPU clocks are throttled"),
    ("By 1", "By 2"),
    ("", "The loader waits"),
    ("…", "…"),
    ("The", "The"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_titles_of_one_cause(one: str, other: str) -> None:
    assert most_alike(one, [(3, "Checkpoints are written each step"), (7, other)]) == 7


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_titles_of_two_causes(one: str, other: str) -> None:
    assert most_alike(one, [(7, other)]) is None


def test_the_most_alike_is_named_and_the_first_of_equals() -> None:
    others = [(1, "The loader waits on disk"), (2, "The loader waits"), (3, "Waits, the loader")]
    assert most_alike("The loader waits", others) == 2
    assert most_alike("The loader waits", []) is None


@given(st.text(max_size=200), st.text(max_size=200))
def test_titles_are_alike_both_ways(one: str, other: str) -> None:
    assert most_alike(one, [(1, other)]) == most_alike(other, [(1, one)])


def test_five_hundred_long_titles_are_compared_in_a_moment() -> None:
    title = "the loader waits for shards of the store " * 5
    begin = time.monotonic()
    most_alike(title[:200], [(n, f"{n} {title[n % 40 :]}"[:200]) for n in range(500)])
    assert time.monotonic() - begin < 5.0
