"""What is named of a log whose counters and rewards do not hold together."""

from __future__ import annotations

from collections.abc import Iterable

from gpudebug.core.evidence.doubts import doubts
from gpudebug.core.trainlog.reader import LogReader


def said(lines: Iterable[str]) -> tuple[str, ...]:
    reader = LogReader()
    for line in lines:
        reader.feed(f"{line}\n".encode())
    return doubts(reader.summary(0).work)


def test_a_sound_log_has_none() -> None:
    assert said(f"total_timesteps: {512 * n}, Mean reward: {n}" for n in range(1, 9)) == ()
    assert said([]) == ()


def test_a_counter_that_begins_again() -> None:
    assert said(f"total_timesteps: {n}" for n in (10, 20, 30, 10, 20)) == (
        "total_timesteps began again at 10 after 30: what it counts is unknown",
    )


def test_a_unit_that_changes_in_the_middle() -> None:
    steps = [f"total_timesteps: {n}" for n in range(1, 5)]
    tokens = [f"num_tokens: {n}" for n in range(1, 6)]
    assert said([*steps, *tokens]) == (
        "total_timesteps is printed until line 4 of 9 only: the unit may have changed",
        "num_tokens is printed from line 5 of 9 on only: the unit may have changed",
    )


def test_two_counters_that_disagree() -> None:
    assert said(f"total_timesteps: {n}, agent_steps: {4 * n}" for n in range(1, 9)) == (
        "two counts of environment steps disagree: total_timesteps 8 and agent_steps 32",
    )
    assert said(f"total_timesteps: {n}, agent_steps: {n}" for n in range(1, 9)) == ()


def test_rewards_that_are_no_numbers() -> None:
    assert said(f"Mean reward: {value}" for value in (1, 2, "nan", 3)) == (
        "Mean reward is NaN or infinite in some of its values",
    )
