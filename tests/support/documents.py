"""The documents of this repository, taken apart: fenced blocks, inline code, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"(`{3,})(\w*)\s*$")
_MARK = re.compile(r"<!-- (.*) -->$")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")

_FIGURE = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(\.\d+)?(?!\w*\.\w)")
_UNITS = re.compile(r"\b0 (ns|us|ms|s|min|h|d)\b( 0 (s|min|h)\b)*")
_PATH = re.compile(r"(?<![\w.])[~/][\w.-]*/[\w./-]+")
_DRAWN = re.compile("[▁-█━─]+")


@dataclass(frozen=True)
class Block:
    """A fenced block. `mark` is the HTML comment in the line above it; `line` is that of its fence."""

    page: Path
    line: int
    language: str
    text: str
    mark: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Page:
    """One document: its blocks, and its prose, in which lines of blocks are empty."""

    path: Path
    blocks: tuple[Block, ...]
    prose: str

    def code(self) -> Iterator[tuple[str, str]]:
        """Each piece of inline code with its place."""
        for found in _CODE.finditer(self.prose):
            line = self.prose.count("\n", 0, found.start()) + 1
            yield f"{self.path.relative_to(ROOT)}:{line}", " ".join(found[1].split())

    def links(self) -> list[str]:
        return _LINK.findall(_CODE.sub("", self.prose))

    def anchors(self) -> set[str]:
        """What `#…` may name: each heading as GitHub writes it."""
        headings = re.findall(r"^#{1,6} (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def table(self, mark: str) -> list[str]:
        """The lines of the table below `<!-- mark -->`."""
        below = self.prose.partition(f"<!-- {mark} -->\n")[2]
        return below.partition("\n\n")[0].splitlines()


def pages() -> list[Page]:
    """Every document that people read, the tests' own included."""
    top = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
    others = (ROOT / name for name in ("hypotheses/README.md", "tests/zoo/README.md"))
    return [page(path) for path in (*top, *sorted((ROOT / "docs").rglob("*.md")), *others) if path.is_file()]


@cache
def page(path: Path) -> Page:
    blocks, prose = [], []
    opened: tuple[str, str, int, str] | None = None
    inside: list[str] = []
    last = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence is not None:
            mark = _MARK.match(last)
            opened, inside = (fence[1], fence[2], number, mark[1] if mark else ""), []
        elif opened is not None and fence is not None and fence[1] == opened[0] and not fence[2]:
            blocks.append(Block(path, opened[2], opened[1], "\n".join(inside), opened[3]))
            opened = None
        elif opened is not None:
            inside.append(line)
        prose.append("" if opened is not None or fence is not None else line)
        last = line
    return Page(path, tuple(blocks), "\n".join(prose) + "\n")


def masked(text: str) -> str:
    """Text without its figures, paths and drawings, which differ from run to run."""
    text = _FIGURE.sub("0", _DRAWN.sub("▁", _PATH.sub("/…", text)))
    return "\n".join(" ".join(line.split()) for line in _UNITS.sub("0 s", text).splitlines())
