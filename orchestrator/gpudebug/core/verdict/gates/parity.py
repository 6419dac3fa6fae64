"""Whether the trial learns as the baseline does, at equal steps."""

from __future__ import annotations

from gpudebug.core.records import Gate
from gpudebug.core.statistics.loss_curve import Distance, distance
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.verdict.gates.learning import equal_work_gate
from gpudebug.core.words import Result

# Of what the baseline's loss falls by: below it a difference is harmless, and noise.
TOLERANCE = 0.10
SEEN = 0.25
"""An interval that reaches further above, in what the baseline's loss falls by, shows nothing of it."""


def parity_gate(case: TrialCase) -> Gate:
    """Fails if the trial's loss is above the baseline's by surely more than a tenth of its fall.

    A lower loss passes. A run without its curve, or another batch, makes the steps not comparable.
    """
    threshold = f"at most {TOLERANCE:.0%} of its fall above the baseline's at equal steps"
    gate = Gate(name="loss_parity", value=UNKNOWN, threshold=threshold, result=Result.SKIPPED)
    if case.learning is not None and case.criteria.loss != "any":
        return equal_work_gate(case, case.learning)
    found = _apart(case)
    if not isinstance(found, Distance):
        return gate.model_copy(update={"note": f"not comparable: {found}"})
    share, low, high = found.value.value / found.fall, found.value.low, found.value.high
    assert low is not None and high is not None
    # What is not surely higher is harmless if these runs would have shown it: one run a side does not.
    harmless = share <= TOLERANCE or (low <= 0 and high / found.fall <= SEEN)
    sure = low / found.fall > TOLERANCE
    result = Result.PASS if harmless else Result.FAIL if sure else Result.UNKNOWN
    above = f"{found.value.value:+.3g}, {share:.0%} of what the baseline's falls by"
    note = None if result is not Result.UNKNOWN else "higher than the baseline's, but not surely by so much"
    return gate.model_copy(update={"value": above, "result": result, "note": note})


def agrees(case: TrialCase) -> bool:
    """Whether the losses of both sides are known to be the same at equal steps: neither higher nor lower."""
    found = None if case.learning is not None else _apart(case)
    if not isinstance(found, Distance):
        return False
    share, *bounds = (
        x / found.fall for x in (found.value.value, found.value.low, found.value.high) if x is not None
    )
    return abs(share) <= TOLERANCE and len(bounds) == 2 and max(map(abs, bounds)) <= SEEN


def _apart(case: TrialCase) -> Distance | str:
    """Return how far apart the losses of both sides are at equal steps; why that is not known."""
    before, after = ([e.loss.curve for e in runs] for runs in (case.before, case.after))
    return _incomparable(case) or distance(before, after)


def _incomparable(case: TrialCase) -> str | None:
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
