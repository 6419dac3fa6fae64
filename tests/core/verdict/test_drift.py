"""Trials on imaginary hosts whose speed changes between runs: what their intervals are worth."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.support.trials import criteria, run

from gpudebug.core.records import Conditions, Evidence, Verdict
from gpudebug.core.verdict.gates import TrialCase, TrialSetting, measure
from gpudebug.core.verdict.judge import judge
from gpudebug.core.verdict.protocol import NextRun, next_step
from gpudebug.core.words import Status

CRITERIA = criteria(metric="steps_per_s", success=1.2, failure=1.05, max_runs=4)
HALF = -math.log(2)
Level = Callable[[], float]


def once(rng: random.Random) -> Level:
    """Half as fast from some run on."""
    left = [rng.randint(2, 7)]

    def level() -> float:
        left[0] -= 1
        return HALF if left[0] < 0 else 0.0

    return level


def switching(rng: random.Random) -> Level:
    """A neighbour who comes and goes, and stays for four runs on average."""
    there = [rng.random() < 0.5]

    def level() -> float:
        there[0] ^= rng.random() < 0.25
        return HALF if there[0] else 0.0

    return level


def walking(rng: random.Random) -> Level:
    at = [0.0]

    def level() -> float:
        at[0] = 0.9 * at[0] + rng.gauss(0, 0.15)
        return at[0]

    return level


@dataclass
class Decided:
    verdict: Verdict
    before: list[Evidence]
    after: list[Evidence]
    setting: TrialSetting

    @property
    def drifted(self) -> bool:
        case = measure(TrialCase(CRITERIA, self.setting, tuple(self.before), tuple(self.after)))
        return case.contrast is not None and case.contrast.drift > 0


def decide(level: Level, ratio: float, rule: str, rng: random.Random) -> Decided:
    """One trial of a change that makes a program `ratio` times as fast, by the shipped protocol."""

    def one(faster: float) -> Evidence:
        return run(40.0, 10 * faster * math.exp(level() + rng.gauss(0, 0.04)))

    before, after, step = [one(1.0), one(1.0)], list[Evidence](), NextRun.TRIAL
    while True:
        side = after if step is NextRun.TRIAL else before
        side.append(one(ratio if step is NextRun.TRIAL else 1.0))
        setting = TrialSetting(fresh=len(before) - 2, rule=int(rule))
        verdict = judge(1, CRITERIA, before, after, setting, rule)
        step = next_step(verdict, CRITERIA, before, after, setting)
        if step is NextRun.DONE:
            return Decided(verdict, before, after, setting)


def covered(host: Callable[[random.Random], Level], ratio: float, rule: str) -> tuple[int, int]:
    """Of the gains that were found on a host that drifted: how many, and how many intervals are right."""
    rng = random.Random(7)
    found = [decide(host(rng), ratio, rule, rng) for _ in range(150)]
    gains = [d.verdict.delta for d in found if d.verdict.status is Status.VALIDATED and d.drifted]
    right = sum(g is not None and g.low is not None and g.low <= ratio <= (g.high or 0) for g in gains)
    return len(gains), right


@pytest.mark.parametrize("host", [once, switching, walking])
def test_an_interval_beside_a_drifting_baseline_holds_what_is_measured_later(
    host: Callable[[random.Random], Level],
) -> None:
    """A gain of 4.4x. The rule before took one trial run for the whole truth: its intervals miss it often."""
    many, right = covered(host, 4.4, "5")
    former, former_right = covered(host, 4.4, "4")
    assert min(many, former) >= 20
    assert right >= 0.95 * many
    assert former_right < 0.92 * former


def decide_beside_a_stranger(rng: random.Random, ratio: float) -> Decided:
    """A stranger came after the baseline, and takes a third of each run's time, now more, now less."""
    came = Conditions(foreign_cpu=90, foreign_demand=100, cpu_stolen=50, cpu_cores=1)
    quiet = Conditions(foreign_cpu=3, foreign_demand=3, cpu_stolen=0, cpu_cores=1)

    def one(faster: float) -> Evidence:
        return run(40.0, 6 * faster * math.exp(rng.gauss(0, 0.15)), conditions=came)

    before, after, step = [run(40.0, 10.0, conditions=quiet)] * 2, list[Evidence](), NextRun.TRIAL
    while True:
        side = after if step is NextRun.TRIAL else before
        side.append(one(ratio if step is NextRun.TRIAL else 1.0))
        setting = TrialSetting(fresh=len(before) - 2)
        verdict = judge(1, CRITERIA, before, after, setting)
        step = next_step(verdict, CRITERIA, before, after, setting)
        if step is NextRun.DONE:
            return Decided(verdict, before, after, setting)


def test_what_a_stranger_takes_now_more_now_less_is_in_the_interval() -> None:
    """Few runs that agree by luck are no measure of how evenly others take."""
    rng = random.Random(3)
    nothing = [decide_beside_a_stranger(rng, 1.0).verdict.status for _ in range(60)]
    assert nothing.count(Status.VALIDATED) <= 1
    found = [decide_beside_a_stranger(rng, 1.6).verdict for _ in range(60)]
    gains = [v.delta for v in found if v.status is Status.VALIDATED]
    assert not [v for v in found if v.status is Status.REJECTED]
    assert len(gains) >= 57
    held = [g for g in gains if g is not None and (g.low or 0.0) <= 1.6 <= (g.high or 0.0)]
    assert len(held) >= 0.95 * len(gains)


def test_runs_that_agree_by_luck_beside_a_stranger_make_a_wider_interval() -> None:
    """He took a third of their time: 8 % of their figures is his, as far as two runs of each show."""
    widths = []
    for taken in (0, 50):
        there = Conditions(foreign_cpu=90, foreign_demand=100, cpu_stolen=taken, cpu_cores=1)
        before, after = ([run(40.0, r, conditions=there) for r in side] for side in ((6, 6.1), (9.6, 9.7)))
        found = judge(1, CRITERIA, before, after, TrialSetting()).delta
        assert found is not None and found.low is not None and found.high is not None
        widths.append(math.log(found.high / found.low))
    assert widths[1] > 1.5 * widths[0]


def test_a_gain_over_a_drifting_baseline_rests_on_two_runs_of_the_trial() -> None:
    rng = random.Random(7)
    found = [decide(once(rng), 4.4, "5", rng) for _ in range(100)]
    gains = [d for d in found if d.verdict.status is Status.VALIDATED and d.drifted]
    assert gains
    assert min(len(d.after) for d in gains) >= 2
    assert min(d.setting.fresh for d in gains) >= 2


def test_the_gain_that_was_found_at_nine_and_measured_at_four() -> None:
    """Two recorded runs, two fresh ones at half their rate, and one run of the trial: the real figures."""
    before = [run(40.0, rate) for rate in (31.0, 32.4, 17.6, 17.9)]
    setting = TrialSetting(fresh=2)
    former = judge(1, CRITERIA, before, [run(80.0, 167.0)], TrialSetting(fresh=2), "4").delta
    now = judge(1, CRITERIA, before, [run(80.0, 167.0)], setting).delta
    assert former is not None and former.low is not None and former.low > 4.43
    assert now is not None and now.low is not None and now.high is not None
    assert now.low < 4.43 < now.high
    assert now.low < 6.8 < now.high
