"""The power of a trial: the chance that it would have shown the cause that its hypothesis tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudebug.core.catalogue.model import Own
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.diagnosis.model import Tested
from gpudebug.core.words import VERDICTS, SignalValue, Status

WRITTEN, FLAG, UNMOVED = 0.9, 0.6, 0.3
"""Of code that was written for this cause; of a flag or variable; of a change that moved nothing of its
own. Judgements (knowledge of the field, not measured)."""
_MOVED = 0.1
_GONE = 0.05
"""A figure moved where it changed by a tenth of what it was; it is gone below a twentieth of it."""


def power_of(
    change: Intervention | None,
    own: Sequence[Own],
    before: Mapping[str, SignalValue],
    after: Mapping[str, SignalValue],
) -> float:
    """Of a trial of `change` (None: unknown) for a cause with these `own_signal`s.

    `before` and `after` are the signals of baseline and trial. Where none of those that are known on both
    sides moved as it should, the change hardly took effect; if none is known, nothing speaks against it.
    """
    shares = [moved(one, before.get(one.signal), after.get(one.signal)) for one in own]
    if False in shares and True not in shares:
        return UNMOVED
    return WRITTEN if change is not None and (change.patch or change.needs_code) else FLAG


def moved(own: Own, before: SignalValue | None, after: SignalValue | None) -> bool | None:
    """Tell whether a figure went where it should; None if it is not known or is a word."""
    if before is None or after is None or isinstance(before, str) or isinstance(after, str):
        return None
    then, now = float(before), float(after)
    if own.direction == "is_zero":
        return now <= _GONE * abs(then)
    change = (now - then) if own.direction == "rises" else (then - now)
    return change > 0 and change >= _MOVED * abs(then)


def judged(
    number: int, status: Status, powers: Mapping[str, float], *, before_accepting: bool
) -> tuple[Tested, ...]:
    """Return what a hypothesis with this status says of the causes that it tested, `powers` by their ids.

    Nothing if it has no verdict, or an INVALID one: that trial was none.
    """
    if status not in VERDICTS or status is Status.INVALID:
        return ()
    groups: dict[float, list[str]] = {}
    for cause, power in powers.items():
        groups.setdefault(power, []).append(cause)
    return tuple(
        Tested(tuple(causes), status.value, power, number, before_accepting)
        for power, causes in groups.items()
    )
