"""One cause on the facts: its conditions, its odds, and the share of the time that only it explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpudebug.core.catalogue.model import Cause, Sign
from gpudebug.core.diagnosis.figures import TermFigure, compares, figure, holds, largest, number, similar
from gpudebug.core.diagnosis.model import DiagnosisFacts, Tested
from gpudebug.core.words import Status

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
