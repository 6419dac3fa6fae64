"""Whether the metric moved far enough, and surely; figures beside it got no worse."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import LARGE, counted_as_busy
from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.intervals import CONFIDENCE
from gpudebug.core.statistics.level import SHORT, Effect, Noise
from gpudebug.core.statistics.metrics import JOULES, LOG, Metric
from gpudebug.core.statistics.units import rate_for
from gpudebug.core.verdict import machine
from gpudebug.core.verdict.gates.case import SIDE_SURE, UNKNOWN, TrialCase, effect_of
from gpudebug.core.verdict.gates.figures import (
    bounds_text,
    comparable,
    has_metric,
    improvement_text,
    mean,
    throughput_result,
    told_by,
    utilisations,
)
from gpudebug.core.words import Result


def hides_delta(case: TrialCase) -> bool:
    """Tell whether a delta that is too small may be that of a gain: more got done, or that is still open by
    more than what is large.

    Where the CPU stands in for a GPU, utilisation counts what the training process computes beside its model.
    """
    if not case.metric.points or counted_as_busy(case.before) is None:
        return False
    if case.ratio is None or case.ratio.high is None:
        return False
    return is_faster(case) or case.ratio.high >= 1 / (1 - LARGE)


def is_faster(case: TrialCase) -> bool:
    """Tell whether more got done."""
    return case.ratio is not None and throughput_result("better", case.ratio) is Result.PASS


def stand_in_text(case: TrialCase) -> str:
    """Return what utilisation counts, and which metric shows what the change does."""
    unit = case.setting.work.unit if case.setting.work is not None else None
    return f"{counted_as_busy(case.before)}; set metric: {rate_for(unit)} in gpudebug.yaml"


LEAST_TRIALS = 2
"""Runs of the change before VALIDATED."""
CONTRADICTED = 0.95
"""One-sided: how sure it must be that the trial made its own baseline worse."""


def delta_gate(case: TrialCase) -> Gate:
    """Passes only behind a run of the baseline: the change must beat it before and after."""
    c = case.criteria
    success, failure = (numbers.threshold(case.metric, v) for v in (c.success, c.failure))
    threshold = f"estimate >= {success} and lower bound > {failure}"
    gate = Gate(name="delta", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    if case.delta is None or case.effect is None:
        return gate.model_copy(update={"note": _absent(case)})
    gate = gate.model_copy(update={"value": improvement_text(case.metric, case.delta)})
    if is_gain(case.effect, *case.thresholds):
        return gate.model_copy(update={"result": Result.PASS})
    if is_too_small(case.effect, *case.thresholds):
        hidden = hides(case)
        return gate.model_copy(update={"note": hidden} if hidden else {"result": Result.FAIL})
    if case.effect.value >= case.thresholds[0] and not _is_shown(case.effect.plain):
        note = "the gain rests on what others took of the runs' time, which the change itself may have raised"
        return gate.model_copy(update={"note": note})
    likely = bounds_text(case.metric, case.delta)
    note = f"a gain of {likely} is likely; success asks for {success} and surely more than {failure}"
    return gate.model_copy(update={"note": note})


def is_gain(effect: Effect, success: float, failure: float) -> bool:
    """Tell whether the effect passes, as things are.

    A change that makes its own processes wait for cores raises what others take of their time: that may keep
    it from being rejected, and makes no gain. So the values alone have to show one.
    """
    return (
        effect.closed
        and effect.trials >= LEAST_TRIALS
        and effect.value >= success
        and effect.bounds()[0] > failure
        and not effect.earlier_below(success, CONTRADICTED)
        and _is_shown(effect.plain)
    )


def _is_shown(plain: Effect | None) -> bool:
    return plain is None or plain.bounds(CONFIDENCE)[0] > 0


def is_too_small(effect: Effect, success: float, failure: float) -> bool:
    """Tell whether the effect is below `failure`, and surely below `success`. One short run says neither."""
    enough = effect.trials > 1 or effect.worth * SHORT >= 1
    return enough and effect.value < failure and effect.bounds()[1] < success


def hides(case: TrialCase) -> str | None:
    """Return why a delta that is too small may be that of a gain all the same; None if nothing hides one."""
    if case.metric.points:
        level = mean(utilisations(case.before))
        if crowded := machine.no_room(case.before, level, case.criteria.success):
            return crowded
    if hides_delta(case):
        return stand_in_text(case)
    return case.larger_steps_unseen if case.metric.by_steps else None


def _absent(case: TrialCase) -> str:
    """Return which run lacks the metric, and why."""
    for part, runs in (("trial", case.after), ("baseline", case.before)):
        for e in runs:
            if not has_metric(case.metric, e):
                where = part if len(runs) == 1 else f"{part}, run {e.run}"
                return f"{where}: {_reason(case, e)}"
    assert not comparable(case.metric, (*case.before, *case.after))
    values = [sorted({str(told_by(case.metric, e)) for e in runs}) for runs in (case.before, case.after)]
    before, after = (" and ".join(sources) for sources in values)
    what = {
        "samples_per_s": "samples per second are",
        "steps_per_s": "steps per second are",
        JOULES: "joules a step are",
    }
    subject = what.get(case.metric.name, "step times are")
    return f"{subject} reported by {before} in the baseline, by {after} in the trial"


def _reason(case: TrialCase, e: Evidence) -> str:
    # A latency is printed or not, whatever the window.
    window_reason = None if case.metric.latency else e.window_reason
    reasons = [window_reason, *(d.reason for d in e.devices if case.metric.points)]
    reason = next((r for r in reasons if r), case.metric.absent(e))
    advice = case.setting.window_advice if e.window is None and "too short" in reason else None
    return f"{reason}; {advice}" if advice else reason


PREFIX = "also:"
QUALITY_SD = assumed("quality_apart")


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
    return tuple(_also_gate(case, name, term) for name, term in (case.criteria.also or {}).items())


def also_notes(case: TrialCase) -> tuple[str, ...]:
    """Return a line for each figure that both sides have: what it was, and what it became."""
    found = ((name, quality_change(case, name, term)) for name, term in (case.criteria.also or {}).items())
    return tuple(f"{name} {_from_to(change)}" for name, change in found if change is not None)


def _also_gate(case: TrialCase, name: str, term: Mapping[str, object]) -> Gate:
    allowed = float(str(term["not_worse"])) - 1
    threshold = f"at most {100 * allowed:.3g}% worse, {term['direction']} is better"
    gate = Gate(name=f"{PREFIX}{name}", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    change = quality_change(case, name, term)
    if change is None:
        return gate.model_copy(update={"note": _absent_figure(case, name)})
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


def _absent_figure(case: TrialCase, name: str) -> str:
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
