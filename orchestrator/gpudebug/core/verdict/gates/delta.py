"""Whether the metric moved far enough, and whether the runs are sure of that."""

from __future__ import annotations

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.intervals import CONFIDENCE
from gpudebug.core.statistics.level import SHORT, Effect
from gpudebug.core.statistics.metrics import JOULES
from gpudebug.core.verdict import others
from gpudebug.core.verdict.gates import stand_in
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.verdict.gates.figures import comparable, has_metric, told_by, utilisations
from gpudebug.core.verdict.gates.rates import mean
from gpudebug.core.verdict.gates.text import bounds_text, improvement_text
from gpudebug.core.words import Result

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
        if crowded := others.no_room(case.before, level, case.criteria.success):
            return crowded
    if stand_in.hides_delta(case):
        return stand_in.text(case)
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
