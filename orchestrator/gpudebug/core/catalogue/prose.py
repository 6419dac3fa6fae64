"""What a file of the catalogue says, in words, and causes by words of the user's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from gpudebug.core.catalogue.model import Cause, Condition, Own, Share, Term, written
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.inside.stacks.shares import pattern

GENERAL = "In general"
"""Before what the catalogue says of any program: nothing of it was measured here."""
_LONGEST = 60
_DESCRIBED = 400
_WORDS = 3
_ESCAPE, _WORD = re.compile(r"\\[A-Za-z]|\(\?[a-zA-Z]+\)"), re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")
_MOVES = {"falls": "falls", "rises": "rises", "is_zero": "is zero"}


def shows(cause: Cause) -> str:
    """Return the one sign that speaks most for the cause, in plain words; a signal rather than an expression
    of half its weight."""
    if not cause.signature:
        return said(cause.requires[0], _in_words) if cause.requires else ""
    strongest = max(cause.signature, key=lambda sign: sign.weight * (1 if sign.signal is None else 2))
    return said(strongest, _in_words)


def described(cause: Cause) -> str:
    """Return the first sentences on a cause, for a hypothesis; `gpudebug catalogue ID` shows the rest."""
    kept = ""
    for sentence in re.split(r"(?<=[.:;])\s+(?=[A-Z])", one_line(cause.explanation)):
        if kept and len(kept) + len(sentence) > _DESCRIBED:
            break
        kept = f"{kept} {sentence}".strip()
    return f"{GENERAL}: {kept}"


def tried(cause: Cause, instructions: str | None = None) -> str:
    """How a cause is tested, for a hypothesis: what is written, what should move, when a gain is hollow."""
    how = [f"{GENERAL}: {one_line(instructions)}"] if instructions else []
    if cause.own_signal:
        how.append(f"What should move: {'; '.join(map(said_own, cause.own_signal))}.")
    if cause.hollow_if:
        how.append(f"Hollow if: {one_line(cause.hollow_if)}")
    return " ".join(how)


def one_line(text: str) -> str:
    return " ".join(text.split())


def _short(expression: str) -> str:
    shown = expression if len(expression) <= _LONGEST else expression[: _LONGEST - 1] + "…"
    return f"/{shown}/"


def _in_words(expression: str) -> str:
    """Return the first words of an expression, as people know them; the expression if it has none."""
    words = dict.fromkeys(word.strip("_") for word in _WORD.findall(_ESCAPE.sub(" ", expression)))
    return " or ".join(list(words)[:_WORDS]) or _short(expression)


_Quote = Callable[[str], str]


def said(condition: Condition, quote: _Quote = _short) -> str:
    """Return a condition as a sentence: `training waits more than 20 % of its time for batches`.

    `quote` writes an expression."""
    return _sentence(condition, _compared(condition, quote), quote)


def said_share(share: Share) -> str:
    """Return a share of the time as its figure is called."""
    text = SIGNALS[share.signal].said.format("…") if share.signal in SIGNALS else _sentence(share, "…")
    return text + (f", times {share.times:g}" if share.times != 1 else "")


def said_own(own: Own) -> str:
    """`data_wait_share falls (training waits … of its time for batches)`."""
    about = SIGNALS[own.signal].said.format("…")
    return f"{own.signal} {_MOVES[own.direction]} ({about})"


def _sentence(term: Term, value: str, quote: _Quote = _short) -> str:
    if term.signal is not None:
        return SIGNALS[term.signal].said.format(value) if term.signal in SIGNALS else term.signal
    if term.section is not None:
        return f"sections named {quote(term.section)} take {value} of the profiled time"
    if term.flag is not None:
        return f"the command's {quote(term.flag)} is {value}"
    if term.printed is not None:
        return f"the program prints {quote(term.printed)} as {value}"
    return f"{_watched(term, quote)} take {value} of the watched time"


def _watched(term: Term, quote: _Quote) -> str:
    who = "loader workers' stacks" if term.of == "workers" else "stacks"
    if term.state is not None:
        who = f"{term.state} {who}"
    through = [f"through {quote(term.stack)}"] if term.stack is not None else []
    through += [f"at lines with {quote(term.code)}"] if term.code is not None else []
    where = f" in the {term.phase} phase" if term.phase is not None else ""
    but = f", none with {_short(term.unless)}" if term.unless is not None else ""
    return f"{who} {' or '.join(through)}{where}{but}"


def _compared(condition: Condition, quote: _Quote) -> str:
    unit = SIGNALS[condition.signal].unit if condition.signal in SIGNALS else None
    if condition.signal is None and condition.flag is None and condition.printed is None:
        unit = "share"
    above, below = condition.above, condition.below
    if above is not None and below is not None:
        return f"between {_figure(above, unit)} and {_figure(below, unit)}"
    if above is not None:
        return f"more than {_figure(above, unit)}"
    if below is not None:
        return f"less than {_figure(below, unit)}"
    if condition.matches is not None:
        return f"something like {quote(condition.matches)}"
    value = condition.equals
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _figure(value, unit) if isinstance(value, float) else str(value)


def _figure(number: float, unit: str | None) -> str:
    if unit == "share":
        return f"{100 * number:g} %"
    suffix = {"%": " %", "pp": "pp", "s": " s", "MB": " MB"}.get(unit or "", "")
    return written(float(number)) + suffix


MOST = 8
"""Causes that are shown at most; more are no answer."""

_LONGEST_QUERY = 200
_QUERY_WORD = re.compile(r"[a-z0-9]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "er", "ed", "es", "or", "e", "s")
_SHORTEST = 4
"""Letters that a word keeps when its ending goes."""
_SAYS_NOTHING = frozenset(
    _QUERY_WORD.findall(
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
    text = text.lower()[:_LONGEST_QUERY]
    words = dict.fromkeys(_QUERY_WORD.findall(text))
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
    return tuple(
        (weight, frozenset(map(stem_of, _QUERY_WORD.findall(each.lower())))) for weight, each in said
    )


def stem_of(word: str) -> str:
    """`rendering`, `renders` and `rendered` are one; so are `quantise` and `quantize`."""
    word = re.sub(r"z(?=e|i|a)", "s", word)
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= _SHORTEST), None)
    return word if ending is None else stem_of(word.removesuffix(ending))
