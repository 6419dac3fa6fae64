"""One scenario from traces to counts: pools of runs, then every rule on them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from tests.bench.verdicts.cells import DELTAS, Cell
from tests.bench.verdicts.rules import RULES, mad_session
from tests.bench.verdicts.runs import Pool, pool
from tests.bench.verdicts.traces import BASELINE, Scenario
from tests.bench.verdicts.trials import Moment, prior_times, shipped

SHIPPED, EARLY = "gpudebug", "gpudebug, early_stop"
# A drifting campaign is simulated at this many moments after its baselines were recorded.
_MOMENTS = 5


@dataclass(frozen=True)
class Plan:
    """What to simulate of one scenario: `trials` by true delta in pp, from pools of `runs` runs a command.

    `priors` are factors by which the shipped prior is wrong; 1 is the prior as it is.
    """

    title: str
    scenario: Scenario
    trials: dict[int, int]
    runs: int
    seed: int
    priors: tuple[float, ...] = (1.0,)
    early: bool = True
    others: bool = True
    steps_known: bool = True


@dataclass
class Outcome:
    """Counts by rule and true delta; `sessions` is the share of the MAD rule's that keep a change in vain."""

    plan: Plan
    cells: dict[str, dict[int, Cell]] = field(default_factory=dict)
    sessions: float = float("nan")


def simulate_plan(plan: Plan) -> Outcome:
    """Everything that `plan` asks for; the same seed gives the same counts."""
    outcome = Outcome(plan)
    baseline, moments = _moments(plan)
    counts = {d: n for d, n in plan.trials.items() if n}
    for factor in plan.priors:
        with prior_times(factor):
            for name, early in ((SHIPPED, False), (EARLY, True)):
                if early and not plan.early:
                    continue
                rng = _rng(plan, "trials", early)
                cells = shipped(baseline, moments, counts, rng, early_stop=early)
                outcome.cells[_named(name, factor)] = cells
    if plan.others:
        for name, delta, cell in _others(plan, baseline, moments):
            by_delta = outcome.cells.setdefault(name, {})
            by_delta[delta] = by_delta[delta] + cell if delta in by_delta else cell
        nothing = moments[0].trials.get(0)
        if nothing is not None:
            rng = _rng(plan, "sessions", 0)
            outcome.sessions = mad_session(baseline, nothing, plan.trials[0], rng)
    return outcome


def _moments(plan: Plan) -> tuple[Pool, list[Moment]]:
    """The recorded baselines' runs, and those of every later moment."""
    drift = plan.scenario.drift
    deltas = [d for d in DELTAS if plan.trials.get(d)]
    baseline = _pool(plan, 0.0, "baseline", 0, looks=plan.early)
    if not drift:
        return baseline, [Moment(baseline, {d: _pool(plan, d, "trial", 0, looks=plan.early) for d in deltas})]
    found = []
    for moment in range(1, _MOMENTS + 1):
        moved = drift * moment / _MOMENTS
        fresh = _pool(plan, moved, "fresh", moment, looks=plan.early)
        trials = {d: _pool(plan, d + moved, "trial", moment, looks=plan.early) for d in deltas}
        found.append(Moment(fresh, trials))
    return baseline, found


def _others(plan: Plan, baseline: Pool, moments: list[Moment]) -> Iterator[tuple[str, int, Cell]]:
    for moment in moments:
        for delta, trial in moment.trials.items():
            rng = _rng(plan, "others", delta)
            for name, rule in RULES.items():
                yield name, delta, rule(baseline, trial, plan.trials[delta] // len(moments), rng)


def _pool(plan: Plan, above: float, part: str, moment: int, *, looks: bool) -> Pool:
    rng = _rng(plan, part, moment, round(1000 * above))
    return pool(plan.scenario, BASELINE + above, plan.runs, rng, steps_known=plan.steps_known, looks=looks)


def _named(name: str, factor: float) -> str:
    return name if factor == 1.0 else f"{name}, prior sd x{factor:g}"


def _rng(plan: Plan, *key: str | int) -> np.random.Generator:
    """A stream for each part of each scenario, whatever else is simulated."""
    words = repr((replace(plan.scenario), plan.steps_known, key)).encode()
    return np.random.default_rng([plan.seed, zlib.crc32(words)])
