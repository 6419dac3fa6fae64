"""Progress bars alone: when they count steps of an environment, and when that is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpudebug.core.evidence.bars import of_environment
from gpudebug.core.evidence.work import candidates
from gpudebug.core.records import Window
from gpudebug.core.trainlog.reader import LogReader, LogSummary

WINDOW = Window(start_s=5.0, end_s=25.0, samples=100, rule="steps")
PLAN = 100_000


def log(draw: Callable[[int], str], head: str = "") -> LogSummary:
    """A bar that is drawn once a second."""
    reader = LogReader()
    reader.feed(f"{head}\n".encode(), 0.1)
    for n in range(1, 30):
        reader.feed(f"{draw(n)}\r".encode(), float(n))
    return reader.summary(0)


def tqdm(n: int, unit: str = "it", label: str = "", total: int = PLAN) -> str:
    return f"{label} {100 * n // total}%|##  | {n}/{total} [00:10<01:30, 2048.00{unit}/s]"


def rich(n: int) -> str:
    """As stable-baselines3 draws it."""
    return f" {100 * n // PLAN}% ━━━━ {n:,}/{PLAN:,}  [ 0:00:10 < 0:00:40 , 2,048 it/s ]"


def found(summary: LogSummary, plans: set[int], environments: int | None = None) -> Any:
    rates, notes = candidates(
        summary,
        WINDOW,
        steps_per_s=2048.0,
        steps_by="arrival",
        progress_per_s=2048.0,
        samples_per_s=None,
        samples_by=None,
        environments=environments,
        plans=plans,
    )
    return [(one.unit, one.source, one.per_s) for one in rates], notes


@pytest.mark.parametrize("draw", [rich, tqdm])
@pytest.mark.parametrize("environments", [None, 1, 8])
def test_a_bar_over_what_the_command_plans_counts_the_environment(
    draw: Callable[[int], str], environments: int | None
) -> None:
    rates, notes = found(log(lambda n: draw(2048 * n)), {PLAN}, environments)
    assert (rates, notes) == ([("environment steps", "the progress bar", 2048.0)], ())


def test_another_bar_counts_what_it_did_before() -> None:
    rates, _ = found(log(lambda n: tqdm(2048 * n)), {PLAN + 1})
    assert rates == [("optimizer steps", "the log's steps", 2048.0)]


@pytest.mark.parametrize(("unit", "label"), [("frames", ""), ("it", "Collected frames: "), ("timestep", "")])
def test_its_unit_or_its_label_says_so_where_something_learns_by_reward(unit: str, label: str) -> None:
    drawn = log(lambda n: f"{tqdm(2048 * n, unit, label)[:-1]}, reward={n / 7:.2f}]")
    assert found(drawn, set())[0][0] == ("environment steps", "the progress bar", 2048.0)
    of_video = log(lambda n: f"{tqdm(2048 * n, unit, label)[:-1]}, loss={1 / n:.2f}]")
    assert of_environment(of_video, set(), None) is None


def test_a_bar_that_moves_by_one_for_several_environments_is_named_and_not_used() -> None:
    """With eight environments it is no fewer steps than with one: nothing is slower."""
    rates, notes = found(log(lambda n: tqdm(2048 * n + n % 3)), {PLAN}, 8)
    assert rates == []
    assert notes == (
        "the progress bar of 100000 does not move on by multiples of 8 environments: "
        "it may not count the environment steps of all, and is not used",
    )


def test_skrls_bar_stays_one_of_all_environments_at_once() -> None:
    head = "[skrl:INFO] Environment wrapper: gymnasium"
    rates, _ = found(log(lambda n: tqdm(2048 * n), head), {PLAN}, 4)
    assert rates[0] == ("environment steps", "timesteps x environments", 8192.0)


def test_a_bar_of_each_epoch_is_no_plan_of_the_whole() -> None:
    drawn = log(lambda n: tqdm(25_000 * (n % 5)))
    assert found(drawn, {PLAN})[0] == [("optimizer steps", "the log's steps", 2048.0)]
