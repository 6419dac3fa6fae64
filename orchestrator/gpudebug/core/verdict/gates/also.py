"""Further figures that a trial must not make worse: `criteria.also`, a gate each, named `also:METRIC`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.level import Noise
from gpudebug.core.statistics.metrics import LOG, Metric
from gpudebug.core.verdict.gates.case import SIDE_SURE, UNKNOWN, TrialCase, effect_of
from gpudebug.core.words import Result

PREFIX = "also:"
QUALITY_SD = 0.03
"""Run-to-run noise of a quality before a campaign has shown its own, as a share of it: a success rate of
90 % over 100 attempts has 3 points."""


class QualityChange(NamedTuple):
    """A figure before and after, and the change as a share of before: above 0 is better. `most` is its upper
    bound for a figure beside the metric."""

    before: float
    after: float
    value: float
    low: float
    high: float
    most: float


def also_gates(case: TrialCase) -> tuple[Gate, ...]:
    """Return the gates of `criteria.also`, in its order."""
    return tuple(_gate(case, name, term) for name, term in (case.criteria.also or {}).items())


def also_notes(case: TrialCase) -> tuple[str, ...]:
    """Return a line for each figure that both sides have: what it was, and what it became."""
    found = ((name, quality_change(case, name, term)) for name, term in (case.criteria.also or {}).items())
    return tuple(f"{name} {_from_to(change)}" for name, change in found if change is not None)


def _gate(case: TrialCase, name: str, term: Mapping[str, object]) -> Gate:
    allowed = float(str(term["not_worse"])) - 1
    threshold = f"at most {100 * allowed:.3g}% worse, {term['direction']} is better"
    gate = Gate(name=f"{PREFIX}{name}", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    change = quality_change(case, name, term)
    if change is None:
        return gate.model_copy(update={"note": _absent(case, name)})
    gate = gate.model_copy(update={"value": f"{_from_to(change)}, {_worse_or_better(change)}"})
    if change.value >= -allowed:
        return gate.model_copy(update={"result": Result.PASS})
    if change.most < -allowed:
        return gate.model_copy(update={"result": Result.FAIL})
    return gate.model_copy(update={"note": "worse, but not surely by so much; more runs would tell"})


def _from_to(change: QualityChange) -> str:
    return f"{numbers.number(change.before)} to {numbers.number(change.after)}"


def _worse_or_better(change: QualityChange) -> str:
    """`22.2% worse (95% CI 9.4 to 35)`."""
    value, low, high = change.value, change.low, change.high
    word = "better"
    if value < 0:
        value, low, high, word = -value, -high, -low, "worse"
    return f"{100 * value:.3g}% {word} (95% CI {100 * low:.3g} to {100 * high:.3g})"


def quality_change(case: TrialCase, name: str, term: Mapping[str, object]) -> QualityChange | None:
    """None if a run of either side lacks the figure.

    Differences and not ratios: a success rate may fall to 0, and a return may be negative.
    """
    lower = term["direction"] == "lower"
    before, after = ([_figure(e, name) for e in runs] for runs in (case.before, case.after))
    known, now = ([v for v in side if v is not None] for side in (before, after))
    if len(known) + len(now) < len(before) + len(after):
        return None
    middle = math.fsum(known) / len(known)
    scale = max(abs(middle), *(abs(v) for v in now)) if middle == 0 else abs(middle)
    if scale == 0:
        return QualityChange(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    sign = -1 if lower else 1
    relative = [sign * v / scale for v in known], [sign * v / scale for v in now]
    found = effect_of(case, *relative, Noise(QUALITY_SD, relative=True))
    most = found.bounds(SIDE_SURE)[1]
    return QualityChange(middle, math.fsum(now) / len(now), found.value, *found.bounds(), most)


def _figure(e: Evidence, name: str) -> float | None:
    """Return the figure of one run; of the user's own patterns also 0 and below."""
    if name.startswith(LOG):
        return e.logged.get(name.removeprefix(LOG))
    return Metric(name).value(e)


def _absent(case: TrialCase, name: str) -> str:
    for part, runs in (("trial", case.after), ("baseline", case.before)):
        missing = next((e for e in runs if _figure(e, name) is None), None)
        if missing is not None:
            where = part if len(runs) == 1 else f"{part}, run {missing.run}"
            return f"{where}: {what_is_missing(missing, name)}"
    raise AssertionError("only a missing figure has no change")


def what_is_missing(e: Evidence, name: str) -> str:
    """Return why a run lacks this figure, and what to do."""
    if not name.startswith(LOG):
        return Metric(name).absent(e)
    own = name.removeprefix(LOG)
    return f"the program printed no {own}; print `{own}: 0.93`, or set `log: {{{own}: …}}` in gpudebug.yaml"


def missing_in(runs: Sequence[Evidence], terms: Mapping[str, object] | None) -> list[str]:
    """Return a line for each figure of `criteria.also` that a run of a baseline lacks."""
    lacks = ((name, next((e for e in runs if _figure(e, name) is None), None)) for name in terms or ())
    return [f"run {e.run}: {what_is_missing(e, name)}" for name, e in lacks if e is not None]
