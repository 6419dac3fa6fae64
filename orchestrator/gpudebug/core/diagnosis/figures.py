"""A term of the catalogue on facts -> its figure, and whether a condition over it holds. Unknown is None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gpudebug.core.catalogue.model import Condition, Share, Term
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.inside.stacks.shares import CodeLine, pattern, share
from gpudebug.core.words import SignalValue

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0", "none"})
_SIMILAR = 0.3
_SIMILAR_SHARE = 0.05


class TermFigure(NamedTuple):
    """`name` is its source: of a signal, flag, section or printed name; `place` where a stack's time is, or
    `part` of it."""

    value: SignalValue
    name: str
    place: CodeLine | None = None
    part: float = 1.0


def figure(term: Term, facts: DiagnosisFacts) -> TermFigure | None:
    """Return what the facts say of a term; None if they say nothing."""
    if term.signal is not None:
        value = facts.signals.get(term.signal)
        return None if value is None else TermFigure(value, term.signal)
    if term.stack is not None or term.code is not None:
        return _of_stacks(term, facts)
    if term.section is not None:
        wanted = pattern(term.section)
        found = [s for s in facts.sections if wanted.search(s.name)]
        largest = max(found, key=lambda s: s.share, default=None)
        return TermFigure(largest.share, largest.name) if largest else None
    if term.flag is not None:
        return _named(term.flag, facts.flags)
    return _named(term.printed, facts.printed, last=True) if term.printed is not None else None


def _of_stacks(term: Term, facts: DiagnosisFacts) -> TermFigure | None:
    stacks = facts.stacks and (facts.stacks.workers if term.of == "workers" else facts.stacks.training)
    if not stacks or stacks.seconds <= 0:
        return None
    found = share(
        stacks, stack=term.stack, code=term.code, phase=term.phase, state=term.state, unless=term.unless
    )
    return TermFigure(found.value, term.of, found.place, found.part)


def _named(names: str, values: Mapping[str, str | bool], last: bool = False) -> TermFigure | None:
    """Return the value of the last name that matches as a whole; `last`: also by its last dotted part."""
    wanted = pattern(names)
    for name in reversed(list(values)):
        if wanted.fullmatch(name) or (last and wanted.fullmatch(name.rpartition(".")[2])):
            return TermFigure(values[name], name)
    return None


def number(value: SignalValue | None) -> float | None:
    """Return a value as a number; None for truths and words."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except ValueError:
        return None


def truth(value: SignalValue) -> bool | None:
    """Return a value as yes or no; None for what is neither."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().casefold()
    return True if text in _YES else False if text in _NO else None


def holds(condition: Condition, facts: DiagnosisFacts) -> bool | None:
    """Tell whether a condition is true of the facts; None if they do not say."""
    found = figure(condition, facts)
    return None if found is None else compares(condition, found.value)


def compares(condition: Condition, value: SignalValue) -> bool | None:
    """Tell whether a value is as the condition wants it; None if the two cannot be compared."""
    if condition.equals is not None:
        return equal(value, condition.equals)
    if condition.matches is not None:
        return pattern(condition.matches).search(str(value))
    found = number(value)
    if found is None:
        return None
    above = condition.above is None or found > condition.above
    return above and (condition.below is None or found < condition.below)


def equal(value: SignalValue, wanted: SignalValue) -> bool:
    """`True`, `true`, `on` and a bare flag are equal; so are `4` and `4.0`."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        found, meant = truth(value), truth(wanted)
        return found is not None and found == meant
    one, other = number(value), number(wanted)
    if one is not None and other is not None:
        return one == other
    return str(value).strip().casefold() == str(wanted).strip().casefold()


def similar(value: SignalValue, other: SignalValue) -> bool:
    """Tell whether two sides' figures are about the same: within 30 % of the larger or 0.05 of each other."""
    one, two = number(value), number(other)
    if one is None or two is None:
        return equal(value, other)
    apart = abs(one - two)
    return apart <= max(_SIMILAR_SHARE, _SIMILAR * max(abs(one), abs(two)))


def largest(shares: tuple[Share, ...], facts: DiagnosisFacts) -> float | None:
    """Return the largest of shares of time, each scaled, within 0 to 1; None if none is known."""
    known = [share for term in shares if (share := _share_of_time(term, facts)) is not None]
    return min(1.0, max(0.0, *known)) if known else None


def _share_of_time(term: Share, facts: DiagnosisFacts) -> float | None:
    found = figure(term, facts)
    value = number(found.value) if found is not None else None
    within = number(facts.signals.get(term.within)) if term.within is not None else 1.0
    return None if value is None or within is None else value * within * term.times
