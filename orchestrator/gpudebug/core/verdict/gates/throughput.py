"""Whether more got done, whether the busy time did the same work, and whether devices only wait busily."""

from __future__ import annotations

from gpudebug.core.records import Evidence, Gate
from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.metrics import WORK
from gpudebug.core.verdict.gates.case import SIDE_SURE, UNKNOWN, TrialCase, ratio_estimate
from gpudebug.core.verdict.gates.count import LOG, OWN_WORD, eats_gain, same_all_the_same, source, unfit
from gpudebug.core.verdict.gates.figures import (
    BETTER_ESTIMATE,
    NOT_WORSE_BOUND,
    estimate_text,
    has_figure,
    idle,
    mean,
    on_one_scale,
    probed,
    rate_of,
    throughput_result,
    utilisations,
)
from gpudebug.core.words import Result

# Busy seconds a step stay equal when a stall is removed.
WORK_PASS = assumed("work_alike")
WORK_FAIL = 1.25


def throughput_gate(case: TrialCase) -> Gate:
    """Of the campaign's unit of work; without one of steps, or of samples if the batch may differ: half the
    batch makes twice the steps of nothing.

    Unknown if log, probe and command do not agree on what got done.
    """
    gate = _by_rate(case)
    counted_by = source(case)
    against = unfit(case) if counted_by is not None else None
    if against is not None and gate.result is not Result.FAIL:
        confirm = f'a person who can explain it runs `gpudebug reopen {case.number} --because "WHY"`'
        update = {"value": UNKNOWN, "result": Result.UNKNOWN, "note": f"{against.why}; {confirm}"}
        return gate.model_copy(update={**update, "source": counted_by, "unexplained": against.why})
    if gate.result is not Result.FAIL and (eaten := eats_gain(case)):
        confirm = f'or a person runs `gpudebug reopen {case.number} --because "WHY"`'
        update = {"value": UNKNOWN, "result": Result.UNKNOWN, "note": f"{eaten}, {confirm}"}
        return gate.model_copy(update={**update, "source": counted_by})
    note = gate.note or same_all_the_same(case)
    if counted_by == LOG and case.ratio is not None:
        note = note or OWN_WORD
    return gate.model_copy(update={"source": counted_by, "note": note})


def _by_rate(case: TrialCase) -> Gate:
    """Judge the log's rate; the optimizer's steps must confirm it if the probe counted them."""
    wanted = case.criteria.throughput
    if wanted == "any" and case.metric.by_steps and (case.other_batch or case.other_step):
        # What a step is has changed: that steps got faster says nothing until samples do, too.
        wanted = "better"
    threshold = {
        "better": f"estimate >= {BETTER_ESTIMATE:g}x and lower bound > 1x",
        "not_worse": f"upper bound >= {NOT_WORSE_BOUND:g}x",
    }.get(wanted, "any")
    value = estimate_text(case.ratio, "x", digits=2) if case.ratio else UNKNOWN
    gate = Gate(name="throughput", value=value, threshold=threshold, result=Result.UNKNOWN)
    if wanted == "any":
        return gate.model_copy(update={"result": Result.SKIPPED})
    if _is_the_metric(case):
        if contradicted := _contradicted("better", case, case.criteria.success):
            return gate.model_copy(update={"note": contradicted})
        note = "the metric is the throughput: delta has judged it"
        return gate.model_copy(update={"result": Result.SKIPPED, "note": note})
    if case.ratio is None and case.rates.why is None and _never_counts(case):
        note = "no run counts steps, so only the metric measures speed"
        return gate.model_copy(update={"result": Result.SKIPPED, "note": note})
    if case.ratio is None:
        return gate.model_copy(update={"note": _no_ratio(case)})
    result = throughput_result(wanted, case.ratio)
    if result is Result.FAIL and not surely_fails(wanted, case):
        return gate.model_copy(update={"note": "not more, but not surely so; more runs would tell"})
    if result is Result.FAIL and (why := case.larger_steps_unseen):
        return gate.model_copy(update={"note": why})
    if result is Result.PASS and (contradicted := _contradicted(wanted, case)):
        return gate.model_copy(update={"note": contradicted})
    return gate.model_copy(update={"result": result})


def surely_fails(wanted: str, case: TrialCase) -> bool:
    """Tell whether throughput fails as surely as a figure beside the metric has to."""
    wide = ratio_estimate(case.rate_effect, SIDE_SURE)
    return wide is not None and throughput_result(wanted, wide) is Result.FAIL


def _contradicted(wanted: str, case: TrialCase, least: float = 0.0) -> str | None:
    """Say why the optimizer's steps contradict the log's throughput; None if they confirm it.

    `least` is the ratio that is needed, and that they may miss by noise.
    """
    if case.steps is None:
        return None
    if throughput_result(wanted, case.steps) is Result.PASS and case.steps.value >= NOT_WORSE_BOUND * least:
        return None
    return f"by the log; {estimate_text(case.steps, 'x', digits=2)} by the optimizer's steps"


def _is_the_metric(case: TrialCase) -> bool:
    """Tell whether the delta is the ratio of this very rate."""
    if case.metric.name == WORK:
        return case.delta is not None and case.ratio is not None
    unit = case.metric.unit.removesuffix("/s")
    return case.metric.throughput and (case.rates.unit or "").removesuffix("s") == unit.removesuffix("s")


def _never_counts(case: TrialCase) -> bool:
    """Tell whether no run counts anything, and the metric is a time of one's own: a program that infers."""
    return case.metric.unit == "s" and not any(rate_of(e) for e in (*case.before, *case.after))


def _no_ratio(case: TrialCase) -> str:
    if case.rates.why is not None:
        return case.rates.why
    if case.other_batch:
        return (
            f"{_batches(case)}, and not all runs report samples per second in the same way; "
            "print `samples/s` or `batch size: N`"
        )
    for part, runs in (("trial", case.after), ("baseline", case.before)):
        without = next((e for e in runs if rate_of(e) is None), None)
        if without is not None:
            where = part if len(runs) == 1 else f"{part}, run {without.run}"
            return (
                f"{where}: no step rate in the log, none from the probe; "
                "set `log: {step: …}` in gpudebug.yaml to say where steps are"
            )
    if len({probed(e) for e in (*case.before, *case.after)}) > 1:
        return (
            "steps come from the log in some runs and from the probe in others, so rates cannot be compared"
        )
    units = [sorted({rate[0] for e in runs if (rate := rate_of(e))}) for runs in (case.before, case.after)]
    return f"the baseline's log counts {' and '.join(units[0])}, the trial's {' and '.join(units[1])}"


def _batches(case: TrialCase) -> str:
    """Return what differs: the flags, the printed size, or what the change says of it."""
    flags = [
        {" ".join(f"{k}={v}" for k, v in sorted(e.batch_flags.items())) for e in runs}
        for runs in _sides(case)
    ]
    sizes = [{f"{e.batch_size:g}" for e in runs if e.batch_size} for runs in _sides(case)]
    for pair in (flags, sizes):
        before, after = (" or ".join(sorted(filter(None, side))) or "not set" for side in pair)
        if before != after:
            return f"the batch differs ({before}, then {after})"
    return "the change names the batch"


def _sides(case: TrialCase) -> tuple[tuple[Evidence, ...], tuple[Evidence, ...]]:
    return case.before, case.after


def work_gate(case: TrialCase) -> Gate:
    what = case.unit.unit.removesuffix("s") if case.unit else "sample" if case.other_batch else "step"
    article = "an" if what[0] in "aeiou" else "a"
    threshold = f"busy time {article} {what} at most {WORK_PASS:g}x"
    gate = Gate(name="work_conserved", value=UNKNOWN, threshold=threshold, result=Result.UNKNOWN)
    if case.work is None:
        runs = (*case.before, *case.after)
        note = "needs utilisation and step rate of every run of baseline and trial"
        if all(has_figure(e) for e in runs) and idle(runs):
            note = "an idle device has no busy time to compare"
        elif case.metric.points or case.other_batch or case.rates.why is not None:
            return gate.model_copy(update={"note": case.rates.why or note})
        # Only a gain of utilisation can be bought with useless work.
        return gate.model_copy(update={"result": Result.SKIPPED, "note": note})
    wide = ratio_estimate(case.work_effect, SIDE_SURE)
    assert wide is not None and wide.low is not None
    contradicted: str | None = None
    if case.work.value <= WORK_PASS:
        result = Result.PASS
        if case.step_work is not None and case.step_work.value > WORK_PASS:
            result = Result.UNKNOWN
            contradicted = (
                f"by the log; {estimate_text(case.step_work, 'x', digits=2)} by the optimizer's steps"
            )
    else:
        contradicted = case.larger_steps_unseen
        surely = wide.low > WORK_FAIL and contradicted is None
        result = Result.FAIL if surely else Result.UNKNOWN
    return gate.model_copy(
        update={"value": estimate_text(case.work, "x", digits=2), "result": result, "note": contradicted},
    )


WORKING_SHARE = "working_share"
ROSE = assumed("resolution")
FELL = assumed("working_noise")
WORKING = "work a second rises if utilisation rises and the working share falls"

_UNDECIDED = "utilisation rises, the devices work less, and whether work a second rises is not decided"


def working_gate(case: TrialCase) -> Gate:
    """Fails if utilisation rises by waiting alone. Skipped if power is missing in a run.

    Unknown while the runs do not decide whether work a second rises: more of them may.
    """
    gate = Gate(name=WORKING_SHARE, value=UNKNOWN, threshold=WORKING, result=Result.SKIPPED)
    runs = (*case.before, *case.after)
    shares = on_one_scale(runs)
    busy = [mean(utilisations(side)) for side in (case.before, case.after)]
    if None in shares or None in busy:
        reason = next((e.working_reason for e in runs if e.working_reason), "its levels are unknown")
        return gate.model_copy(update={"note": f"power does not show work in every run: {reason}"})
    known = [share for share in shares if share is not None]
    before, after = mean(known[: len(case.before)]), mean(known[len(case.before) :])
    assert before is not None and after is not None
    assert busy[0] is not None and busy[1] is not None
    value = f"{before:.0%} to {after:.0%} of the time"
    gate = gate.model_copy(update={"value": value, "result": Result.PASS})
    if busy[1] - busy[0] <= ROSE or before - after <= FELL:
        return gate
    if case.ratio is None:
        note = "utilisation rises, the devices work less, and work a second is unknown"
        return gate.model_copy(update={"result": Result.UNKNOWN, "note": note})
    if throughput_result("better", case.ratio) is Result.PASS:
        return gate
    if surely_fails("better", case):
        return gate.model_copy(update={"result": Result.FAIL, "note": "they are busier by waiting"})
    return gate.model_copy(update={"result": Result.UNKNOWN, "note": _UNDECIDED})
