"""The brief's page: it keeps its limit whatever it is told, folds the oldest first, and lets nothing out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.agents import page
from gpudebug.core.agents.page import PagePart, Tried
from gpudebug.core.text.values import short_digest

HOSTILE = st.text() | st.text(alphabet="`~#->*\"'\\ \n\r\x1b[]m\x9d\u202e\u2028<!ab…", max_size=300)
LINES = st.lists(HOSTILE, max_size=30)


def more(n: int) -> str:
    return f"- and {n} more"


def tried(n: int, size: int = 60) -> Tried:
    return Tried(n, "REJECTED", lambda width: f"h{n} {'b' * size}"[:width])


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1200), st.integers(0, 900), st.integers(0, 5))),
    st.integers(0, 4000),
    st.integers(0, 6000),
)
def test_shares_never_exceed_the_room_and_serve_the_least_first(
    rows: list[tuple[int, int, int, int]], end: int, room: int
) -> None:
    asked = [(wanted, least, rank) for wanted, least, _, rank in rows]
    given_ = page.shares(asked, room)
    assert sum(given_) <= max(room, 0)
    assert all(0 <= got <= wanted for got, (wanted, _, _) in zip(given_, asked, strict=True))
    if sum(min(wanted, least) for wanted, least, _ in asked) <= room:
        assert all(got >= min(w, least) for got, (w, least, _) in zip(given_, asked, strict=True))
    if sum(wanted for wanted, _, _ in asked) <= room:
        assert given_ == [wanted for wanted, _, _ in asked]


def test_a_page_is_whole_where_there_is_room_and_cut_by_rank_where_not() -> None:
    parts = [
        PagePart(lambda n: "x" * min(n, 500), 10, 500, 2),
        PagePart(lambda n: "y" * min(n, 300), 10, 300, 1),
    ]
    assert page.page("head", parts, "end", 2000) == f"head\n\n{'x' * 500}\n\n{'y' * 300}\n\nend"
    tight = page.page("head", parts, "end", 400)
    assert len(tight) <= 400 and tight.startswith("head\n\n") and tight.endswith("\n\nend")
    assert tight.count("y") == 300
    assert page.page("head", parts, "end", 5) == "head\n\nend"


@given(HOSTILE, st.integers(1, 80))
def test_what_is_quoted_stays_in_its_quotes_on_one_line(text: str, limit: int) -> None:
    made = page.quoted(text, limit)
    assert len(made) <= limit + 2
    assert made == "" or (made[0], made[-1], made.count('"')) == ('"', '"', 2)
    assert len(made.splitlines()) <= 1


@given(LINES, st.integers(0, 2000))
def test_a_fence_cannot_be_closed_from_inside(lines: list[str], limit: int) -> None:
    made = page.fenced(lines, limit)
    assert len(made) <= limit
    if not made:
        return
    first, *inner, last = made.split("\n")
    assert first == f"{last}text" and re.fullmatch("`{3,}", last)
    assert not any(last in line for line in inner)
    assert all(line.isprintable() or not line.isascii() for line in inner)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", made)
    assert all(len(line) <= 160 for line in inner)


def test_of_a_log_the_last_lines_are_kept() -> None:
    made = page.fenced([f"line {n} {'x' * 40}" for n in range(20)], 300)
    assert made.splitlines()[1].endswith("lines left out]")
    assert made.splitlines()[-2].startswith("line 19")


@given(LINES, st.integers(-20, 1500))
def test_a_section_of_bullets_fits_and_counts_what_it_leaves_out(lines: list[str], limit: int) -> None:
    plain = ["".join(line.split()) for line in lines]
    made = page.bullets("Title", plain, limit, "elsewhere")
    assert len(made) <= max(limit, 0)
    shown = made.count("\n- ")
    left = re.search(r"\n- and (\d+) more: elsewhere\Z", made)
    if made:
        assert len(plain) == (shown - 1 + int(left[1]) if left else shown)


@given(HOSTILE, st.integers(0, 800))
def test_a_block_quote_marks_every_line(text: str, limit: int) -> None:
    made = page.block_quote(text, limit, "… more")
    assert len(made) <= limit
    assert all(line.startswith(">") for line in made.split("\n") if made)


def test_a_block_quote_is_cut_between_words_and_says_so() -> None:
    made = page.block_quote("one two three\n" * 50, 60, "… more")
    assert made.splitlines()[-1] == "> … more"
    assert made.splitlines()[0] == "> one two three"
    assert page.block_quote("one\n\n# two", 60, "… more") == "> one\n>\n> # two"


@given(st.integers(0, 40), st.integers(0, 600), st.integers(0, 400), st.integers(0, 3000))
def test_history_fits_and_loses_nobody(newest: int, older: int, size: int, limit: int) -> None:
    rows = [tried(older + newest - i, size) for i in range(newest)]
    past = [(older - i, ("REJECTED", "VALIDATED")[i % 2]) for i in range(older)]
    lines = page.history(rows, past, limit)
    assert len("\n".join(lines)) <= limit
    shown = sum(bool(re.match(r"- h\d", line)) for line in lines)
    counted = re.match(r"- (\d+) (?:more|tried): ", lines[-1]) if lines else None
    if counted:
        assert shown + int(counted[1]) == newest + older
    elif limit > 600:
        assert shown == newest + older


def test_the_last_ten_share_the_room_and_the_rest_is_counted() -> None:
    older = [(n, "VALIDATED") for n in range(30, 0, -1)]
    lines = page.history([tried(40 - i, 1000) for i in range(10)], older, 1700)
    assert [line[:6] for line in lines[:10]] == [f"- h{n} " for n in range(40, 30, -1)]
    assert lines[10].startswith("- 30 more: 30 VALIDATED (h30")
    few = page.history([tried(40 - i, 1000) for i in range(10)], older, 800)
    assert few[-1].startswith("- 34 more: 30 VALIDATED (h30, h29") and len(few) == 7
    assert page.history([], [], 100) == []


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (200, f"--a=1 --b={'x' * 70} --c"),
        (60, "--a=1 --b=… --c"),
        (22, "--a=1 --c … and 1 more"),
        (5, "… and 3 more"),
    ],
)
def test_no_flag_is_cut(limit: int, shown: str) -> None:
    assert page.whole(["--a=1", f"--b={'x' * 70}", "--c"], limit) == shown


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (8, "2 VALIDATED (h3, h1), 1 INVALID (h4), 1 REJECTED (h2)"),
        (1, "2 VALIDATED (h3, …), 1 INVALID (h4), 1 REJECTED (h2)"),
        (0, "2 VALIDATED, 1 INVALID, 1 REJECTED"),
    ],
)
def test_counts_name_the_best_first(shown: int, said: str) -> None:
    rest = [(4, "INVALID"), (3, "VALIDATED"), (2, "REJECTED"), (1, "VALIDATED")]
    assert page.counts(rest, shown) == said


@pytest.mark.parametrize(
    ("text", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("``", "``` `` ```")]
)
def test_code_cannot_end_its_span(text: str, span: str) -> None:
    assert page.code(text) == span


PAGE = "# Head\n\nWhy.\n\n## One (more)\n\n- a\n\n## Two\n\n- b\n\n## Now\n\n1. Do it."


def test_what_was_seen_is_named_and_left_out() -> None:
    whole, digests = page.unseen(PAGE, (), short_digest)
    assert (whole, len(digests)) == (PAGE, 2)
    again, same = page.unseen(PAGE, digests, short_digest)
    assert same == digests
    assert again == (
        "# Head\n\nWhy.\n\nAs on your last page (`gpudebug next --whole` repeats it): One; Two.\n\n"
        "## Now\n\n1. Do it."
    )
    changed, _ = page.unseen(PAGE.replace("- b", "- c"), digests, short_digest)
    assert "## Two\n\n- c" in changed
    assert "repeats it): One." in changed
    assert page.unseen("# Head", digests, short_digest) == ("# Head", ())


@pytest.mark.parametrize(
    ("sizes", "room", "expected"),
    [([], 10, 0), ([5, 3], 10, 5), ([100, 10, 20], 60, 30), ([100, 90, 20], 60, 20), ([50, 50], 0, 0)],
)
def test_the_longest_texts_are_cut_first(sizes: list[int], room: int, expected: int) -> None:
    assert page.longest(sizes, room) == expected
