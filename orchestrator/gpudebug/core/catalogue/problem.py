"""What is wrong in a file of the catalogue, and where."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from gpudebug.core.config.document import Path


class Problem(NamedTuple):
    """What is wrong at `path` of a document; `key` where the key there is meant and not its value."""

    path: Path
    message: str
    next: str
    key: bool = False
    missing: bool = False


def named(path: Path) -> str:
    """A path as its reader counts: `signature 2.weight` for the weight of the second sign."""
    text = ""
    for part in path:
        text += f" {part + 1}" if isinstance(part, int) else f".{part}" if text else part
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was most likely meant."""
    near = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return near[0] if near else None
