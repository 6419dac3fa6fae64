"""Which run a trial needs next and when one may end early, from nothing but what was measured so far."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.records import Evidence, Verdict
from gpudebug.core.statistics.contrast import most_fresh
from gpudebug.core.verdict.gates import UNKNOWN, Criteria, TrialCase, TrialSetting, measure, window_total
from gpudebug.core.verdict.judge import judge
from gpudebug.core.words import Result, Status, Trend, Word

# A run is not started where the runs that are left would decide less often than this.
LEAST_CHANCE = 0.02


class NextRun(Word):
    """What a trial needs: one more run of it, a fresh run of the baseline beside it, or nothing."""

    TRIAL = "trial"
    BASELINE = "baseline"
    DONE = "done"


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
    recorded ones, as one run alone may be an outlier. Where the delta is open, the run is made that narrows
    its interval most, as long as the runs that are left may well decide.
    """
    trial_left = len(after) < criteria.max_runs
    if verdict.status not in (Status.VALIDATED, Status.INCONCLUSIVE):
        return NextRun.DONE
    case = measure(TrialCase(criteria, setting, tuple(before), tuple(after)))
    if verdict.status is Status.VALIDATED:
        drifted = case.contrast is not None and case.contrast.drift > 0
        wanted = (2 if drifted else 1) if criteria.max_runs > 1 else 0
        return NextRun.BASELINE if setting.fresh < wanted else NextRun.DONE
    unknown = {g.name: g.value for g in verdict.gates if g.result is Result.UNKNOWN}
    if "delta" in unknown:
        # Whatever else is unknown: a delta that is decided to be too small rejects.
        return _narrow(case)
    narrowing = unknown.keys() <= {"loss_parity", "throughput", "work_conserved"}
    known = UNKNOWN not in unknown.values()
    return NextRun.TRIAL if narrowing and known and trial_left else NextRun.DONE


def _narrow(case: TrialCase) -> NextRun:
    criteria, found = case.criteria, case.contrast
    trial_left = len(case.after) < criteria.max_runs
    if found is None or not _window_in_reach(case):
        return NextRun.DONE
    if window_total(case.after) < criteria.min_window:
        return NextRun.TRIAL if trial_left else NextRun.DONE
    most = most_fresh(criteria.max_runs, found.worth)
    if _chance(case, most) < LEAST_CHANCE:
        return NextRun.DONE
    fresh_left = found.fresh < most
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
    passes, fails = case.contrast.chances(*case.thresholds, fresh=fresh, after=c.max_runs)
    return passes + fails if len(case.after) < c.max_runs else passes


def _window_in_reach(case: TrialCase) -> bool:
    """Whether `max_runs` runs like these make windows of `min_window`; the baseline's must be there."""
    least = case.criteria.min_window
    if window_total(case.before) < least:
        return False
    return window_total(case.after) / len(case.after) * case.criteria.max_runs >= least


def is_certain(
    number: int,
    criteria: Criteria,
    before: Sequence[Evidence],
    after: Sequence[Evidence],
    setting: TrialSetting,
) -> bool:
    """Whether the last of the trial's runs, still under way, has brought the trial's answer already.

    That is VALIDATED, or a delta that fails or that no run which is left would decide, by a window of its
    own that is long enough; and a loss that is no number any more. A loss that rises, or work that is not
    conserved, may be the beginning's alone: such a run goes on.
    """
    verdict = judge(number, criteria, before, after, setting)
    if verdict.loss is Trend.NAN and criteria.loss != "any":
        return True
    if verdict.delta is None or window_total(after[-1:]) < _long_enough(criteria, before):
        return False
    delta = next(g.result for g in verdict.gates if g.name == "delta")
    if verdict.status is Status.INCONCLUSIVE:
        step = next_step(verdict, criteria, before, after, setting)
        return delta is Result.UNKNOWN and step is NextRun.DONE
    return verdict.status is Status.VALIDATED or delta is Result.FAIL


def _long_enough(criteria: Criteria, before: Sequence[Evidence]) -> float:
    """Seconds of window that make a run as good as a whole one: `min_window`, or what the baseline's have."""
    return min([criteria.min_window, *(window_total([e]) for e in before)])
