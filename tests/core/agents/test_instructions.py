"""gpudebug's block in somebody's instruction file: all that is not between the markers stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.agents.instructions import AGENTS, BEGIN, END, BrokenMarkers, agent, with_block
from gpudebug.core.errors import UsageError

TEXT = "## gpudebug\n\nRun `gpudebug next`.\n"
BLOCK = f"{BEGIN}\n{TEXT.strip()}\n{END}".encode()
# No text of these can be a marker, and every kind of line ending is among them.
LINES = st.lists(st.sampled_from(["", " ", "# Mine", "é", "<!-- gpudebug", "-->", "\ufeff", "text"]))
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, BLOCK + b"\n"),
        (b"", BLOCK + b"\n"),
        (b"# Mine\n", b"# Mine\n\n" + BLOCK + b"\n"),
        (b"# Mine", b"# Mine\n\n" + BLOCK + b"\n"),
        (
            b"\xef\xbb\xbf# Mine\r\nyes",
            b"\xef\xbb\xbf# Mine\r\nyes\r\n\r\n" + BLOCK.replace(b"\n", b"\r\n") + b"\r\n",
        ),
        (f"{BEGIN}\nold\n{END}".encode(), BLOCK),
        (f"a\n  {BEGIN} \nold\n{END}\t\nb".encode(), b"a\n" + BLOCK + b"\nb"),
        (f"\ufeff{BEGIN}\r\n{END}\r\nb".encode(), b"\xef\xbb\xbf" + BLOCK.replace(b"\n", b"\r\n") + b"\r\nb"),
        (f"see `{BEGIN}` here\n".encode(), f"see `{BEGIN}` here\n\n".encode() + BLOCK + b"\n"),
        (b"\xff\xe9 latin\n", b"\xff\xe9 latin\n\n" + BLOCK + b"\n"),
    ],
)
def test_what_a_file_becomes(old: bytes | None, new: bytes) -> None:
    assert with_block(old, TEXT, "", "F.md") == new
    assert with_block(new, TEXT, "", "F.md") == new


def test_only_a_new_file_gets_the_front_matter() -> None:
    front = AGENTS["claude-skill"].front
    assert front.startswith("---\nname: gpudebug\n")
    made = with_block(None, TEXT, front, "F.md")
    assert made == front.encode() + BLOCK + b"\n"
    assert with_block(b"---\nname: mine\n---\n", TEXT, front, "F.md").count(b"---\n") == 2


@given(LINES, LINES, ENDINGS, st.text(alphabet="ab \n#", max_size=40))
def test_all_but_the_block_stays_byte_for_byte(
    before: list[str], after: list[str], ending: str, old: str
) -> None:
    head, tail = (ending.join(["", *lines, ""]).encode() for lines in (before, after))
    text = head + f"{BEGIN}{ending}{old}{ending}{END}".encode() + tail
    made = with_block(text, TEXT, "", "F.md")
    assert made.startswith(head) and made.endswith(tail)
    inner = made[len(head) : len(made) - len(tail)]
    assert inner == ending.encode().join(BLOCK.split(b"\n"))


@given(LINES, ENDINGS, st.booleans())
def test_a_file_without_markers_is_a_prefix_of_what_it_becomes(
    lines: list[str], ending: str, ended: bool
) -> None:
    old = (ending.join(lines) + (ending if ended else "")).encode()
    made = with_block(old, TEXT, "", "F.md")
    assert made.startswith(old)
    assert with_block(made, TEXT, "", "F.md") == made


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a\n{BEGIN}\n", 2),
        (f"a\nb\n{END}\n", 3),
        (f"{END}\n{BEGIN}\n", 1),
        (f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n", 1),
        (f"{BEGIN}\r{BEGIN}\r{END}", 1),
    ],
)
def test_markers_that_leave_it_open_what_is_ours_are_refused(text: str, line: int) -> None:
    with pytest.raises(BrokenMarkers, match="there must be one of each") as caught:
        with_block(text.encode(), TEXT, "", "F.md")
    assert (caught.value.file, caught.value.line, caught.value.exit_code) == ("F.md", line, 1)


def test_a_file_that_ascii_would_break_is_refused() -> None:
    with pytest.raises(BrokenMarkers, match="UTF-16"):
        with_block("# Mine\n".encode("utf-16"), TEXT, "", "F.md")


def test_every_agent_has_a_file_inside_the_repository() -> None:
    assert {agent(name.upper()).path for name in AGENTS} >= {"AGENTS.md", "CLAUDE.md", "GEMINI.md"}
    assert not any(a.path.startswith("/") or ".." in a.path for a in AGENTS.values())
    assert all(a.front == "" or a.front.endswith("---\n\n") for a in AGENTS.values())


def test_an_unknown_agent_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"claude, claude-skill") as caught:
        agent("nobody" * 1000)
    assert caught.value.exit_code == 2
    assert len(str(caught.value)) < 400
