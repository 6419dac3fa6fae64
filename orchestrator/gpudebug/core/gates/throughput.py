"""Whether more got done, and whether the busy time did the same work as before."""

from __future__ import annotations

from gpudebug.core.gates.case import UNKNOWN, Case, idle, rate_of
from gpudebug.core.gates.text import estimate_text
from gpudebug.core.models import Estimate, Gate
from gpudebug.core.words import Result

# Throughput: `better` needs a gain that a person would keep; `not_worse` forgives noise.
BETTER_ESTIMATE = 1.03
NOT_WORSE_BOUND = 0.97
# Busy seconds a step stay equal when a stall is removed.
WORK_PASS = 1.15
WORK_FAIL = 1.25


def throughput_gate(case: Case) -> Gate:
    wanted = case.criteria.throughput
    threshold = {
        "better": f"estimate >= {BETTER_ESTIMATE:g}x and lower bound > 1x",
        "not_worse": f"upper bound >= {NOT_WORSE_BOUND:g}x",
    }.get(wanted, "any")
    value = estimate_text(case.ratio, "x", digits=2) if case.ratio else UNKNOWN
    gate = Gate(name="throughput", value=value, threshold=threshold, result=Result.UNKNOWN)
    if wanted == "any":
        return gate.model_copy(update={"result": Result.SKIPPED})
    if case.ratio is None:
        return gate.model_copy(update={"note": _no_ratio(case)})
    return gate.model_copy(update={"result": throughput_result(wanted, case.ratio)})


def _no_ratio(case: Case) -> str:
    for part, runs in (("trial", case.after), ("baseline", case.before)):
        without = next((e for e in runs if rate_of(e) is None), None)
        if without is not None:
            where = part if len(runs) == 1 else f"{part}, run {without.run}"
            return (
                f"{where}: no step rate in the log; `log: {{step: …}}` in gpudebug.yaml says where steps are"
            )
    units = [sorted({rate[0] for e in runs if (rate := rate_of(e))}) for runs in (case.before, case.after)]
    return f"the baseline's log counts {' and '.join(units[0])}, the trial's {' and '.join(units[1])}"


def throughput_result(wanted: str, ratio: Estimate) -> Result:
    """Whether throughput is `better` or `not_worse`."""
    assert ratio.low is not None and ratio.high is not None
    if wanted == "not_worse":
        return Result.FAIL if ratio.high < NOT_WORSE_BOUND else Result.PASS
    if ratio.low > 1 and ratio.value >= BETTER_ESTIMATE:
        return Result.PASS
    return Result.FAIL if ratio.high < BETTER_ESTIMATE else Result.UNKNOWN


def work_gate(case: Case) -> Gate:
    threshold = f"busy time a step at most {WORK_PASS:g}x"
    gate = Gate(name="work_conserved", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    if case.work is None:
        if case.delta and idle((*case.before, *case.after)):
            note = "an idle device has no busy time to compare"
            return gate.model_copy(update={"result": Result.SKIPPED, "note": note})
        note = "needs utilisation and step rate of every run of baseline and trial"
        return gate.model_copy(update={"note": note})
    assert case.work.low is not None
    if case.work.value <= WORK_PASS:
        result = Result.PASS
    else:
        result = Result.FAIL if case.work.low > WORK_FAIL else Result.UNKNOWN
    return gate.model_copy(
        update={"value": estimate_text(case.work, "x", digits=2), "result": result},
    )
