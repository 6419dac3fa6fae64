"""Root causes by words of the user's own: `rendering`, `quantise`, `NFS`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudebug.core.catalogue.model import Cause
from gpudebug.core.inside.stacks.shares import pattern

MOST = 8
"""Causes that are shown at most; more are no answer."""

_LONGEST = 200
_WORD = re.compile(r"[a-z0-9]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "er", "ed", "es", "or", "e", "s")
_SHORTEST = 4
"""Letters that a word keeps when its ending goes."""
_SAYS_NOTHING = frozenset(
    _WORD.findall(
        "the an of in on to is are my and or with for it by not be at from that this why too so very while "
        "slow slowly slower speed train training run gpu model cause use using left"
    )
)
_ID, _TITLE, _EXPRESSION, _FIX, _TEXT, _TEST = 8, 8, 6, 4, 2, 1
"""What a word counts by where it is; `_EXPRESSION`: one of those of a hypothesis that tests the cause."""


def search(causes: Iterable[Cause], text: str) -> tuple[Cause, ...]:
    """Return the causes that words are of, the best first, at most `MOST`: at least half as many of the words
    are in each as in any.

    British and American spellings, plurals and the forms of a verb are one. () if no word is in any.
    """
    text = text.lower()[:_LONGEST]
    words = dict.fromkeys(_WORD.findall(text))
    telling = [word for word in words if word not in _SAYS_NOTHING] or list(words)
    found = []
    for cause in causes:
        places = _places(cause)
        weights = [weight for word in telling if (weight := _weight(word, cause, places))]
        if weights:
            whole = _EXPRESSION * any(pattern(words).search(text) for words in cause.words)
            found.append((len(weights), sum(weights) + whole, cause))
    most = max((count for count, _, _ in found), default=0)
    best = sorted((f for f in found if 2 * f[0] >= most), key=lambda f: (-f[1], f[2].id))
    return tuple(cause for _, _, cause in best[:MOST])


def _weight(word: str, cause: Cause, places: Iterable[tuple[int, frozenset[str]]]) -> int:
    """Return the best place that a word has in a cause; 0 if it is not there."""
    stem = stem_of(word)
    expressed = _EXPRESSION * any(pattern(words).search(word) for words in cause.words)
    return max(expressed, *(weight for weight, stems in places if _within(stem, stems)), 0)


def _within(stem: str, stems: frozenset[str]) -> bool:
    return stem in stems or (len(stem) > _SHORTEST and any(one.startswith(stem) for one in stems))


def _places(cause: Cause) -> tuple[tuple[int, frozenset[str]], ...]:
    tests = [f"{i.code or ''} {i.note or ''}" for i in cause.interventions.values()]
    said = (
        (_ID, f"{cause.id} {cause.group or ''}"),
        (_TITLE, cause.title),
        (_FIX, f"{cause.fix} {cause.hollow_if or ''}"),
        (_TEXT, cause.explanation),
        (_TEST, " ".join(tests)),
    )
    return tuple((weight, frozenset(map(stem_of, _WORD.findall(each.lower())))) for weight, each in said)


def stem_of(word: str) -> str:
    """`rendering`, `renders` and `rendered` are one; so are `quantise` and `quantize`."""
    word = re.sub(r"z(?=e|i|a)", "s", word)
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= _SHORTEST), None)
    return word if ending is None else stem_of(word.removesuffix(ending))
