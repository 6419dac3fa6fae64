"""Which run a trial needs next and when one may end early, from nothing but what was measured so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.records import Evidence, Verdict
from gpudebug.core.statistics.contrast import most_fresh
from gpudebug.core.verdict import load, pooling
from gpudebug.core.verdict.gates import (
    UNKNOWN,
    Criteria,
    TrialCase,
    TrialSetting,
    held_up,
    is_machinery,
    load_unknown,
    measure,
    share_seen,
    stand_in,
)
from gpudebug.core.verdict.gates.also import PREFIX
from gpudebug.core.verdict.gates.early import SHORTEST_S
from gpudebug.core.verdict.gates.enough import latency_total, metric_of, window_total
from gpudebug.core.verdict.judge import fails_whatever_load, judge
from gpudebug.core.verdict.spending import again_for_load
from gpudebug.core.words import Result, Status, Trend, Word

# A run is not started where the runs that are left would decide less often than this.
LEAST_CHANCE = 0.02
# Gates that more runs may decide; where work a second is known, that of working shares, too.
_NARROWED = frozenset({"loss_parity", "throughput", "work_conserved"})


class NextRun(Word):
    """What a trial needs: one more run of it, a fresh run of the baseline beside it, or nothing."""

    TRIAL = "trial"
    BASELINE = "baseline"
    DONE = "done"


class Beside(NamedTuple):
    """All runs that were made for a trial, left out or not, and whether one more of either may be made."""

    fresh: Sequence[Evidence]
    after: Sequence[Evidence]
    fresh_left: bool
    trial_left: bool


def next_step(
    verdict: Verdict,
    criteria: Criteria,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
) -> NextRun:
    """The run that a trial with this verdict so far needs; the arguments are those of `judge`.

    A VALIDATED is believed once a fresh run of the baseline has confirmed it, so that no drift of the
    machine since the baseline was recorded is taken for a gain; two, where the first contradicts the
    recorded ones, as one run alone may be an outlier, and a second run of the trial, which was made at one
    moment too; two of each also where runs waited for others. A REJECTED by figures that a neighbour may have
    made is confirmed by a fresh run. Where the trial met another load than the baseline, both are made again
    in turn. Where the delta is open, the run is made that narrows its interval most, as long as the runs that
    are left may well decide. Runs of the trial that are left out, as they met another load, are made again:
    `again_for_load` of them.
    """
    case = measure(TrialCase(criteria, setting, tuple(before), tuple(after)))
    # Nothing but its load leaves a run out of a case.
    again = min(len(after) - len(case.after), again_for_load(criteria.max_runs))
    trial_left = len(after) < _most_runs(case) + again
    fresh_left = setting.fresh < most_fresh(criteria.max_runs, 0.0)
    beside = Beside(before[len(before) - setting.fresh :], after, fresh_left, trial_left)
    if verdict.status is Status.INVALID:
        return _in_turn(case, setting, after) if _met_another_load(case, verdict) else NextRun.DONE
    if verdict.status is Status.VALIDATED or _doubtful(case, verdict, before, after):
        return _confirmed(case, after, gained=verdict.status is Status.VALIDATED)
    if verdict.status is not Status.INCONCLUSIVE:
        return NextRun.DONE
    unknown = {g.name: g.value for g in verdict.gates if g.result is Result.UNKNOWN}
    if "delta" in unknown:
        if held_up.hides_delta(case):
            return _in_turn(case, setting, after)
        if stand_in.hides_delta(case):
            # No run would decide the delta; what got done may still show that there was nothing to hide.
            more = trial_left and not stand_in.is_faster(case)
            return _alternating(case, NextRun.TRIAL, beside) if more else NextRun.DONE
        # Whatever else is unknown: a delta that is decided to be too small rejects.
        return _alternating(case, _narrow(case, beside), beside)
    open_ = {name for name in unknown if not name.startswith(PREFIX)}
    narrowing = open_ <= (_NARROWED | {"working_share"} if case.ratio is not None else _NARROWED)
    known = UNKNOWN not in unknown.values()
    if not (narrowing and known):
        return NextRun.DONE
    if case.setting.loads and 0 < case.setting.fresh < min(_ROUNDS, len(after)):
        # One fresh run that jumped says nothing of how often runs do.
        return NextRun.BASELINE
    return _alternating(case, NextRun.TRIAL, beside) if trial_left else NextRun.DONE


# Rounds of one run of either side that a trial makes to meet the same load as its baseline.
_ROUNDS = 2


def _failing(verdict: Verdict) -> set[str]:
    return {g.name for g in verdict.gates if g.result is Result.FAIL}


def _met_another_load(case: TrialCase, verdict: Verdict) -> bool:
    """Whether strangers on the cores, and nothing else, made the trial INVALID."""
    other = "device_to_itself" in _failing(verdict) or load_unknown(case) is not None
    alone = other and not _failing(verdict) & {"outcome", "change_in_effect", "environment_parity"}
    shared = any(e.conditions.foreign_procs for e in (*case.before, *case.after))
    machinery = any(is_machinery(case, e) for e in case.after)
    return case.setting.loads and alone and not shared and not machinery


def _in_turn(case: TrialCase, setting: TrialSetting, after: Sequence[Evidence]) -> NextRun:
    """One more run of the baseline or of the trial, whichever has fewer beside the other."""
    most = case.criteria.max_runs
    if most > 1 and setting.fresh < min(_ROUNDS, len(after)):
        return NextRun.BASELINE
    return NextRun.TRIAL if most > 1 and len(after) < min(_ROUNDS, most) else NextRun.DONE


def _doubtful(
    case: TrialCase, verdict: Verdict, before: Sequence[Evidence], after: Sequence[Evidence]
) -> bool:
    """Whether a neighbour may have made the figures of a REJECTED."""
    if verdict.status is not Status.REJECTED or not case.setting.loads:
        return False
    if fails_whatever_load(case, verdict.gates):
        return False
    return (
        case.setting.likely
        or load.differs(before, after)
        or any(load.disturbed(e) for e in (*before, *after))
    )


def _confirmed(case: TrialCase, after: Sequence[Evidence], *, gained: bool) -> NextRun:
    """What is left to run until the verdict is confirmed."""
    drifted = case.contrast is not None and case.contrast.drift > 0
    moved = case.contrast is not None and case.contrast.between > 0
    if case.setting.loads and gained:
        moved |= any(load.disturbed(e) for e in (*case.before, *case.after))
    wanted = (2 if drifted or moved else 1) if case.criteria.max_runs > 1 else 0
    if case.setting.loads and moved and len(after) < min(wanted, case.setting.fresh + 1):
        return NextRun.TRIAL
    return NextRun.BASELINE if case.setting.fresh < wanted else NextRun.DONE


def _alternating(case: TrialCase, step: NextRun, beside: Beside) -> NextRun:
    """`step`, or where the load varies a run of the side that has fewer beside the other.

    A run that was left out counts here: the load has changed again, and one side alone never meets it.
    """
    found, most = case.contrast, case.criteria.max_runs
    if step is NextRun.DONE or found is None or not case.setting.loads:
        return step
    if not (load.differs(case.before, case.after) or load.differs(beside.fresh, beside.after)):
        return step
    if len(beside.fresh) < len(beside.after):
        return NextRun.BASELINE if len(beside.fresh) < most_fresh(most, found.worth) else step
    return NextRun.TRIAL if beside.trial_left else step


def _narrow(case: TrialCase, beside: Beside) -> NextRun:
    criteria, found, trial_left = case.criteria, case.contrast, beside.trial_left
    if found is not None and beside.fresh_left and _left_too_little(case):
        return NextRun.BASELINE
    if found is None or not _window_in_reach(case):
        return NextRun.DONE
    if share_seen(criteria, case.after) < 1:
        return NextRun.TRIAL if trial_left else NextRun.DONE
    most = most_fresh(criteria.max_runs, found.worth)
    if _chance(case, most) < LEAST_CHANCE:
        return NextRun.DONE
    fresh_left = beside.fresh_left and found.fresh < most
    if fresh_left and (found.baseline_variance >= found.trial_variance or not trial_left):
        return NextRun.BASELINE
    return NextRun.TRIAL if trial_left else NextRun.DONE


def _chance(case: TrialCase, most: int) -> float:
    """The chance of a decision, were all the runs that are left made.

    Where only the baseline's are left, that of a pass: how sure it is that a change does too little is not
    worth more of them.
    """
    assert case.contrast is not None
    c = case.criteria
    fresh = max(case.contrast.fresh, most)
    most_after = max(c.max_runs, len(case.after))
    passes, fails = case.contrast.chances(*case.thresholds, fresh=fresh, after=most_after)
    return passes + fails if len(case.after) < c.max_runs else passes


def _left_too_little(case: TrialCase) -> bool:
    """Whether the baseline's runs that were not left out lack windows, and fresh ones can bring them."""
    seen, most = share_seen(case.criteria, case.before), most_fresh(case.criteria.max_runs, 0.0)
    missing = seen < 1 <= seen / len(case.before) * most
    return case.left_out is not None and missing and len(case.before) < most


def _window_in_reach(case: TrialCase) -> bool:
    """Whether the trial's runs can show what a verdict needs; the baseline's must have."""
    criteria = case.criteria
    if share_seen(criteria, case.before) < 1:
        return False
    if case.setting.loads:
        return pooling.in_reach(criteria, case.before, case.after)
    return share_seen(criteria, case.after) / len(case.after) * criteria.max_runs >= 1


def _most_runs(case: TrialCase) -> int:
    if not case.setting.loads:
        return case.criteria.max_runs
    return pooling.most_runs(case.criteria, case.before, case.after)


def is_certain(
    number: int,
    criteria: Criteria,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
) -> bool:
    """Whether the last of the trial's runs, still under way, has brought the trial's answer already.

    That is VALIDATED, or a delta that no run which is left would decide, by a window of its own that is long
    enough; a delta that fails, by a shorter one; and a loss that is no number any more. A loss that rises, or
    work that is not conserved, may be the beginning's alone: such a run goes on.
    """
    verdict = judge(number, criteria, before, after, setting)
    if verdict.loss is Trend.NAN and criteria.loss != "any":
        return True
    latencies = latency_total(metric_of(criteria), after[-1:])
    if verdict.delta is None or (window_total(after[-1:]) < SHORTEST_S and not latencies):
        return False
    delta = next(g.result for g in verdict.gates if g.name == "delta")
    if delta is Result.FAIL and setting.rule >= 5:
        return True
    if share_seen(criteria, after[-1:]) < _long_enough(criteria, before):
        return False
    if verdict.status is Status.INCONCLUSIVE:
        step = next_step(verdict, criteria, before, after, setting)
        return delta is Result.UNKNOWN and step is NextRun.DONE
    return verdict.status is Status.VALIDATED or delta is Result.FAIL


def _long_enough(criteria: Criteria, before: Sequence[Evidence]) -> float:
    """The share that makes a run as good as a whole one: all of it, or what the baseline's show."""
    return min([1.0, *(share_seen(criteria, [e]) for e in before)])
