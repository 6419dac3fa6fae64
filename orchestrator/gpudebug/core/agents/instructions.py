"""The instruction file of each coding agent, and gpudebug's own block in it, between markers.

Everything outside of the markers belongs to others: it stays byte for byte.
"""

from __future__ import annotations

from typing import NamedTuple

from gpudebug.core.errors import UsageError
from gpudebug.core.lazy import regex

BEGIN = "<!-- gpudebug:begin -->"
END = "<!-- gpudebug:end -->"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"
_WHOLE_LINE = regex(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ENDING = regex(rb"\r\n|\r|\n")
_ABOUT = "Use gpudebug here to find out why training leaves the GPU idle, one measured hypothesis at a time."
_SKILL = f"---\nname: gpudebug\ndescription: {_ABOUT}\n---\n\n"
_RULE = f"---\ndescription: {_ABOUT}\nalwaysApply: true\n---\n\n"


class AgentInstructions(NamedTuple):
    """Where an agent reads its instructions: `path` in the campaign's folder, `front` what a new file begins
    with, `note` what it takes beside the file."""

    name: str
    path: str = "AGENTS.md"
    front: str = ""
    note: str | None = None


# As each agent documents it; an agent that reads AGENTS.md and is missing here is `agents`.
AGENTS = {
    agent.name: agent
    for agent in (
        AgentInstructions("agents"),
        AgentInstructions("codex"),
        AgentInstructions("claude", "CLAUDE.md"),
        AgentInstructions("claude-skill", ".claude/skills/gpudebug/SKILL.md", _SKILL),
        AgentInstructions("gemini", "GEMINI.md"),
        AgentInstructions("qwen", "QWEN.md"),
        AgentInstructions("cursor", ".cursor/rules/gpudebug.mdc", _RULE),
        AgentInstructions("copilot", ".github/copilot-instructions.md"),
        AgentInstructions(
            "aider",
            "CONVENTIONS.md",
            note="aider reads it with `--read CONVENTIONS.md`, or `read: CONVENTIONS.md` in .aider.conf.yml",
        ),
        AgentInstructions("opencode"),
        AgentInstructions("amp"),
        AgentInstructions("goose"),
    )
}


class BrokenMarkers(UsageError):
    """A file in which gpudebug's block has no one beginning and end."""

    exit_code = 1
    code = "markers"


def agent(name: str) -> AgentInstructions:
    """Return the agent of this name, in any case; UsageError lists those that are known."""
    found = AGENTS.get(name.strip().lower())
    if found is None:
        raise UsageError(
            f"unknown agent {name[:40]!r}; known are {', '.join(AGENTS)}",
            next="name one of these; `agents` is for every other one that reads AGENTS.md",
        )
    return found


def with_block(old: bytes | None, text: str, front: str, file: str) -> bytes:
    """The file with `text` between the markers: in their place, else at its end; `front` begins a new file.

    `old` is empty, or None, for a new file. BrokenMarkers for one marker alone, a doubled one, and UTF-16.
    """
    block = f"{BEGIN}\n{text.strip()}\n{END}"
    if not old:
        return f"{front}{block}\n".encode()
    if old.startswith(_UTF16):
        raise BrokenMarkers("the file is UTF-16", file=file, line=1, next="save it as UTF-8")
    match = _ENDING.search(old)
    ending = match[0] if match else b"\n"
    made = ending.join(block.encode().split(b"\n"))
    place = _place(old, file)
    if place is not None:
        return old[: place[0]] + made + old[place[1] :]
    lead = b"" if not old else ending if old.endswith((b"\r", b"\n")) else 2 * ending
    return old + lead + made + ending


def without_block(old: bytes, front: str, file: str) -> bytes:
    """The file without gpudebug's part and the empty line before it; b"" if nothing else is in it.

    BrokenMarkers as `with_block`.
    """
    place = _place(old, file)
    if place is None:
        return old
    before, after = old[: place[0]], old[place[1] :]
    if before.decode("utf-8", "replace") == front and not after.strip():
        return b""
    ending = match[0] if (match := _ENDING.search(before)) else b""
    before = before.removesuffix(ending) if ending and before.endswith(2 * ending) else before
    return before + after.removeprefix(match[0] if (match := _ENDING.match(after)) else b"")


def _place(old: bytes, file: str) -> tuple[int, int] | None:
    """From where the first marker's line begins to where the last one's ends; None without any marker."""
    begins, ends = (_lines_of(old, marker) for marker in (BEGIN, END))
    if not begins and not ends:
        return None
    if len(begins) == len(ends) == 1 and begins[0].start < ends[0].start:
        return begins[0].start, ends[0].end
    raise BrokenMarkers(
        f"{len(begins)} markers begin gpudebug's part and {len(ends)} end it: there must be one of each, in "
        "this order; nothing was written",
        file=file,
        line=min(line.number for line in (*begins, *ends)),
        next=f"leave one {BEGIN} and one {END} below it, or take all of them out",
    )


class _InstructionLine(NamedTuple):
    """A line without its ending and without a byte order mark: offsets, and its 1-based number."""

    start: int
    end: int
    number: int


def _lines_of(old: bytes, marker: str) -> list[_InstructionLine]:
    """Return the lines that hold nothing but this marker."""
    found = []
    at = 0
    for number, line in enumerate(_WHOLE_LINE.findall(old), start=1):
        mark = len(_BOM) if number == 1 and line.startswith(_BOM) else 0
        if line[mark:].strip() == marker.encode():
            found.append(_InstructionLine(at + mark, at + len(line.rstrip(b"\r\n")), number))
        at += len(line)
    return found
