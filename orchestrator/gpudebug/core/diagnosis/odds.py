"""A term of the catalogue on facts; one cause on them: its conditions, its odds, and what its signs say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpudebug.core.catalogue.model import Cause, Condition, Share, Sign, Term
from gpudebug.core.catalogue.signals import BELOW_ZERO, SIGNALS
from gpudebug.core.diagnosis.host_code import PLACED, loops_of, share_at
from gpudebug.core.diagnosis.model import DiagnosisFacts, Tested
from gpudebug.core.inside.stacks.shares import CodeLine, StackTerm, pattern, seen, share
from gpudebug.core.lazy import regex
from gpudebug.core.records import Stacks
from gpudebug.core.statistics import numbers
from gpudebug.core.words import SignalValue, Status

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
        return None if value is None else TermFigure(value, term.signal, facts.places.get(term.signal))
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
    stacks = stacks_of(term, facts)
    if not stacks or stacks.seconds <= 0:
        return None
    if isinstance(term, Share) and term.whole:
        return _of_functions(term, stacks)
    found = share(stacks, **stack_term(term)._asdict())
    return TermFigure(found.value, term.of, found.place, found.part)


def _of_functions(term: Share, stacks: Stacks) -> TermFigure:
    """Return the share of the program's functions that matching lines are in; those that hold the loop over
    steps are all of it and say nothing."""
    rows = seen(stacks)
    inside = {one.frames[one.own] for one, _ in stack_term(term).counts(stacks) if one.own is not None}
    inside -= loops_of(rows)
    taken = [one for one in rows if not inside.isdisjoint(one.frames)]
    longest = max(taken, key=lambda one: one.seconds, default=None)
    share_of = min(1.0, math.fsum(one.seconds for one in taken) / stacks.seconds)
    return TermFigure(share_of, term.of, longest.place if longest is not None else None)


def stacks_of(term: Term, facts: DiagnosisFacts) -> Stacks | None:
    """Return the stacks that a term is about: the training thread's, or loader workers'."""
    if facts.stacks is None:
        return None
    return facts.stacks.workers if term.of == "workers" else facts.stacks.training


def stack_term(term: Term) -> StackTerm:
    return StackTerm(term.stack, term.code, term.phase, term.state, term.unless)


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


CAP = 30.0
"""Signs are correlated: together they multiply odds by no more, and by no less than its inverse."""
SMALL = 0.05
"""A share of the time that is too small to be worth a fix."""
_REACH_AT = 0.25
_REACH_SMALL = 0.1
_REACH_UNKNOWN = 0.4
_UNSUPPORTED = 0.1
_CLEAR = 2.0
"""What multiplies odds by less than this is hardly a sign of a cause."""
_DEFINITE = 4.0
_ONLY_HERE = 2.0
_INCONCLUSIVE = 0.5
_BUSY = 90.0
_BUSY_ODDS = 0.05
_OF_BUSY = ("gpu_util", "trace_busy_share", "device_time_share")


@dataclass(frozen=True)
class WeighedSign:
    """A sign on the facts. `true` is None if it is unknown, `factor` what it multiplies the odds by.

    `shared`: the reference has it too, at a similar value, so that it explains nothing.
    """

    sign: Sign
    true: bool | None
    found: TermFigure | None
    factor: float = 1.0
    shared: bool = False


@dataclass(frozen=True)
class Scored:
    """A cause's odds against none. `ruled_out` by one of its requirements, `required` if all are known to
    hold; `signs` in the catalogue's order.

    `exposed` is None if unknown, or if the cause takes no time of its own.
    """

    cause: Cause
    odds: float
    ruled_out: bool = False
    required: bool = True
    signs: tuple[WeighedSign, ...] = ()
    exposed: float | None = None

    @property
    def support(self) -> float:
        """How strongly the strongest sign speaks for it: 0 not at all, 1 clearly."""
        best = max((t.factor for t in self.signs if t.true), default=1.0)
        return min(1.0, max(0.0, math.log(best) / math.log(_CLEAR)))

    @property
    def definite(self) -> bool:
        """Whether it is known without a run: what it requires is there, and its signs as a whole say so."""
        return self.required and math.prod(t.factor for t in self.signs) >= _DEFINITE


def score(cause: Cause, facts: DiagnosisFacts, tested: Sequence[Tested] = ()) -> Scored:
    """Prior odds times what signs, reach and trials say; 0 if a requirement is known not to hold."""
    required = [holds(condition, facts) for condition in cause.requires]
    if False in required:
        return Scored(cause, 0.0, ruled_out=True)
    signs = tuple(_weighed(sign, facts) for sign in cause.signature)
    exposed = largest(cause.exposed, facts)
    scored = Scored(cause, 1.0, required=all(required), signs=signs, exposed=exposed)
    odds = prior(cause, facts.kind) * combined(signs, facts) * _reach(cause, exposed)
    odds *= _UNSUPPORTED ** (1.0 - scored.support)
    odds *= _busy(scored, facts) * lowered(cause.id, tested)
    return replace(scored, odds=odds)


def prior(cause: Cause, kind: str) -> float:
    """Return the cause's odds before anything is known of the run."""
    return cause.prior.get(kind, cause.prior.get("default", 1.0))


def combined(signs: Sequence[WeighedSign], facts: DiagnosisFacts) -> float:
    """Return what all signs together multiply the odds by, within the cap."""
    product = math.exp(math.fsum(math.log(max(t.factor, 1e-9)) for t in signs))
    product = min(CAP, max(1 / CAP, product))
    only_here = facts.reference is not None and any(_only_here(t, facts.reference) for t in signs)
    return product * _ONLY_HERE if only_here else product


def lowered(cause: str, tested: Sequence[Tested]) -> float:
    """What trials leave of a cause's odds; one from before the last acceptance says nothing any more."""
    left = 1.0
    for one in tested:
        if cause not in one.causes or one.before_accepting:
            continue
        missed = 1.0 - min(1.0, max(0.0, one.power))
        if one.status == Status.REJECTED:
            left *= missed
        elif one.status == Status.INCONCLUSIVE:
            # A rejection by the same test would say more.
            left *= max(_INCONCLUSIVE, missed)
    return left


def _weighed(sign: Sign, facts: DiagnosisFacts) -> WeighedSign:
    found = figure(sign, facts)
    true = None if found is None else compares(sign, found.value)
    if found is None or true is None:
        return WeighedSign(sign, None, found)
    if not true:
        return WeighedSign(sign, False, found, max(sign.otherwise, 1e-9))
    shared = sign.weight > 1 and facts.reference is not None and _shares(sign, found, facts.reference)
    return WeighedSign(sign, True, found, 1.0 if shared else max(sign.weight, 1e-9), shared)


def _shares(sign: Sign, found: TermFigure, reference: DiagnosisFacts) -> bool:
    """Tell whether the reference has the sign too, at a similar value."""
    other = figure(sign, reference)
    return other is not None and compares(sign, other.value) is True and similar(found.value, other.value)


def _only_here(weighed: WeighedSign, reference: DiagnosisFacts) -> bool:
    """Tell whether a sign speaks for the cause that the reference is known not to have."""
    return weighed.true is True and weighed.factor > 1 and holds(weighed.sign, reference) is False


def _reach(cause: Cause, exposed: float | None) -> float:
    """By the share of the time that the cause explains: it rises with it, from `SMALL` on in proportion."""
    if exposed is None:
        return _REACH_UNKNOWN
    return _REACH_SMALL if exposed < SMALL else exposed / _REACH_AT


def _busy(scored: Scored, facts: DiagnosisFacts) -> float:
    """A GPU that is busy already idles for nothing: only what makes it busy for nothing is left.

    Where it is busy at the power of waiting, it idles.
    """
    util = number(facts.signals.get("gpu_util"))
    if util is not None:
        util -= 100 * (number(facts.signals.get("busy_waiting_share")) or 0.0)
    if facts.signals.get("device_stand_in") is not False or util is None or util <= _BUSY:
        return 1.0
    if scored.cause.gate or any(t.true and t.factor > 1 and t.sign.signal in _OF_BUSY for t in scored.signs):
        return 1.0
    return _BUSY_ODDS


_NEARLY_ALL = 0.8
_NAMED = 3
_ESCAPE, _WORD = regex(r"\\[A-Za-z]"), regex(r"[A-Za-z][A-Za-z_]{3,}")
"""Words of an expression as people know them."""


def sentence_of(weighed: WeighedSign, facts: DiagnosisFacts) -> str:
    """Return the fact behind a sign that is known, with the reference's if that is another."""
    if weighed.found is None:
        return ""
    sentence = _sentence(weighed, weighed.found, stacks_of(weighed.sign, facts))
    if weighed.shared:
        return f"{sentence}, as in the reference"
    other = figure(weighed.sign, facts.reference) if facts.reference is not None else None
    if other is None or weighed.sign.signal is None:
        return sentence
    return f"{sentence} (the reference: {value(other.value, SIGNALS[weighed.sign.signal].unit)})"


def _sentence(weighed: WeighedSign, found: TermFigure, stacks: Stacks | None) -> str:
    sign = weighed.sign
    if sign.signal is not None and sign.signal != PLACED:
        return of_signal(sign.signal, found.value)
    if sign.signal is not None or sign.stack is not None or sign.code is not None:
        return _stack_sentence(weighed, found, stacks)
    if sign.section is not None:
        return f"section {found.name} takes {value(found.value, 'share')} of the profiled time"
    if sign.flag is not None:
        return f"--{found.name} is {'set' if found.value is True else found.value}"
    return f"the configuration has {found.name} = {found.value}"


def of_signal(name: str, found: SignalValue) -> str:
    """Return a signal's value as a sentence."""
    signal, known = SIGNALS[name], number(found)
    if known is not None and known < 0 and name in BELOW_ZERO:
        return BELOW_ZERO[name].replace("{}", value(-known, signal.unit))
    return signal.said.replace("{}", value(found, signal.unit))


def _stack_sentence(weighed: WeighedSign, found: TermFigure, stacks: Stacks | None) -> str:
    """Return how much of the time, and the place with the most of it: of a line always the same figure."""
    whose = "loader workers' time" if weighed.sign.of == "workers" else "the time"
    if found.place is None or stacks is None:
        wanted = weighed.sign.stack or weighed.sign.code or ""
        words = list(dict.fromkeys(_WORD.findall(_ESCAPE.sub(" ", wanted))))[:_NAMED]
        kind = f"such as {', '.join(words)}" if words else "of this kind"
        return f"none of {whose} is in code {kind}"
    taken, at = number(found.value) or 0.0, share_at(stacks, found.place)
    if weighed.sign.signal == PLACED and at < _NEARLY_ALL * taken:
        function = found.place.frame.rpartition(":")[2]
        return f"{value(taken, 'share')} of {whose} in {function}, most of it in {found.place}"
    if found.part < _NEARLY_ALL:
        return f"{value(taken, 'share')} of {whose} in code of this kind, most of it in {found.place}"
    if taken < _NEARLY_ALL * at:
        return f"{value(taken, 'share')} of {whose} in code of this kind at {found.place}"
    return f"{value(at, 'share')} of {whose} in {found.place}"


def value(found: SignalValue, unit: str) -> str:
    """Return a signal's value in its unit."""
    if isinstance(found, bool):
        return "yes" if found else "no"
    known = number(found)
    if known is None:
        return str(found)
    if unit in ("share", "%"):
        return _percent(known * 100 if unit == "share" else known)
    if unit == "pp":
        return f"{known:.1f}pp"
    if unit == "s" and known < 1:
        return numbers.number(known * 1000, "ms")
    return numbers.number(known, {"s": "s", "MB": "MB", "1/s": "a second"}.get(unit, ""))


def _percent(percent: float) -> str:
    return f"{percent:.0f}%" if percent >= 9.95 or percent == 0 else f"{percent:.1f}%"
