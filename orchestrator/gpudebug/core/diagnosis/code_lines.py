"""The line of the program to read for a cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gpudebug.core.catalogue.model import Cause
from gpudebug.core.catalogue.offers import SeenCalls
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import TermFigure, WeighedSign, figure, number, stack_term, stacks_of
from gpudebug.core.inside.stacks.shares import CodeLine, SampledStack, seen
from gpudebug.core.lazy import regex
from gpudebug.core.records import Stacks

_WORD = regex(r"[a-z_]\w+")
_MOSTLY = 0.5
_DATA = frozenset({"data"})
_OUTSIDE = frozenset({"forward", "eval", "backward", "optimizer", "other"})
_PHASES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("data_wait_share", "log_data_share", "loader_start_share"), _DATA),
    **dict.fromkeys(("eval_share", "eval_data_share"), frozenset({"eval"})),
    "backward_wait_share": frozenset({"backward"}),
    **{f"{phase}_share": frozenset({phase}) for phase in ("forward", "backward", "optimizer")},
    "waiting_outside_data_share": _OUTSIDE,
    "hot_waiting_share": frozenset({"other"}),
}
"""The phases of which a share of the time is."""


def line_of(cause: Cause, signs: Sequence[WeighedSign], facts: DiagnosisFacts) -> CodeLine | None:
    """Return the line with most of the time that the cause explains, of a phase's share the hottest of that
    phase; else that of its strongest sign that has one. None if nothing shows one."""
    found = [(f, term) for term in cause.exposed if (f := figure(term, facts)) is not None]
    for most, term in sorted(found, key=lambda one: -_share(one[0])):
        place = most.place or _of_phase(term.signal, facts)
        if place is not None:
            return place
    ordered = sorted(signs, key=lambda sign: -sign.factor)
    places = [s.found.place for s in ordered if s.true and s.factor > 1 and s.found is not None]
    return next((place for place in places if place is not None), None)


def shown_at(cause: Cause, facts: DiagnosisFacts) -> CodeLine | None:
    """Return the line with most of the time of code that shows the cause."""
    found = [f for term in cause.exposed if (f := figure(term, facts)) is not None and f.place is not None]
    most = max(found, key=_share, default=None)
    return most.place if most is not None else None


def calls_of(cause: Cause, facts: DiagnosisFacts) -> SeenCalls:
    """Return what the stacks that show the cause call from the program's own line on: the words of each, with
    its seconds. Empty if no stack shows it."""
    found: dict[SampledStack, float] = {}
    for term in cause.exposed:
        stacks = stacks_of(term, facts)
        if stacks is not None and (term.stack is not None or term.code is not None):
            found |= stack_term(term).counts(stacks)
    return tuple((_words(one), seconds) for one, seconds in found.items())


def cores_for(cause: Cause, facts: DiagnosisFacts) -> float | None:
    """Return how many workers, threads or processes a change that tests the cause may ask for: one a core.

    More of them take the cores from each other, and from the training. None, no limit, if the cores are
    unknown, or if what they do is seen to wait for a store or a network and leaves the cores idle: many that
    wait fit on a core.
    """
    busy = number(facts.signals.get("cores_busy_share"))
    idle = busy is not None and busy < _MOSTLY and _waits(cause, facts)
    return None if idle else number(facts.signals.get("cores"))


def _waits(cause: Cause, facts: DiagnosisFacts) -> bool:
    """Tell whether what takes the cause's time mostly waits: in loader workers where there are any, else in
    the training thread."""
    workers, training = (facts.stacks.workers, facts.stacks.training) if facts.stacks else (None, None)
    found: dict[SampledStack, float] = {}
    if workers is not None:
        found = {one: one.seconds for one in seen(workers)}
    elif training is not None:
        phases = frozenset[str]().union(*(_PHASES.get(term.signal or "", ()) for term in cause.exposed))
        found = {one: one.seconds for one in seen(training) if one.phase in phases}
        for term in cause.exposed:
            if term.stack is not None and term.of != "workers":
                found |= stack_term(term).counts(training)
    total = sum(one.seconds for one in found)
    return total > 0 and sum(one.within("waiting") for one in found) >= _MOSTLY * total


def _words(one: SampledStack) -> frozenset[str]:
    called = " ".join((*one.frames[one.own or 0 :], one.source or "")).lower()
    return frozenset(_WORD.findall(called))


def _share(found: TermFigure) -> float:
    return number(found.value) or 0.0


def _of_phase(signal: str | None, facts: DiagnosisFacts) -> CodeLine | None:
    training, phases = facts.stacks.training if facts.stacks else None, _PHASES.get(signal or "")
    return _hottest(training, phases) if training is not None and phases is not None else None


def _hottest(stacks: Stacks, phases: frozenset[str]) -> CodeLine | None:
    """Return the line of the program with the most seconds of `phases`."""
    seconds: defaultdict[tuple[str, int | None, str | None], float] = defaultdict(float)
    states: dict[tuple[str, int | None, str | None], str] = {}
    for one in seen(stacks):
        if one.own is not None and one.phase in phases and one.seconds > 0:
            seconds[one.spot] += one.seconds
            states.setdefault(one.spot, one.place.state)
    if not seconds:
        return None
    most = max(seconds, key=lambda spot: seconds[spot])
    return CodeLine(*most, states[most])
