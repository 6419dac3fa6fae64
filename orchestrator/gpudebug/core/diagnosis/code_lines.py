"""The line of the program to read for a cause, and the wait that no likely cause explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpudebug.core.catalogue.model import Cause, Term
from gpudebug.core.diagnosis.model import DiagnosisFacts, UnexplainedWait
from gpudebug.core.diagnosis.odds import TermFigure, WeighedSign, figure, number
from gpudebug.core.inside.stacks.shares import CodeLine, SampledStack, pattern, seen
from gpudebug.core.records import Stacks

LEAST = 0.2
"""Of the time, from which a wait without a cause is named: that of a cause that can hold a run back."""
_BUSY = 90.0
"""Percent of utilisation from which the device does not wait for the host."""
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
_WAITS = frozenset(f"(kernel):{what}" for what in ("sleep", "disk", "page", "socket", "fsync"))
"""Waits for time, files or another process; one for threads of the program's own is none."""

_Covers = Callable[[SampledStack], bool]


def line_of(cause: Cause, signs: Sequence[WeighedSign], facts: DiagnosisFacts) -> CodeLine | None:
    """Return the line with most of the time that the cause explains; else that of its strongest sign that has
    one, else the hottest line of the phase that it is about. None if nothing shows one."""
    found = [f for term in cause.exposed if (f := figure(term, facts)) is not None and f.place is not None]
    most = max(found, key=_share, default=None)
    if most is not None:
        return most.place
    ordered = sorted(signs, key=lambda sign: -sign.factor)
    places = [s.found.place for s in ordered if s.true and s.factor > 1 and s.found is not None]
    known = next((place for place in places if place is not None), None)
    return known or _of_phases(cause, facts)


def _share(found: TermFigure) -> float:
    return number(found.value) or 0.0


def _of_phases(cause: Cause, facts: DiagnosisFacts) -> CodeLine | None:
    training = facts.stacks.training if facts.stacks else None
    phases = next((_PHASES[name] for t in cause.exposed if (name := t.signal) in _PHASES and name), None)
    if training is None or phases is None:
        return None
    return _hottest(training, lambda one: one.seconds if one.phase in phases else 0.0)[1]


def unexplained(causes: Iterable[Cause], facts: DiagnosisFacts) -> UnexplainedWait | None:
    """The line of the thread that trains with most waiting that none of the (likely) `causes` explains.

    A wait counts if it is for data, for time, for files or for another process. What a cause takes of the
    time somewhere that is not known is taken from it. None below `LEAST`, on a device that is busy
    anyway, and without stacks.
    """
    training = facts.stacks.training if facts.stacks else None
    busy = number(facts.signals.get("gpu_util"))
    if training is None or training.seconds <= 0:
        return None
    if busy is not None and busy > _BUSY and facts.signals.get("device_stand_in") is False:
        return None
    covered, elsewhere = list[_Covers](), 0.0
    for term in (term for cause in causes for term in cause.exposed):
        covers = _covers(term, training)
        if covers is not None:
            covered.append(covers)
        else:
            found = figure(term, facts)
            elsewhere = max(elsewhere, _share(found) if found else 0.0)

    def waited(one: SampledStack) -> float:
        waits = one.phase in _DATA or (one.frames and one.frames[-1] in _WAITS)
        return one.within("waiting") if waits and not any(covers(one) for covers in covered) else 0.0

    seconds, line = _hottest(training, waited)
    share = seconds / training.seconds - elsewhere
    if line is None or share < LEAST:
        return None
    return UnexplainedWait(min(1.0, share), line._replace(state="waiting"))


def _covers(term: Term, training: Stacks) -> _Covers | None:
    """Return which stacks a share of the time is of; None if that is not known."""
    if term.signal is not None:
        phases = _PHASES.get(term.signal)
        return None if phases is None else lambda one: one.phase in phases
    if term.stack is None and term.code is None:
        return None
    if term.of == "workers":
        return lambda one: one.phase in _DATA
    frames, sources = _found(term.stack, training.frames), _found(term.code, training.code.values())
    return lambda one: (
        term.phase in (None, one.phase) and (one.source in sources or not frames.isdisjoint(one.frames))
    )


def _found(expression: str | None, texts: Iterable[str]) -> frozenset[str | None]:
    if expression is None:
        return frozenset()
    search = pattern(expression).search
    return frozenset(text for text in texts if search(text))


def _hottest(stacks: Stacks, taken: Callable[[SampledStack], float]) -> tuple[float, CodeLine | None]:
    """Return the line of the program with the most seconds, of what `taken` gives of each stack."""
    seconds: defaultdict[tuple[str, int | None, str | None], float] = defaultdict(float)
    states: dict[tuple[str, int | None, str | None], str] = {}
    for one in seen(stacks):
        if one.own is not None and (spent := taken(one)) > 0:
            seconds[one.spot] += spent
            states.setdefault(one.spot, one.place.state)
    if not seconds:
        return 0.0, None
    most = max(seconds, key=lambda spot: seconds[spot])
    return seconds[most], CodeLine(*most, states[most])
