"""Where in a line its counts of work, their rates and its rewards stand, read from the line's skeleton."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gpudebug.core.trainlog.quantities import Quantity, quantity
from gpudebug.core.trainlog.ranks import NO_RANKS, RankPlaces, find_ranks
from gpudebug.core.trainlog.shape import COARSE, label_of, next_phase, tokens_of, without_marks
from gpudebug.core.trainlog.text import Span

_OF_WORK = re.compile(
    r"rew|return|EpRet|interact|\btok|tokens|[sS][pP][sS]\b|samples|examples|[wt]ps\b|fps|frames|steps|timestep",
    re.I,
)
_LOWER = ("m", "b", "t")
"""Of counts and rates, as PufferLib's dashboard shortens them: millions, and more."""
_WORK_UNIT = re.compile(
    r" ?((?:env[ _]?)?(?:tok|token|frame|timestep|step)s?/s(?:ec(?:ond)?)?|([kMG]?)sps)\b(?!['\"]?\s*[:=])",
    re.I,
)
_NEXT_VALUE = re.compile(r" +[-+.]?0")
_INDEX = re.compile(r"\[\(0+, '?[-+]?[0.]+")
"""Of a list by policy, `[(0, '1.5')]`: the first number says whose the second is."""


@dataclass(frozen=True, slots=True)
class LoggedQuantity:
    """One number of a line that is of work or a reward. `named` is the place of a name that holds digits."""

    quantity: Quantity
    name: str
    named: Span | None
    value: Span


@dataclass(frozen=True, slots=True)
class QuantityLine:
    """All of one skeleton; `ranks` is where the process that printed it names itself."""

    found: tuple[LoggedQuantity, ...]
    ranks: RankPlaces = NO_RANKS


def read_quantities(skeleton: str) -> QuantityLine | None:
    """Return the quantities of a skeleton; None if it has none."""
    if not _OF_WORK.search(skeleton):
        return None
    text, ranks = find_ranks(skeleton)
    found = tuple(_found(without_marks(text)[0]))
    return QuantityLine(found, ranks) if found else None


def _found(text: str) -> list[LoggedQuantity]:
    found: list[LoggedQuantity] = []
    at = 0
    phase = ""
    table = text.lstrip()[:1] == "|"
    held: tuple[str, list[str], str, Span | None] | None = None
    for token in tokens_of(text):
        key, prefix, style, span = held or label_of(text[at : token.start], at, table)
        held = None
        if _INDEX.match(text, max(0, token.start - 2)):
            held, at = (key, prefix, style, span), token.unit_end
            continue
        phase = next_phase([*prefix, key], phase)
        shortened = token.unit in (*COARSE, *_LOWER)
        behind = _WORK_UNIT.match(text, token.unit_end if shortened else token.end)
        if behind and key and _NEXT_VALUE.match(text, behind.end()):
            behind = None  # `loss 3.1 tok/s 51200`: the name of what comes next.
        unit = token.unit
        if behind:
            unit = "sps" if behind[2] is not None else behind[1]
        what = quantity(key, unit)
        if what is None and style == " " and text[token.end - 1] in "nNfFyY":
            continue
        at = token.unit_end
        if what is not None:
            end = token.unit_end if shortened else token.end
            if behind and behind[2]:
                end = behind.end(2)  # `2.05 ksps` is 2.05 k.
            what = replace(what, phase=what.phase or phase)
            name = unit if unit.lower() == "sps" else " ".join(key.split()) or unit
            found.append(LoggedQuantity(what, name, span, (token.start, end)))
    return found
