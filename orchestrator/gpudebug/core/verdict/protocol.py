"""Which run a trial needs next, from nothing but what was measured so far.

A trial runs T T A T A, T T A T A: runs of the change (T) and of the baseline (A). It is the order, and no
random wait, that keeps what comes and goes beside the runs from meeting one side alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpudebug.core.records import Verdict
from gpudebug.core.statistics.level import Effect
from gpudebug.core.verdict.gates import UNKNOWN, Order, TrialCase, stand_in
from gpudebug.core.verdict.gates.also import PREFIX
from gpudebug.core.verdict.gates.delta import is_too_small
from gpudebug.core.words import Result, Status, Word

BASELINE_RUNS = 2
"""Runs with which a record of the baseline begins."""
STALE = 3
"""Runs after which the level is not believed any more: a run of the baseline is made first."""
HOPELESS = 1.645
"""Standard deviations by which the estimate would have to move: less than 5 % of the cases do."""
# Gates that more runs may decide; where work a second is known, that of working shares, too.
_NARROWED = frozenset({"loss_parity", "throughput", "work_conserved"})


class NextRun(Word):
    """What a trial needs: one more run of it, one of the baseline beside it, or nothing."""

    TRIAL = "trial"
    BASELINE = "baseline"
    DONE = "done"


def first_run(order: Order) -> NextRun:
    """What a trial begins with: the baseline, if it has fewer than two runs or its last one is long ago."""
    if len(order.before) < BASELINE_RUNS or order.now - order.before[-1] > STALE:
        return NextRun.BASELINE
    return NextRun.TRIAL


def following(trials: int, most: int, *, closed: bool, since: int) -> NextRun:
    """What comes after so many of at `most` runs of the change. `closed`: the last run was of the baseline,
    made `since` places before the next one."""
    if closed:
        return NextRun.BASELINE if since > STALE else NextRun.TRIAL
    return NextRun.TRIAL if trials % 3 == 1 and trials < most else NextRun.BASELINE


def planned(most: int) -> Iterator[NextRun]:
    """All runs of a trial that goes on to its end, of which `most` are of the change."""
    trials, closed = 0, True
    while trials < most or not closed:
        step = following(trials, most, closed=closed, since=1)
        trials, closed = trials + (step is NextRun.TRIAL), step is NextRun.BASELINE
        yield step


def next_step(verdict: Verdict, case: TrialCase) -> NextRun:
    """The run that a trial with this verdict so far needs; `case` is the one that was judged.

    REJECTED is known after any run, VALIDATED after one of the baseline. An open answer ends after one of the
    baseline, too: when all runs are made, or those that are left would hardly decide it.
    """
    if verdict.status is not Status.INCONCLUSIVE or case.effect is None or case.setting.order is None:
        return NextRun.DONE
    order, effect = case.setting.order, case.effect
    unknown = {g.name: g.value for g in verdict.gates if g.result is Result.UNKNOWN}
    if not _narrowed_by_runs(case, unknown) or (effect.closed and _is_over(case, effect, unknown)):
        return NextRun.DONE
    return following(effect.trials, case.most, closed=effect.closed, since=order.now - max(order.before))


def _narrowed_by_runs(case: TrialCase, unknown: dict[str, str]) -> bool:
    """Whether more runs may decide what is unknown; a delta that is too small rejects whatever else is."""
    if "delta" in unknown:
        return True
    names = {name for name in unknown if not name.startswith(PREFIX)}
    narrowed = _NARROWED | {"working_share"} if case.ratio is not None else _NARROWED
    return names <= narrowed and UNKNOWN not in unknown.values()


def _is_over(case: TrialCase, effect: Effect, unknown: dict[str, str]) -> bool:
    if effect.trials >= case.most:
        return True
    if "delta" not in unknown:
        return False
    if stand_in.hides_delta(case):
        # No run would decide the delta; what got done may still show that there was nothing to hide.
        return stand_in.is_faster(case)
    if is_too_small(case):
        return True
    success, failure = case.thresholds
    return min(success - effect.value, effect.value - failure) > HOPELESS * effect.left_open(case.most)
