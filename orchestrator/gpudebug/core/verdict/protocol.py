"""Which run a trial needs next, from nothing but what was measured so far."""

from __future__ import annotations

from gpudebug.core.records import Verdict
from gpudebug.core.statistics.level import Effect, Seen, follow
from gpudebug.core.verdict.gates import GATES, delta
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase, seen_by_metric
from gpudebug.core.verdict.gates.delta import PREFIX, hides, is_gain, is_too_small
from gpudebug.core.verdict.gates.setting import Order
from gpudebug.core.verdict.turns import BASELINE_RUNS, STALE, NextRun, following
from gpudebug.core.words import Result, Status

HOPELESS = 1.645
"""Standard deviations by which the estimate would have to move: less than 5 % of the cases do."""


def first_run(order: Order) -> NextRun:
    """What a trial begins with: the baseline, if it has fewer than two runs or its last one is long ago."""
    if len(order.before) < BASELINE_RUNS or order.next - order.before[-1] > STALE:
        return NextRun.BASELINE
    return NextRun.TRIAL


def next_step(verdict: Verdict, case: TrialCase) -> NextRun:
    """Return the run that a trial with this verdict so far needs; `case` is the one that was judged.

    REJECTED is known after any run, VALIDATED after one of the baseline. An open answer ends after one of the
    baseline, too: when all runs are made, or those that are left would hardly decide it.
    """
    if verdict.status is not Status.INCONCLUSIVE or case.effect is None or case.setting.order is None:
        return NextRun.DONE
    order, effect = case.setting.order, case.effect
    unknown = {g.name: g.value for g in verdict.gates if g.result is Result.UNKNOWN}
    if not _narrowed_by_runs(case, unknown) or (effect.closed and _is_over(case, effect, unknown)):
        return NextRun.DONE
    if "delta" in unknown and _stays_hidden(case, effect):
        return NextRun.DONE
    return following(effect.trials, case.most, closed=effect.closed, since=order.next - max(order.before))


def forecast(case: TrialCase, step: NextRun) -> list[NextRun]:
    """Return the runs, `step` first, after which the metric decides if each shows what is expected by now;
    none if even the last one leaves it open."""
    found, order, effect = seen_by_metric(case), case.setting.order, case.effect
    if found is None or order is None or effect is None:
        return []
    (seen, noise), steps = found, list[NextRun]()
    others, gain = seen[-1].others, effect.value
    while effect.trials < case.most or step is NextRun.BASELINE:
        steps.append(step)
        changed = step is NextRun.TRIAL
        value = effect.stands[-1].value + (gain if changed else 0.0)
        seen.append(Seen(order.next + len(steps) - 1, changed, value, others, seen[-1].variance))
        effect = follow(seen, noise)
        if is_gain(effect, *case.thresholds) or is_too_small(effect, *case.thresholds):
            return steps
        step = following(effect.trials, case.most, closed=effect.closed, since=1)
    return []


def _narrowed_by_runs(case: TrialCase, unknown: dict[str, str]) -> bool:
    """Whether more runs may decide what is unknown; a delta that is too small rejects whatever else is."""
    if "delta" in unknown:
        return True
    if case.ratio is None and "working_share" in unknown:
        return False
    narrowed = all(name.startswith(PREFIX) or GATES[name].narrowed for name in unknown)
    return narrowed and UNKNOWN not in unknown.values()


def _is_over(case: TrialCase, effect: Effect, unknown: dict[str, str]) -> bool:
    if effect.trials >= case.most:
        return True
    if "delta" not in unknown or delta.hides_delta(case):
        return False
    return is_over(effect, *case.thresholds, case.most)


def _stays_hidden(case: TrialCase, effect: Effect) -> bool:
    """Tell whether the delta is too small, and no run would show whether that hides a gain. On the CPU
    stand-in what got done may show that there was nothing to hide, until it shows a gain."""
    if not is_too_small(effect, *case.thresholds) or hides(case) is None:
        return False
    return delta.is_faster(case) or not delta.hides_delta(case)


def is_over(effect: Effect, success: float, failure: float, most: int) -> bool:
    """Tell whether all runs are made, or those that are left would hardly decide the effect."""
    far = min(success - effect.value, effect.value - failure)
    return effect.trials >= most or far > HOPELESS * effect.left_open(most)
