"""Whether the metric moved far enough, and whether enough of it was seen to say so."""

from __future__ import annotations

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import JOULES
from gpudebug.core.verdict.gates import held_up, stand_in
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.verdict.gates.early import is_hopeless
from gpudebug.core.verdict.gates.enough import short_window
from gpudebug.core.verdict.gates.figures import comparable, has_metric, told_by
from gpudebug.core.verdict.gates.text import improvement_text
from gpudebug.core.words import Result


def delta_gate(case: TrialCase) -> Gate:
    c = case.criteria
    success, failure = (numbers.threshold(case.metric, v) for v in (c.success, c.failure))
    threshold = f"estimate >= {success} and lower bound > {failure}"
    gate = Gate(name="delta", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    if case.delta is None:
        return gate.model_copy(update={"note": _absent(case)})
    gate = gate.model_copy(update={"value": improvement_text(case.metric, case.delta)})
    short = short_window(case.criteria, case.before, case.after)
    if short and is_hopeless(case):
        return gate.model_copy(update={"result": Result.FAIL})
    if short:
        return gate.model_copy(update={"note": _advised(short, case.setting.window_advice)})
    assert case.delta.low is not None and case.delta.high is not None
    if case.delta.value >= c.success and case.delta.low > c.failure:
        return gate.model_copy(update={"result": Result.PASS})
    if held_up.hides_delta(case):
        return gate.model_copy(update={"note": held_up.text(case)})
    if held_up.too_small(case.delta, c.failure, c.success):
        if stand_in.hides_delta(case):
            return gate.model_copy(update={"note": stand_in.text(case)})
        if case.metric.by_steps and (why := case.larger_steps_unseen):
            return gate.model_copy(update={"note": why})
        return gate.model_copy(update={"result": Result.FAIL})
    return gate.model_copy(update={"note": "the interval does not decide; more runs would narrow it"})


def _absent(case: TrialCase) -> str:
    """Which run lacks the metric, and why."""
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
    short = e.window is None and "too short" in reason
    return _advised(reason, case.setting.window_advice if short else None)


def _advised(text: str, advice: str | None) -> str:
    return f"{text}; {advice}" if advice else text
