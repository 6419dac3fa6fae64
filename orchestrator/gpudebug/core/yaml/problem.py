"""What is wrong in a YAML file, and where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpudebug.core.errors import GpudebugError
from gpudebug.core.yaml.document import Document, Path


class YamlProblem(NamedTuple):
    """What is wrong at `path` of a document; `key` if the key there is meant and not its value.

    `below` counts the lines from the path's own to the wrong one.
    """

    path: Path
    message: str
    next: str
    key: bool = False
    missing: bool = False
    below: int = 0


def refuse(found: Iterable[YamlProblem], document: Document, kind: type[GpudebugError]) -> None:
    """Raise the first of the problems as an error of this kind; return if there is none."""
    # What is missing is last: a misspelt key is missing too, and its own line says more.
    placed = sorted(
        ((p.missing, document.line(p.path, key=p.key) + p.below, p) for p in found), key=lambda e: e[:2]
    )
    if placed:
        _, line, first = placed[0]
        more = f" (and {len(placed) - 1} more)" if len(placed) > 1 else ""
        raise kind(first.message + more, file=document.file, line=line, next=first.next)


def named(path: Path) -> str:
    """Return a path as its reader counts: `signature 2.weight` for the weight of the second sign."""
    text = ""
    for part in path:
        text += f" {part + 1}" if isinstance(part, int) else f".{part}" if text else part
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was most likely meant."""
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return near[0] if near else None
