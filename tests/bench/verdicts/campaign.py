"""Campaigns of ten changes on one host, decided by the functions that `gpudebug next` decides by."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from tests.bench.verdicts.host import Host, Made, Scenario
from tests.bench.verdicts.runs import library

from gpudebug.core.statistics.level import POINTS, SHORT, Effect, Seen, follow, places
from gpudebug.core.verdict.gates.delta import is_gain, is_too_small
from gpudebug.core.verdict.gates.setting import Order
from gpudebug.core.verdict.protocol import first_run, is_over
from gpudebug.core.verdict.turns import BASELINE_RUNS, NextRun, following
from gpudebug.core.words import Status

CHANGES = 10
SUCCESS, FAILURE, MAX_RUNS = 20.0, 10.0, 8
SHARES = {0: 0.55, 10: 0.15, 15: 0.05, 20: 0.05, 25: 0.15, 30: 0.05}
"""How often a change has each true effect, in pp: most do nothing."""
SPECIAL = {0: 0.5, 10: 0.2, 15: 0.03, 20: 0.03, 25: 0.2, 30: 0.04}
"""The same of the one trial that a scenario is about."""


@dataclass(frozen=True)
class Plan:
    """What to simulate: campaigns of ten changes.

    A trial that ended in a status of `again` goes on, `tries` times in all; so does one that was REJECTED if
    the baseline's next run contradicts that, unless it is `final`.
    """

    title: str
    scenario: Scenario
    tries: int = 1
    again: frozenset[Status] = frozenset()
    final: bool = False


@dataclass
class Trial:
    """The trial of one change: its own runs, their cost and that of the baseline's beside them in seconds of
    the device, and whether its last interval held the true effect `delta`."""

    delta: int
    status: Status = Status.UNTESTED
    seconds: float = 0.0
    held: bool = False
    ended: int = 0
    own: list[Made] = field(default_factory=list)


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
            continue
        for _ in range(CHANGES):
            outcome.trials.append(campaign.test(special=False))
            campaign.test_again()
    outcome.baseline = float(np.mean(firsts)) / CHANGES
    return outcome


class _Campaign:
    """A host, and the record of its baseline: what a trial measures of it serves the later ones, too."""

    def __init__(self, plan: Plan, host: Host, decide: Decide) -> None:
        self.plan, self.host, self.decide = plan, host, decide
        self.record = [host.run(None) for _ in range(BASELINE_RUNS)]
        self._rejected: list[tuple[Trial, list[Made]]] = []
        self._offered: list[Trial] = []

    def test(self, *, special: bool) -> Trial:
        """Test one change until it has its verdict, and as often again as the plan says."""
        shares = SPECIAL if special else SHARES
        trial = Trial(int(self.host.rng.choice(list(shares), p=list(shares.values()))))
        self.host.begin(special=special)
        self._go_on(trial)
        for _ in range(self.plan.tries - 1):
            if trial.status in self.plan.again:
                self._go_on(trial)
        return trial

    def test_again(self) -> None:
        """Go on with what was REJECTED and is offered again, with the runs that it has."""
        while self._offered:
            self._go_on(self._offered.pop(0))

    def _go_on(self, trial: Trial) -> None:
        """Make one run of the change or more, until the runs decide."""
        step = self._next(trial) if trial.own else first_run(ordered(self.record, self.host.now))
        status = None
        while status is None:
            made = self.host.run(trial.delta if step is NextRun.TRIAL else None)
            trial.seconds += made.seconds
            if step is NextRun.TRIAL:
                trial.own.append(made)
            else:
                self._record(made)
            if not trial.own:
                step = NextRun.TRIAL
                continue
            status, effect = self.decide(self._runs(trial), trial.ended)
            step = self._next(trial)
        low, high = effect.bounds()
        trial.status, trial.held = status, low <= trial.delta <= high
        trial.ended += status is Status.INCONCLUSIVE
        if status is Status.REJECTED and not self.plan.final:
            self._rejected.append((trial, self._runs(trial)))

    def _runs(self, trial: Trial) -> list[Made]:
        return sorted([*self.record, *trial.own], key=lambda run: run.start)

    def _next(self, trial: Trial) -> NextRun:
        last = self.record[-1].start > trial.own[-1].start
        order = ordered(self._runs(trial), self.host.now)
        return following(
            len(trial.own), MAX_RUNS * 2 * (1 + trial.ended), closed=last, since=order.next - order.before[-1]
        )

    def _record(self, made: Made) -> None:
        """A run of the baseline, and what was REJECTED before it decided again."""
        self.record.append(made)
        for trial, runs in self._rejected:
            if self.decide([*runs, made], trial.ended)[0] is not Status.REJECTED:
                trial.status = Status.UNTESTED
                self._offered.append(trial)
        self._rejected = []
