"""The simulator behind the table of verdicts: its runs, its hosts, its decisions, and what it prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.bench.verdicts import campaign
from tests.bench.verdicts.__main__ import main
from tests.bench.verdicts.campaign import MAX_RUNS, Outcome, Plan, Trial, decided, ordered, simulate_plan
from tests.bench.verdicts.host import CORES, Host, Made, Scenario
from tests.bench.verdicts.rows import GROUPS
from tests.bench.verdicts.runs import Library, library
from tests.bench.verdicts.table import figures, table
from tests.bench.verdicts.traces import BASELINE, Floats, Program, simulate

from gpudebug.core.records import Conditions, Evidence
from gpudebug.core.statistics.level import Effect
from gpudebug.core.verdict.gates.case import TrialCase, measure
from gpudebug.core.verdict.gates.setting import Criteria, TrialSetting
from gpudebug.core.verdict.judge import judge_case
from gpudebug.core.verdict.protocol import next_step
from gpudebug.core.verdict.turns import NextRun
from gpudebug.core.words import VERDICTS, Status

RUNS = 300
CALM = Scenario(Program("ar"), sd=0.0)
CRITERIA = Criteria(
    success=campaign.SUCCESS, failure=campaign.FAILURE, loss="any", throughput="better", max_runs=MAX_RUNS
)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def exact() -> Library:
    """Runs that show their level and nothing else."""
    drawn = library(CALM.program, RUNS, 1)
    return Library(drawn.levels, tuple(replace(run, above=0.0) for run in drawn.runs))


def values(scenario: Scenario, deltas: Sequence[float | None], *, special: bool = False) -> Floats:
    """What a campaign's runs show above the baseline's level, of 40 hosts: shape (hosts, runs)."""
    draws, shown = rng(), []
    for _ in range(40):
        host = Host(scenario, exact(), draws)
        host.begin(special=special)
        shown.append([host.run(delta).value - BASELINE for delta in deltas])
    return np.array(shown)


@pytest.mark.parametrize("model", ["ar", "steps"])
@pytest.mark.parametrize("level", [28.0, 53.0])
def test_traces_have_the_level_and_the_start_up_that_they_are_for(model: str, level: float) -> None:
    traces = simulate(Program(model), np.full(60, level), rng())
    times = 0.5 * np.arange(1, traces.utilisation.shape[1] + 1)
    settled = (times > traces.start[:, None] + 20) & (times < traces.end[:, None])
    assert np.nanmean(traces.utilisation[settled]) == pytest.approx(level, abs=1.5)
    before = times < traces.start[:, None]
    assert np.nanmax(np.where(before, traces.utilisation, 0.0)) == 0
    assert np.median(traces.start) == pytest.approx(12, abs=2)


def test_with_fixed_steps_a_busier_run_is_shorter() -> None:
    traces = simulate(Program("ar", fixed_steps=True), np.array([28.0, 56.0]), rng())
    slow, fast = traces.end - traces.start
    assert fast == pytest.approx(slow / 2, rel=0.01)


def test_a_run_shows_its_level_with_the_noise_within_it() -> None:
    drawn, draws, levels = library(CALM.program, RUNS, 1), rng(), np.linspace(10, 85, 200)
    above = [drawn.draw(level, draws).above for level in levels]
    assert np.mean(above) == pytest.approx(0, abs=1)
    assert np.std(above) == pytest.approx(3.2, abs=0.8)


def test_a_change_and_its_host_move_what_runs_show() -> None:
    assert values(CALM, [None, 25.0]) == pytest.approx(np.tile([0, 25], (40, 1)))
    assert values(replace(CALM, drift=5.0), [None] * 4) == pytest.approx(np.tile([0, 5, 10, 15], (40, 1)))
    assert values(replace(CALM, sd=5.0), [None] * 9).std() == pytest.approx(5, abs=0.5)
    stepped = values(replace(CALM, step=12.0), [None] * 40)
    assert stepped[:, [0, 39]] == pytest.approx(np.tile([0, 12], (40, 1)))
    assert np.ptp(stepped.mean(axis=1)) > 1
    visited = values(replace(CALM, stays=3.0), [None] * 40)
    assert set(visited.round(6).flat) == {0, -8}
    assert visited.mean() == pytest.approx(-0.3 * 8, abs=0.5)
    assert np.abs(np.diff(visited)).mean() / 8 == pytest.approx(2 * 0.3 / 3, abs=0.04)
    low = values(replace(CALM, outliers=True), [None] * 40)
    assert low.mean() == pytest.approx(-0.05 * 15, abs=0.2)


def test_only_the_special_trial_has_a_step_inside_and_leaves_something_behind() -> None:
    turns, still = [None, 0.0, None, 0.0], np.zeros((40, 4))
    poisoned, inside = replace(CALM, poison=-20.0), replace(CALM, inside=12.0)
    assert values(poisoned, turns, special=True) == pytest.approx(np.tile([0, 0, -20, 0], (40, 1)))
    assert values(inside, turns, special=True)[:, 2:] == pytest.approx(still[:, 2:] + 12)
    assert values(poisoned, turns) == pytest.approx(still)
    assert values(inside, turns) == pytest.approx(still)


def test_what_a_neighbour_takes_is_what_runs_record_of_it() -> None:
    draws, periodic = rng(), replace(CALM, periodic=20.0, recorded=True)
    runs = [Host(periodic, exact(), draws).run(None) for _ in range(200)]
    others = np.array([run.others for run in runs], float)
    fell = BASELINE - np.array([run.value for run in runs])
    assert fell.mean() == pytest.approx(20 * 40 / 90, abs=0.5)
    assert others.mean() == pytest.approx(100 / CORES * 40 / 90, abs=1)
    assert np.corrcoef(others, fell)[0, 1] > 0.5
    assert Host(CALM, exact(), draws).run(None).others is None


def evidence_of(made: Made) -> Evidence:
    """As the product records it: of one core's time that the run wanted others took their share."""
    taken = made.others
    conditions = Conditions(cpu_stolen=taken, cpu_cores=None if taken is None else 1 - taken / 100)
    return made.run.evidence.model_copy(update={"utilisation": made.value, "conditions": conditions})


def decided_as_next_does(made: Sequence[Made], more: int) -> tuple[Status | None, Effect]:
    """`decided`, beside the whole judge on the evidence of the same runs."""
    status, effect = decided(made, more)
    sides = [tuple(evidence_of(run) for run in made if run.changed is side) for side in (False, True)]
    case = measure(TrialCase(CRITERIA, TrialSetting(order=ordered(made), more=more), sides[0], sides[1], 1))
    verdict = judge_case(case)
    done = next_step(verdict, case) is NextRun.DONE
    assert (verdict.status if done else None) is status, verdict.why
    assert case.effect == effect
    return status, effect


@pytest.mark.parametrize(
    ("scenario", "tries"),
    [
        (Scenario(), 1),
        (Scenario(sd=5.0), 3),
        (Scenario(stays=2.0, recorded=True), 1),
        (Scenario(Program(training=20.0)), 1),
    ],
    ids=["quiet", "continued", "share recorded", "short runs"],
)
def test_trials_are_decided_as_next_decides_them(scenario: Scenario, tries: int) -> None:
    plan = Plan("cross-check", scenario, tries=tries, again=frozenset({Status.INCONCLUSIVE}))
    found = simulate_plan(plan, 40, RUNS, 2, decided_as_next_does)
    assert {t.status for t in found.trials} == {Status.VALIDATED, Status.REJECTED, Status.INCONCLUSIVE}


def test_the_same_seed_gives_the_same_figures() -> None:
    plan = Plan("small", Scenario())
    first, again, other = (figures(simulate_plan(plan, 60, RUNS, seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert first["0"] < first["25"]
    assert 70 < first["device-s"] < 500


def test_a_rejected_that_the_next_run_of_the_baseline_contradicts_is_taken_up_again() -> None:
    plan = Plan("fell", Scenario(drift=-3.0))
    for one, expected in ((plan, True), (replace(plan, final=True), False)):
        trials = simulate_plan(one, 100, RUNS, 1).trials
        campaigns = [trials[i : i + campaign.CHANGES] for i in range(0, 100, campaign.CHANGES)]
        pairs = [pair for one in campaigns for pair in pairwise(one)]
        assert any(t.own[-1].start > after.own[0].start for t, after in pairs) is expected
        assert {t.status for t in trials} <= VERDICTS


def outcome(validated: int, of: int, status: Status = Status.VALIDATED) -> Outcome:
    """Of each true effect so many trials, of which some ended so."""
    trials = [
        Trial(delta, status if i < validated else Status.INCONCLUSIVE, 100.0, held=True)
        for delta in campaign.SHARES
        for i in range(of)
    ]
    return Outcome(trials, baseline=15.0)


def test_a_bound_that_is_missed_is_marked_and_named() -> None:
    found = {"ar, noise 2": outcome(50, 100), "steps, noise 3.5": outcome(0, 100, Status.REJECTED)}
    text, missed = table(found)
    row, must = text.splitlines()[2:4]
    assert row == f"| ar, noise 2 | 50.00 ! |{5 * ' 50.0 ! |'} 0.00 | 115 | 100.0 | 600 |"
    assert must == "| must, quiet | <= 0.05 | <= 2 | <= 35 | >= 55 | >= 95 | >= 99.5 | <= 0.5 |  |  |  |"
    assert "ar, noise 2: VALIDATED at 0 pp, % 50.00, must be <= 0.05" in missed
    assert "steps, noise 3.5: VALIDATED at 25 pp, % 0.0, must be >= 95" in missed
    assert not any("at 0 pp" in line or "device-s" in line for line in missed if line.startswith("steps"))


def test_what_was_not_tried_misses_nothing() -> None:
    nothing = figures(Outcome())
    assert {c for c, value in nothing.items() if not math.isnan(value)} == {"trials"}
    assert table({"ar, noise 2": Outcome()})[1] == []


def test_each_row_has_a_name_of_its_own() -> None:
    titles = [plan.title for group in GROUPS for plan in group.plans]
    assert len(titles) == len(set(titles))


def test_the_command_says_what_is_missed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--trials=60", f"--runs={RUNS}", "--jobs=1", "--row=drift"]
    main(words)
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert rows[2:] == ["drift of +0.6 pp a run", "drift of -0.6 pp a run", "must, drift", "goal, drift"]
    monkeypatch.setattr(campaign, "is_gain", lambda effect, *_: True)
    assert main(words) == 1
    assert (
        "missed: drift of +0.6 pp a run: VALIDATED at 10 pp, % 100.0, must be <= 2.5"
        in capsys.readouterr().err
    )
