"""Campaigns of ten changes on one host, decided by the functions that `gpudebug next` decides by."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from tests.bench.verdicts.host import Host, Made, Scenario
from tests.bench.verdicts.runs import library

from gpudebug.core.statistics.level import POINTS, Effect, Seen, follow, places
from gpudebug.core.verdict.gates.case import SHORT
from gpudebug.core.verdict.gates.delta import is_gain, is_too_small
from gpudebug.core.verdict.gates.setting import Order
from gpudebug.core.verdict.protocol import BASELINE_RUNS, NextRun, first_run, following, is_over
from gpudebug.core.words import Status

CHANGES = 10
SUCCESS, FAILURE, MAX_RUNS = 20.0, 10.0, 8
SHARES = {0: 0.55, 10: 0.15, 15: 0.05, 20: 0.05, 25: 0.15, 30: 0.05}
"""How often a change has each true effect, in pp: most do nothing."""
SPECIAL = {0: 0.5, 10: 0.2, 15: 0.03, 20: 0.03, 25: 0.2, 30: 0.04}
"""The same of the one trial that a scenario is about."""


@dataclass(frozen=True)
class Plan:
    """What to simulate: campaigns of a scenario until about `trials` changes are tested.

    A trial that ended in a status of `again` is taken up again, `tries` times in all. With `later` a REJECTED
    is decided again when the next run of the baseline arrives.
    """

    title: str
    scenario: Scenario
    tries: int = 1
    again: frozenset[Status] = frozenset()
    later: bool = False


@dataclass(slots=True)
class Trial:
    """How the trial of one change ended, its cost in seconds of the device, and whether its interval held
    the true effect `delta`."""

    delta: int
    status: Status
    seconds: float
    held: bool


@dataclass
class Outcome:
    """All trials of a plan, and what the baselines' first runs cost each of them."""

    trials: list[Trial] = field(default_factory=list)
    baseline: float = 0.0


Decide = Callable[[Sequence[Made], int], "tuple[Status | None, Effect]"]


def ordered(runs: Sequence[Made], now: float | None = None) -> Order:
    """The places of these runs, oldest first, and that of the next one: at `now`, or right after them."""
    starts = [run.start for run in runs]
    found = places([*starts, starts[-1] if now is None else now], [run.seconds for run in runs])
    at = list(zip(found, runs, strict=False))
    before, after = (tuple(p for p, run in at if run.changed is side) for side in (False, True))
    return Order(before, after, found[-1])


def decided(runs: Sequence[Made], more: int) -> tuple[Status | None, Effect]:
    """The verdict on a change after these runs, None while it is open. It was continued `more` times."""
    found = places([run.start for run in runs], [run.seconds for run in runs])
    seen = [Seen(p, r.changed, r.value, r.others, r.variance) for p, r in zip(found, runs, strict=True)]
    effect = follow(seen, POINTS)
    most = MAX_RUNS * (2 if any(run.variance > SHORT for run in runs) else 1) * (1 + more)
    if is_gain(effect, SUCCESS, FAILURE):
        return Status.VALIDATED, effect
    if is_too_small(effect, SUCCESS, FAILURE):
        return Status.REJECTED, effect
    if effect.closed and is_over(effect, SUCCESS, FAILURE, most):
        return Status.INCONCLUSIVE, effect
    return None, effect


def simulate_plan(plan: Plan, trials: int, runs: int, seed: int, decide: Decide = decided) -> Outcome:
    """So many trials, of a special one a third, from `runs` simulated runs; the same seed gives the same."""
    trials = trials // 3 if plan.scenario.special else trials
    rng = np.random.default_rng([seed, zlib.crc32(plan.title.encode())])
    drawn = library(plan.scenario.program, runs, seed)
    outcome, firsts = Outcome(), list[float]()
    while len(outcome.trials) < trials:
        host = Host(plan.scenario, drawn, rng)
        campaign = _Campaign(plan, host, decide)
        firsts.append(sum(run.seconds for run in campaign.record))
        if plan.scenario.special:
            special = int(rng.integers(1, 7))
            outcome.trials.append([campaign.test(special=n == special) for n in range(special + 1)][-1])
        else:
            outcome.trials += [campaign.test(special=False) for _ in range(CHANGES)]
    outcome.baseline = float(np.mean(firsts)) / CHANGES
    return outcome


class _Campaign:
    """A host, and the record of its baseline: what a trial measures of it serves the later ones, too."""

    def __init__(self, plan: Plan, host: Host, decide: Decide) -> None:
        self.plan, self.host, self.decide = plan, host, decide
        self.record = [host.run(None) for _ in range(BASELINE_RUNS)]
        self.rejected: list[tuple[list[Made], Trial]] = []

    def test(self, *, special: bool) -> Trial:
        """One change, until it has its verdict."""
        shares = SPECIAL if special else SHARES
        delta = int(self.host.rng.choice(list(shares), p=list(shares.values())))
        self.host.begin(special=special)
        own = list(self.record)
        spent, more, tries = 0.0, 0, 1
        step = first_run(ordered(own, self.host.now))
        while True:
            spent += self._run(step, own, delta)
            if not any(run.changed for run in own):
                step = NextRun.TRIAL
                continue
            status, effect = self.decide(own, more)
            if status is not None and (status not in self.plan.again or tries >= self.plan.tries):
                break
            tries += status is not None
            more += status is Status.INCONCLUSIVE
            order = ordered(own)
            step = following(effect.trials, closed=effect.closed, since=order.now - max(order.before))
        low, high = effect.bounds()
        trial = Trial(delta, status, spent, low <= delta <= high)
        if self.plan.later and status is Status.REJECTED:
            self.rejected.append((own, trial))
        return trial

    def _run(self, step: NextRun, own: list[Made], delta: int) -> float:
        made = self.host.run(delta if step is NextRun.TRIAL else None)
        own.append(made)
        if step is NextRun.BASELINE:
            self.record.append(made)
            for runs, trial in self.rejected:
                if self.decide([*runs, made], 0)[0] is not Status.REJECTED:
                    trial.status = Status.UNTESTED
            self.rejected = []
        return made.seconds
