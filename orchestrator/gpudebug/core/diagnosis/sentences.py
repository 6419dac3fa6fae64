"""What a sign says of a run, in one clause."""

from __future__ import annotations

import re

from gpudebug.core.catalogue.signals import BELOW_ZERO, SIGNALS
from gpudebug.core.diagnosis.figures import TermFigure, figure, number
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import WeighedSign
from gpudebug.core.statistics import numbers
from gpudebug.core.words import SignalValue

_NEARLY_ALL = 0.8
_NAMED = 3
_ESCAPE, _WORD = re.compile(r"\\[A-Za-z]"), re.compile(r"[A-Za-z][A-Za-z_]{3,}")
"""Words of an expression as people know them."""


def sentence_of(weighed: WeighedSign, facts: DiagnosisFacts) -> str:
    """Return the fact behind a sign that is known, with the reference's if that is another."""
    if weighed.found is None:
        return ""
    sentence = _sentence(weighed, weighed.found)
    if weighed.shared:
        return f"{sentence}, as in the reference"
    other = figure(weighed.sign, facts.reference) if facts.reference is not None else None
    if other is None or weighed.sign.signal is None:
        return sentence
    return f"{sentence} (the reference: {value(other.value, SIGNALS[weighed.sign.signal].unit)})"


def _sentence(weighed: WeighedSign, found: TermFigure) -> str:
    sign = weighed.sign
    if sign.signal is not None:
        return _of_signal(sign.signal, found.value)
    if sign.stack is not None or sign.code is not None:
        return _of_stacks(weighed, found)
    if sign.section is not None:
        return f"section {found.name} takes {value(found.value, 'share')} of the profiled time"
    if sign.flag is not None:
        return f"--{found.name} is {'set' if found.value is True else found.value}"
    return f"the configuration has {found.name} = {found.value}"


def _of_signal(name: str, found: SignalValue) -> str:
    signal, known = SIGNALS[name], number(found)
    if known is not None and known < 0 and name in BELOW_ZERO:
        return BELOW_ZERO[name].replace("{}", value(-known, signal.unit))
    return signal.said.replace("{}", value(found, signal.unit))


def _of_stacks(weighed: WeighedSign, found: TermFigure) -> str:
    """Return how much of the time, and the place with the most of it."""
    whose = "loader workers' time" if weighed.sign.of == "workers" else "the time"
    if found.place is None:
        wanted = weighed.sign.stack or weighed.sign.code or ""
        words = list(dict.fromkeys(_WORD.findall(_ESCAPE.sub(" ", wanted))))[:_NAMED]
        kind = f"such as {', '.join(words)}" if words else "of this kind"
        return f"none of {whose} is in code {kind}"
    where = "in" if found.part >= _NEARLY_ALL else "in code of this kind, most of it in"
    return f"{value(found.value, 'share')} of {whose} {where} {found.place}"


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
