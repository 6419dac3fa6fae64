"""Whether two titles of hypotheses tell of one cause, as far as words show it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

ALIKE = 0.72
"""Share from which two titles are alike; set on the table in tests/core/text/test_titles.py."""

_WORD = re.compile(r"\w+")
_ENDINGS = ("ing", "ed", "es", "s")
_SHORTEST_STEM = 3
_EMPTY = frozenset(
    (
        *(
            "a",
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "by",
            "for",
            "from",
            "has",
            "have",
            "in",
            "is",
            "it",
            "its",
        ),
        *("not", "of", "on", "or", "so", "that", "the", "then", "there", "this", "to", "too", "was", "when"),
        *("while", "with"),
    )
)


def most_alike(title: str, others: Iterable[tuple[int, str]]) -> int | None:
    """The number of the title that is most like this one, None if none is `ALIKE`; the first of equals."""
    words = _words(title)
    scored = [(_likeness(words, _words(other)), number) for number, other in others]
    best = max(scored, key=lambda each: each[0], default=(0.0, None))
    return best[1] if best[0] >= ALIKE else None


def _likeness(one: list[str], other: list[str]) -> float:
    """The larger of two shares: of words in common (Jaccard), and of letters in the words put in order."""
    if not one or not other:
        return 0.0
    common = len(set(one) & set(other)) / len(set(one) | set(other))
    if common == 0.0:
        return 0.0
    letters = SequenceMatcher(None, " ".join(one), " ".join(other), autojunk=False)
    # The exact ratio takes a time that grows with the square of the length.
    return max(common, letters.ratio() if letters.quick_ratio() >= ALIKE else 0.0)


def _words(title: str) -> list[str]:
    """Return the words that mean something, folded, without endings, in order of the alphabet, each once."""
    text = unicodedata.normalize("NFKC", title).casefold().replace("_", " ")
    return sorted({_stem(word) for word in _WORD.findall(text)} - _EMPTY)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word
