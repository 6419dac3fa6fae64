"""The line by which a program says that it found what another run had to make: data, kernels, tokens."""

from __future__ import annotations

import re

_LONGEST = 300
_MADE = (
    r"(?:cached?|caches|pre-?processed|(?:pre-?)?tokeni[sz]ed|pre-?computed|packed|mem-?map(?:ped)?|"
    r"compiled|indexed)"
)
_FOUND = re.compile(
    rf"\b(?:us(?:ing|e[sd]?)|load(?:ed|ing|s)?|reus(?:ed|ing|e)|found|read(?:ing)?|restor(?:ed|ing)|hit)\b"
    rf".{{0,80}}(?<![a-z]){_MADE}(?![a-z])"
    rf"|(?<![a-z]){_MADE}(?![a-z]).{{0,80}}\b(?:found|exists?|loaded|reused|hit|valid|up to date)\b"
    r"|\balready (?:exists?|processed|cached|tokeni[sz]ed|pre-?processed|built|compiled|prepared)\b"
    r"|\breusing (?:the )?dataset\b|\.cache\.{3}",
    re.I,
)
_NOT = re.compile(
    r"\b(?:no|not|none|never|without|cannot|can't|unable|false|disabled|miss(?:es|ed|ing)?|if|would|will"
    r"|kv|key.value)\b|^\W*[\w.-]+['\"]?\s?[:=]\s*\S*$",
    re.I,
)
_WORDS = re.compile(rb"cache|processed|toke|computed|packed|memmap|compiled|index|already|reusing", re.I)


def finds_cache(text: bytes) -> str | None:
    """Return the line, at most 300 characters, if it says so; None for any other."""
    if not _WORDS.search(text):
        return None
    line = text[: 4 * _LONGEST].decode("utf-8", "replace").strip()[:_LONGEST]
    return line if _FOUND.search(line) and not _NOT.search(line) else None
