"""Whether the trial learns as the baseline does: by loss at equal steps, by a reward or another series."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from gpudebug.core.records import Evidence, Gate, LearningUnit
from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.intervals import Prior, difference
from gpudebug.core.statistics.loss_curve import PRIOR_WEIGHT, Curve, Distance, distance
from gpudebug.core.statistics.numbers import number
from gpudebug.core.statistics.units import BY_LOG, BY_STEPS, HIGHER, MIN_POINTS
from gpudebug.core.verdict import work
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.words import Result, Trend

TOLERANCE = 0.10
"""Of what the baseline's figure moves by, or of its level if it stays: below it a difference is harmless."""
PRIOR_SHARE = assumed("reward_apart")
LAST, FIRST = 0.25, 0.125
SEEN = 0.75
"""Of what the baseline's figure moves by: an interval that reaches further behind shows nothing of it."""
STEP_APART = 1.5
"""Steps of a file that are as much work in both sides come to shares of it that differ by less."""


class Behind(NamedTuple):
    """How far the trial is behind, with its interval, in what the baseline's figure moves by.

    `moves` is False where that is no more than its noise.
    """

    share: float
    low: float
    high: float
    moves: bool


def course_gate(case: TrialCase, unit: LearningUnit) -> Gate:
    """Return the loss gate by this series: no NaN, and no collapse that the baseline does not have.

    A flat reward passes: whether it is as good as the baseline's is `loss_parity`'s question.
    """
    found = work.worst(case.after, unit)
    gate = Gate(
        name="loss",
        value=f"{unit.name} {_ends(case.after, unit)}",
        threshold=f"{unit.name} finite and not getting worse where the baseline's does not",
        result=Result.PASS,
        note=f"learning is judged by {work.learning_text(unit)}",
    )
    if found is Trend.NAN:
        return gate.model_copy(update={"value": f"{unit.name} {Trend.NAN}", "result": Result.FAIL})
    if found is Trend.UNKNOWN:
        run = next(e for e in case.after if _trend(e, unit) is Trend.UNKNOWN)
        note = f"run {run.run} shows fewer than {MIN_POINTS} values of {unit.name} ({unit.source})"
        notes = "; ".join((note, *run.learning_notes))
        return gate.model_copy(update={"value": UNKNOWN, "result": Result.UNKNOWN, "note": notes})
    if found is Trend.DIVERGING and work.worst(case.before, unit) is not Trend.DIVERGING:
        apart = _apart(case, unit, by_time=False)
        result = (
            Result.UNKNOWN
            if isinstance(apart, str)
            else Result.FAIL
            if apart.low > TOLERANCE
            else Result.PASS
        )
        return gate.model_copy(update={"result": result})
    return gate


def _trend(e: Evidence, unit: LearningUnit) -> Trend:
    return work.trend(work.series_of(e, unit), unit.direction)


def _ends(runs: Sequence[Evidence], unit: LearningUnit) -> str:
    known = [one for e in runs if (one := work.series_of(e, unit)) is not None]
    ends = [(one.first, one.last) for one in known if one.first is not None and one.last is not None]
    if not ends:
        return UNKNOWN
    first, last = (math.fsum(values) / len(ends) for values in zip(*ends, strict=True))
    return f"{number(first)} to {number(last)}"


def equal_work_gate(case: TrialCase, unit: LearningUnit) -> Gate:
    """`loss_parity` by this series: as good as the baseline's at equal work.

    A change of what a step takes (more environments, another batch) may trade work for speed: it fails only
    if learning is behind at equal time, too. Where no work is in common, a figure that stays where it was and
    rose in the baseline is unknown.
    """
    threshold = f"at most {TOLERANCE:.0%} of its change behind the baseline's at equal work"
    gate = Gate(name="loss_parity", value=UNKNOWN, threshold=threshold, result=Result.SKIPPED)
    found = _apart(case, unit, by_time=False)
    if isinstance(found, str):
        return _incomparable(gate.model_copy(update={"note": f"not comparable: {found}"}), case, unit)
    result = _judged(found)
    value = f"{unit.name} {-found.share:+.0%} of what the baseline's moves by"
    note = f"behind the baseline's {unit.name}, but not surely" if result is Result.UNKNOWN else None
    if result is Result.FAIL and _may_be_chance(case):
        result, note = Result.UNKNOWN, _ONE_RUN
    if result is not Result.PASS and case.trades_work:
        timed = _apart(case, unit, by_time=True)
        if not isinstance(timed, str) and _judged(timed) is Result.PASS:
            result, note = Result.PASS, f"behind at equal work, and {-timed.share:+.0%} at equal time"
    return gate.model_copy(update={"value": value, "result": result, "note": note})


_ONE_RUN = "behind in the one run of the change, which its seed may have done: another run tells"


def _may_be_chance(case: TrialCase) -> bool:
    """Tell whether another run would show if it was the change that learned less.

    Trainings draw their seed, and now and then one of them gets stuck; runs of the baseline that happen to
    agree do not show how often.
    """
    return len(case.after) == 1 < case.most and case.setting.order is not None


def _incomparable(gate: Gate, case: TrialCase, unit: LearningUnit) -> Gate:
    """SKIPPED, as the course of the figure has been judged; not if the trial does not show any."""
    sides = [work.worst(runs, unit) for runs in (case.before, case.after)]
    if sides != [Trend.CONVERGING, Trend.PLATEAU]:
        return gate
    timed = _apart(case, unit, by_time=True) if case.trades_work else gate.note or ""
    if not isinstance(timed, str) and _judged(timed) is Result.PASS:
        return gate.model_copy(update={"note": f"{gate.note}; {-timed.share:+.0%} at equal time"})
    flat = f"{unit.name} is flat where the baseline's gets better; longer runs (protocol: run_for) would tell"
    note = f"{gate.note}, and {flat}"
    return gate.model_copy(update={"result": Result.UNKNOWN, "note": note})


def _judged(found: Behind) -> Result:
    """Not surely behind passes if the runs would have shown it: one run a side says next to nothing."""
    if found.share <= TOLERANCE:
        return Result.PASS
    if found.low <= 0 and (found.high <= SEEN or not found.moves):
        return Result.PASS
    return Result.FAIL if found.low > TOLERANCE else Result.UNKNOWN


def _apart(case: TrialCase, unit: LearningUnit, *, by_time: bool) -> Behind | str:
    """Return how far the trial is behind over the last quarter of the common work; why not, as text."""
    sides: list[list[Curve]] = []
    overs = set()
    for runs, rates in ((case.before, case.rates.before), (case.after, case.rates.after)):
        curves: list[Curve] = []
        for index, e in enumerate(runs):
            one = work.series_of(e, unit)
            if one is None or not one.curve:
                return f"run {e.run} shows no {unit.name} over work"
            overs.add(one.over)
            per_s = rates[index] if by_time and index < len(rates) else None
            if by_time and not per_s:
                return "the runs do not all count their work"
            curves.append([(x / per_s, y) for x, y in one.curve] if per_s else one.curve)
        sides.append(curves)
    if len(overs) > 1:
        return "the runs show it over different counters"
    if case.trades_work and not _over_work(unit, overs) and not _equal_steps(case, sides):
        return "one step may do a different amount of work in the trial, so the curves cannot be compared"
    return _behind(sides[0], sides[1], unit.direction == HIGHER)


def _over_work(unit: LearningUnit, overs: Collection[str | None]) -> bool:
    return unit.source == BY_LOG and BY_STEPS not in overs


def _equal_steps(case: TrialCase, sides: Sequence[Sequence[Curve]]) -> bool:
    """Tell whether a step of the file is as much work in both sides: it may be an update, which takes more of
    it where there are more environments."""
    shares = []
    for runs, rates, curves in zip(
        (case.before, case.after), (case.rates.before, case.rates.after), sides, strict=True
    ):
        done = [per_s * e.duration_s for e, per_s in zip(runs, rates, strict=False) if e.duration_s]
        if len(done) < len(runs) or min(done) <= 0:
            return False
        steps = [curve[-1][0] for curve in curves]
        shares.append(math.fsum(steps) / math.fsum(done))
    return shares[0] > 0 and 1 / STEP_APART <= shares[1] / shares[0] <= STEP_APART


def _behind(before: Sequence[Curve], after: Sequence[Curve], higher: bool) -> Behind | str:
    every = (*before, *after)
    low, high = max(c[0][0] for c in every), min(c[-1][0] for c in every)
    if high <= low:
        return "the runs have no work in common"
    start = high - LAST * (high - low)
    ends = [[_between(c, start, high) for c in side] for side in (before, after)]
    if any(not values for side in ends for values in side):
        return "a run shows no value in the last quarter of the work that all runs did"
    old, new = ([_mean(values) for values in side] for side in ends)
    begun = [_mean(values) for c in before if (values := _between(c, low, low + FIRST * (high - low)))]
    level = _mean(old)
    moved = abs(level - _mean(begun)) if begun else 0.0
    scale = max(moved, max(old) - min(old), TOLERANCE * abs(level), _noise(before))
    if scale <= 0:
        return Behind(0.0, 0.0, 0.0, moves=False) if old == new else "the baseline's figure does not move"
    prior = Prior(sd=PRIOR_SHARE * scale, weight=PRIOR_WEIGHT)
    found = difference(old, new, prior)
    sign = -1.0 if higher else 1.0
    bounds = (sign * (found.low or 0.0), sign * (found.high or 0.0))
    return Behind(sign * found.value / scale, min(bounds) / scale, max(bounds) / scale, moves=scale <= moved)


def _noise(curves: Sequence[Curve]) -> float:
    """Return the usual step from one point of a curve to the next."""
    steps = [abs(b[1] - a[1]) for c in curves for a, b in pairwise(c)]
    return sorted(steps)[len(steps) // 2] if steps else 0.0


def _between(curve: Curve, low: float, high: float) -> list[float]:
    return [value for x, value in curve if low <= x <= high]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# Of what the baseline's loss falls by: below it a difference is harmless, and noise.
SEEN_LOSS = 0.25
"""An interval that reaches further above, in what the baseline's loss falls by, shows nothing of it."""


def parity_gate(case: TrialCase) -> Gate:
    """Fails if the trial's loss is above the baseline's by surely more than a tenth of its fall.

    A lower loss passes. A run without its curve, or another batch, makes the steps not comparable.
    """
    threshold = f"at most {TOLERANCE:.0%} of its fall above the baseline's at equal steps"
    gate = Gate(name="loss_parity", value=UNKNOWN, threshold=threshold, result=Result.SKIPPED)
    if case.learning is not None and case.criteria.loss != "any":
        return equal_work_gate(case, case.learning)
    found = losses_apart(case)
    if not isinstance(found, Distance):
        return gate.model_copy(update={"note": f"not comparable: {found}"})
    share, low, high = found.value.value / found.fall, found.value.low, found.value.high
    assert low is not None and high is not None
    # What is not surely higher is harmless if these runs would have shown it: one run a side does not.
    harmless = share <= TOLERANCE or (low <= 0 and high / found.fall <= SEEN_LOSS)
    sure = low / found.fall > TOLERANCE
    result = Result.PASS if harmless else Result.FAIL if sure else Result.UNKNOWN
    above = f"{found.value.value:+.3g}, {share:.0%} of what the baseline's falls by"
    note = None if result is not Result.UNKNOWN else "higher than the baseline's, but not surely by so much"
    if result is Result.FAIL and _may_be_chance(case):
        result, note = Result.UNKNOWN, _ONE_RUN
    return gate.model_copy(update={"value": above, "result": result, "note": note})


def agrees(case: TrialCase) -> bool:
    """Whether the losses of both sides are known to be the same at equal steps: neither higher nor lower."""
    found = None if case.learning is not None else losses_apart(case)
    if not isinstance(found, Distance):
        return False
    share, *bounds = (
        x / found.fall for x in (found.value.value, found.value.low, found.value.high) if x is not None
    )
    return abs(share) <= TOLERANCE and len(bounds) == 2 and max(map(abs, bounds)) <= SEEN_LOSS


def losses_apart(case: TrialCase) -> Distance | str:
    """Return how far apart the losses of both sides are at equal steps; why that is not known."""
    before, after = ([e.loss.curve for e in runs] for runs in (case.before, case.after))
    return _losses_incomparable(case) or distance(before, after)


def _losses_incomparable(case: TrialCase) -> str | None:
    if case.criteria.loss == "any":
        return "the criteria have loss: any"
    if case.setting.other_steps:
        return case.setting.other_steps
    names = sorted({e.loss.name or "no loss" for e in (*case.before, *case.after)})
    if len(names) > 1:
        return f"the logs print {' and '.join(names)}"
    totals = sorted({e.total_steps for e in (*case.before, *case.after) if e.total_steps})
    if len(totals) > 1:
        return f"the runs plan {totals[0]} and {totals[-1]} steps, which a schedule may depend on"
    units = sorted({e.step_unit or "no steps" for e in (*case.before, *case.after)})
    return f"the logs count {' and '.join(units)}" if len(units) > 1 else None
