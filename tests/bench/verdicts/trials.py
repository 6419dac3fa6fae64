"""The shipped protocol on simulated runs: what `next` decides by, called as `next` calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from gpudebug.core import stats
from gpudebug.core.models import Evidence
from gpudebug.core.verdict import Criteria, Setting, judge, needs_fresh_baseline, needs_more_runs
from gpudebug.core.words import Status

from tests.bench.verdicts.cells import HYPOTHESES, Cell
from tests.bench.verdicts.runs import Pool, Run

BASELINE_RUNS = 4
CRITERIA = Criteria(
    success=20.0, failure=10.0, loss="any", throughput="better", min_window=30.0, max_runs=6
)
_SETTING = Setting()
Draw = Callable[[], Run]


@dataclass(frozen=True, slots=True)
class Decision:
    """How a trial ended: its status, estimate in pp, trial runs, and seconds on the device without the
    recorded baselines."""

    status: Status
    delta: float | None
    runs: int
    seconds: float


def decide_trial(
    recorded: list[Run], fresh: Draw, trial: Draw, criteria: Criteria = CRITERIA, *, early_stop: bool = False
) -> Decision:
    """One trial against the `recorded` baselines; `fresh` and `trial` launch one more run each."""
    before = [r.evidence for r in recorded]
    after: list[Evidence] = []
    seconds = 0.0
    while True:
        found, spent = _watched(trial(), criteria, before, after) if early_stop else _whole(trial())
        after.append(found)
        seconds += spent
        verdict = judge(1, criteria, before, after, _SETTING)
        if not needs_more_runs(verdict, criteria, before, after):
            delta = None if verdict.delta is None else verdict.delta.value
            return Decision(verdict.status, delta, len(after), seconds)
        if needs_fresh_baseline(verdict, criteria, after):
            run = fresh()
            before.append(run.evidence)
            seconds += run.seconds


def _whole(run: Run) -> tuple[Evidence, float]:
    return run.evidence, run.seconds


def _watched(
    run: Run, criteria: Criteria, before: list[Evidence], after: list[Evidence]
) -> tuple[Evidence, float]:
    """The run up to the first look at which its answer is certain."""
    for look in run.looks:
        if ends_early(criteria, before, after, look.evidence):
            return look.evidence, look.seconds
    return _whole(run)


def ends_early(
    criteria: Criteria, before: list[Evidence], after: list[Evidence], seen: Evidence
) -> bool:
    verdict = judge(1, criteria, before, [*after, seen], _SETTING)
    return verdict.status in (Status.VALIDATED, Status.REJECTED)


def shipped(
    recorded: Pool,
    fresh: Pool,
    trial: Pool,
    trials: int,
    rng: np.random.Generator,
    *,
    criteria: Criteria = CRITERIA,
    early_stop: bool = False,
) -> Cell:
    """`trials` trials whose runs are drawn from the pools."""
    most = criteria.max_runs
    befores = rng.integers(0, len(recorded.runs), (trials, BASELINE_RUNS))
    freshes, afters = (rng.integers(0, len(p.runs), (trials, most)) for p in (fresh, trial))
    decisions = [
        decide_trial(
            [recorded.runs[i] for i in befores[k]],
            map(fresh.runs.__getitem__, freshes[k]).__next__,
            map(trial.runs.__getitem__, afters[k]).__next__,
            criteria,
            early_stop=early_stop,
        )
        for k in range(trials)
    ]
    deltas = [d.delta for d in decisions if d.delta is not None]
    return Cell(
        trials=trials,
        validated=sum(d.status is Status.VALIDATED for d in decisions),
        rejected=sum(d.status is Status.REJECTED for d in decisions),
        seconds=float(np.mean([d.seconds for d in decisions]))
        + float(recorded.seconds[befores].sum(axis=1).mean()) / HYPOTHESES,
        delta=float(np.mean(deltas)) if deltas else float("nan"),
        runs=float(np.mean([d.runs for d in decisions])),
    )


@contextmanager
def prior_times(factor: float) -> Iterator[None]:
    """The shipped prior of the spread between runs, wrong by `factor`."""
    defaults = stats.difference.__kwdefaults__
    kept = defaults["prior"]
    defaults["prior"] = replace(kept, sd=factor * kept.sd)
    try:
        yield
    finally:
        defaults["prior"] = kept
