"""Where a program says that from here on it trains something else: a stage, a phase, a level of a curriculum.

A loss is not comparable over such a line: it is judged by what follows, once that is long enough.
"""

from __future__ import annotations

import re

LONGEST = 400
_NUMBERED = re.compile(
    rb"\b(?:(?:training|curriculum)[ _-])?(?P<what>stage|phase|curriculum(?:[ _](?:level|step|stage))?)"
    rb"['\"]?[ _]?[:=#]?[ _]?(?P<at>0?[1-9]|one|two|three|four|five|i{1,3}|iv|v)\b(?!\.\d|%)",
    re.I,
)
_CHANGES = re.compile(
    rb"\b(?:switch(?:ed|es|ing)?|chang(?:ed|es|ing)|moving on|advanc(?:ed|es|ing)|progress(?:ed|ing))"
    rb"\b.{0,40}\b(?:stage|phase|curriculum|objective|loss(?: function)?|resolution|image size|task)\b"
    rb"|\b(?:curriculum|objective|loss function|resolution|task)\b.{0,30}"
    rb"\b(?:switched|changed|advanced|increased)\b"
    rb"|\b(?:un-?freez(?:ing|e[sd]?)|unfrozen)\b.{0,40}"
    rb"\b(?:layers?|backbone|encoder|body|model|weights|parameters)\b",
    re.I,
)
_OTHERS = re.compile(
    rb"\bzero|stage[ _-]?[123] (?:optimi|shard|offload)|\bif\b|\bwill\b|\bevery\b|/stage", re.I
)
_HINT = re.compile(rb"stage|phase|curric|switch|chang|freez|advanc|progress|moving|increased", re.I)
_WORTH = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5"}


class Objectives:
    """Follows the lines of a log; `changed` is the last one that told of another objective."""

    def __init__(self) -> None:
        self._at: dict[str, str] = {}
        self.changed: str | None = None

    def read(self, text: bytes, begun: bool) -> bool:
        """Tell whether this line says that the objective changes; `begun`: a loss was printed before it."""
        if len(text) > LONGEST or not _HINT.search(text) or _OTHERS.search(text):
            return False
        told = _CHANGES.search(text) is not None
        for match in _NUMBERED.finditer(text):
            what, at = match["what"].decode("ascii").lower(), match["at"].decode("ascii").lower().lstrip("0")
            at = _WORTH.get(at, _ROMAN.get(at, at))
            before = self._at.get(what)
            self._at[what] = at
            told = told or (at != before and (before is not None or at != "1"))
        if told and begun:
            self.changed = text.decode("ascii").strip()
        return told and begun
