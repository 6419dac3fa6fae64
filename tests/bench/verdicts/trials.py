"""The shipped protocol on simulated runs: what `next` decides by, called as `next` calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from gpudebug.core.statistics.contrast import contrast
from tests.bench.verdicts.cells import HYPOTHESES, Cell
from tests.bench.verdicts.runs import Pool, Run

from gpudebug.core.records import Evidence
from gpudebug.core.verdict.judge import Criteria, TrialSetting, judge
from gpudebug.core.verdict.protocol import NextRun, is_certain, next_step
from gpudebug.core.verdict.run_plan import next_look, with_early_stop
from gpudebug.core.words import Status

BASELINE_RUNS = 4
CRITERIA = Criteria(success=20.0, failure=10.0, loss="any", throughput="better", min_window=30.0, max_runs=6)
# How often a simulated campaign's hypotheses have each true delta: most do nothing.
MIX = {0: 0.5, 10: 0.2, 15: 1 / 30, 20: 1 / 30, 25: 0.2, 30: 1 / 30}
Draw = Callable[[], Run]


@dataclass(frozen=True, slots=True)
class Decision:
    """How a trial ended: its status, estimate in pp, trial runs, seconds on the device, and the fresh runs of
    the baseline that it leaves to later trials."""

    status: Status
    delta: float | None
    runs: int
    seconds: float
    fresh: tuple[Evidence, ...] = ()


def decide_trial(
    recorded: Sequence[Evidence],
    fresh: Draw,
    trial: Draw,
    criteria: Criteria = CRITERIA,
    *,
    early_stop: bool = False,
) -> Decision:
    """One trial against the `recorded` baselines; `fresh` and `trial` launch one more run each."""
    before, after = list(recorded), list[Evidence]()
    seconds, step = 0.0, NextRun.TRIAL
    while True:
        setting = TrialSetting(fresh=len(before) - len(recorded))
        if step is NextRun.TRIAL:
            run = trial()
            found, spent = _watched(run, criteria, before, after, setting) if early_stop else _whole(run)
            after.append(found)
        else:
            found, spent = _filled(fresh(), criteria) if early_stop else _whole(fresh())
            before.append(found)
        seconds += spent
        setting = TrialSetting(fresh=len(before) - len(recorded))
        verdict = judge(1, criteria, before, after, setting)
        step = next_step(verdict, criteria, before, after, setting)
        if step is NextRun.DONE:
            delta = None if verdict.delta is None else verdict.delta.value
            return Decision(verdict.status, delta, len(after), seconds, tuple(before[len(recorded) :]))


def _whole(run: Run) -> tuple[Evidence, float]:
    return run.evidence, run.seconds


def _filled(run: Run, criteria: Criteria) -> tuple[Evidence, float]:
    """The run up to the first look at which its plan ends it."""
    plan = with_early_stop(criteria.min_window, trial=False, learns=False)
    for look in run.looks:
        if next_look(plan, look.evidence, None) == 0:
            return look.evidence, look.seconds
    return _whole(run)


def _watched(
    run: Run, criteria: Criteria, before: list[Evidence], after: list[Evidence], setting: TrialSetting
) -> tuple[Evidence, float]:
    """The run up to the first look at which its answer is certain."""
    for look in run.looks[1::2]:
        if is_certain(1, criteria, before, [*after, look.evidence], setting):
            return look.evidence, look.seconds
    return _whole(run)


@dataclass(frozen=True)
class Moment:
    """Runs of a campaign at one time: of its unmodified workload, and with a change by its true delta."""

    fresh: Pool
    trials: Mapping[int, Pool]


def shipped(
    recorded: Pool,
    moments: Sequence[Moment],
    counts: Mapping[int, int],
    rng: np.random.Generator,
    *,
    early_stop: bool = False,
) -> dict[int, Cell]:
    """Whole campaigns of hypotheses, tested one after the other, until each delta was tried `counts` times.

    A campaign records its baseline once; what a trial measures of it beside its own runs serves the later
    ones too. `moments` follow one another in every campaign.
    """
    share = {d: MIX[d] for d in counts}
    total = sum(share.values())
    deltas, odds = list(share), [s / total for s in share.values()]
    campaigns = max(round(n / HYPOTHESES / (share[d] / total)) for d, n in counts.items())
    found: dict[int, list[Decision]] = {d: [] for d in deltas}
    spent: list[float] = []

    def recorded_run(run: Run) -> tuple[Evidence, float]:
        return _filled(run, CRITERIA) if early_stop else _whole(run)

    for _ in range(max(1, campaigns)):
        made = [recorded_run(recorded.runs[i]) for i in rng.integers(0, len(recorded.runs), BASELINE_RUNS)]
        known = [evidence for evidence, _ in made]
        spent.extend(seconds for _, seconds in made)
        for k, delta in enumerate(rng.choice(deltas, HYPOTHESES, p=odds).tolist()):
            now = moments[k * len(moments) // HYPOTHESES]
            done = decide_trial(
                known, _draw(now.fresh, rng), _draw(now.trials[delta], rng), early_stop=early_stop
            )
            known.extend(done.fresh)
            found[delta].append(done)
    baseline = BASELINE_RUNS * float(np.mean(spent)) / HYPOTHESES
    return {delta: _cell(done, baseline) for delta, done in found.items() if done}


def _draw(pool: Pool, rng: np.random.Generator) -> Draw:
    return lambda: pool.runs[rng.integers(0, len(pool.runs))]


def _cell(decisions: Sequence[Decision], baseline: float) -> Cell:
    deltas = [d.delta for d in decisions if d.delta is not None]
    return Cell(
        trials=len(decisions),
        validated=sum(d.status is Status.VALIDATED for d in decisions),
        rejected=sum(d.status is Status.REJECTED for d in decisions),
        seconds=float(np.mean([d.seconds for d in decisions])) + baseline,
        delta=float(np.mean(deltas)) if deltas else float("nan"),
        runs=float(np.mean([d.runs for d in decisions])),
    )


@contextmanager
def prior_times(factor: float) -> Iterator[None]:
    """The shipped prior of the spread between runs, wrong by `factor`."""
    defaults = contrast.__kwdefaults__
    kept = defaults["prior"]
    defaults["prior"] = replace(kept, sd=factor * kept.sd)
    try:
        yield
    finally:
        defaults["prior"] = kept
