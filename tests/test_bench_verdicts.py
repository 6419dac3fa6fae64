"""The simulator behind the table of verdicts: its traces, its counts, and the command that prints it."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gpudebug.core.statistics.contrast import contrast
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.verdicts.campaign import EARLY, SHIPPED, Plan, simulate_plan
from tests.bench.verdicts.cells import Cell, wilson
from tests.bench.verdicts.rules import RULES
from tests.bench.verdicts.runs import pool
from tests.bench.verdicts.tables import COLUMNS, headline
from tests.bench.verdicts.traces import BASELINE, Scenario, simulate
from tests.bench.verdicts.trials import decide_trial, prior_times

from gpudebug.core.words import Status

ROOT = Path(__file__).parents[1]


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("model", ["ar", "steps"])
@pytest.mark.parametrize("level", [28.0, 53.0])
def test_traces_have_the_level_and_the_start_up_that_they_are_for(model: str, level: float) -> None:
    traces = simulate(Scenario(model, 2.0), level, 60, rng())
    times = 0.5 * np.arange(1, traces.utilisation.shape[1] + 1)
    settled = (times > traces.start[:, None] + 20) & (times < traces.end[:, None])
    assert np.nanmean(traces.utilisation[settled]) == pytest.approx(level, abs=1.5)
    before = times < traces.start[:, None]
    assert np.nanmax(np.where(before, traces.utilisation, 0.0)) == 0
    assert np.median(traces.start) == pytest.approx(12, abs=2)


def test_with_fixed_steps_a_busier_run_is_shorter() -> None:
    slow, fast = (simulate(Scenario("ar", 0.0, fixed_steps=True), level, 20, rng()) for level in (28, 56))
    slowest, fastest = ((t.end - t.start).mean() for t in (slow, fast))
    assert fastest == pytest.approx(slowest / 2, rel=0.1)


def test_strangers_make_a_device_busier_and_a_training_slower() -> None:
    alone, shared = (
        simulate(Scenario("ar", 0.0, tenants=tenants), BASELINE, 60, rng()) for tenants in (False, True)
    )
    assert np.nanmean(shared.utilisation) > np.nanmean(alone.utilisation) + 2
    assert shared.busy.mean() < alone.busy.mean()


@given(st.integers(0, 400), st.integers(1, 400))
def test_an_interval_of_a_share_holds_it(count: int, more: int) -> None:
    low, high = wilson(count, count + more)
    assert 0 <= low <= count / (count + more) <= high <= 1


def test_cells_add_up() -> None:
    both = Cell(10, 1, 2, 100.0, 5.0, 2.0) + Cell(30, 0, 30, 200.0, 1.0, 1.0)
    assert (both.trials, both.validated, both.rejected) == (40, 1, 32)
    assert (both.seconds, both.delta, both.runs) == (175.0, 2.0, 1.25)


def test_a_trial_is_decided_as_next_decides_it() -> None:
    still, gain = (
        pool(Scenario("ar", 1.0), level, 8, rng(), steps_known=True, looks=True) for level in (28, 68)
    )
    recorded = [r.evidence for r in still.runs[:4]]
    fresh, trial = iter(still.runs[4:]), iter(gain.runs)
    done = decide_trial(recorded, fresh.__next__, trial.__next__)
    assert (done.status, done.runs, len(done.fresh)) == (Status.VALIDATED, 1, 1)
    assert done.delta == pytest.approx(40, abs=6)
    again = iter(still.runs[4:])
    nothing = decide_trial(recorded, fresh.__next__, again.__next__)
    assert (nothing.status, nothing.fresh) == (Status.REJECTED, ())
    early = decide_trial(recorded, fresh.__next__, iter(still.runs[4:]).__next__, early_stop=True)
    assert early.status is Status.REJECTED
    assert early.seconds < nothing.seconds


def test_a_wrong_prior_is_wrong_for_the_shipped_protocol_and_only_meanwhile() -> None:
    def width() -> float:
        return contrast([28.0] * 4, [48.0]).half_width

    plain = width()
    with prior_times(2.0):
        assert width() > 1.5 * plain
    assert width() == plain


def test_a_plan_gives_counts_of_every_rule_and_the_same_ones_again() -> None:
    counts = {0: 30, 25: 30}
    plan = Plan("small", Scenario("ar", 3.5), counts, runs=24, seed=5)
    found = simulate_plan(plan)
    assert found.cells == simulate_plan(plan).cells
    assert found.cells.keys() == {SHIPPED, EARLY, *RULES}
    for by_delta in found.cells.values():
        for delta, cell in by_delta.items():
            assert delta in counts
            assert cell.validated + cell.rejected <= cell.trials
            assert cell.seconds > 20
    assert found.cells[SHIPPED][0].validated == 0
    assert found.cells[EARLY][0].seconds < found.cells[SHIPPED][0].seconds
    assert 0 < found.sessions < 1


def test_what_is_missed_is_named() -> None:
    plan = Plan("small", Scenario("steps", 3.5), {0: 20}, runs=10, seed=1)
    found = simulate_plan(Plan("small", Scenario("ar", 2.0), {0: 20}, runs=10, seed=1))
    found.plan = plan
    found.cells[SHIPPED] = {column.delta: Cell(100, 50, 50, 100.0) for column in COLUMNS}
    text, missed = headline([found])
    assert "| gpudebug | 50.0 (40.4-59.6) ! |" in text
    assert any(line.startswith("gpudebug: VALIDATED at 0 pp 50.0") for line in missed)
    assert not any(math.isnan(c.seconds) for c in found.cells[SHIPPED].values())


def test_the_command_prints_its_table_and_says_what_is_missed() -> None:
    words = ["--quick", "--trials=20", "--runs=12", "--jobs=1", "--scenario=steps sd 3.5"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.verdicts", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert (done.returncode == 1) is ("missed: " in done.stderr)
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("|")]
    assert rows[2:9] == [SHIPPED, EARLY, *RULES, "must"]
