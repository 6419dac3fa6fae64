"""Counters of work, printed rates and rewards, followed through whole logs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.work import LoggedWork

LOGS = Path(__file__).parents[2] / "data" / "logs"


def read(lines: Iterable[str], every: float = 0.5) -> LoggedWork:
    reader = LogReader()
    for number, line in enumerate(lines):
        reader.feed(f"{line}\n".encode(), number * every)
    return reader.summary(0).work


def table(timesteps: int, reward: float, fps: int = 500) -> list[str]:
    """A block as stable-baselines3 prints it."""
    rows = [
        *("| rollout/ |  |", f"|    ep_rew_mean | {reward} |", "| time/ |  |", f"|    fps | {fps} |"),
        f"|    total_timesteps | {timesteps} |",
    ]
    return ["-" * 30, *rows, "-" * 30]


def test_a_table_of_stable_baselines3() -> None:
    found = read(line for n in range(1, 6) for line in table(512 * n, 20.0 + n))
    (counter,), (rate,), (reward,) = found.counters, found.rates, found.rewards
    assert (counter.unit, counter.name, counter.last, counter.seen) == (
        "environment steps",
        "total_timesteps",
        2560,
        5,
    )
    assert (rate.name, len(rate.points)) == ("fps", 5)
    # The reward stands above the counter of its own block.
    assert [(p.step, p.value) for p in reward.points] == [(512 * n, 20.0 + n) for n in range(1, 6)]
    assert reward.over == "total_timesteps"


def test_an_evaluation_in_the_table_is_another_reward() -> None:
    lines = [
        "---",
        "| eval/ |  |",
        "|    mean_reward | 9.5 |",
        "| time/ |  |",
        "|    total_timesteps | 512 |",
    ]
    found = read([*lines, "---", *table(1024, 21.0)])
    assert {(r.name, r.phase) for r in found.rewards} == {("mean_reward", "val"), ("ep_rew_mean", "")}


def test_a_step_beside_the_return_of_an_episode_is_the_environments() -> None:
    found = read(f"global_step={n * 40}, episodic_return=[{n}.0]" for n in range(1, 5))
    (counter,), (reward,) = found.counters, found.rewards
    assert (counter.unit, counter.name, counter.last) == ("environment steps", "global_step", 160)
    assert [(p.step, p.value) for p in reward.points] == [(40 * n, float(n)) for n in range(1, 5)]


def test_a_step_beside_a_loss_is_the_optimizers() -> None:
    assert read(f"step {n}: loss {1 / n}, episode_reward {n}" for n in range(1, 5)).counters == ()


def test_a_reward_without_a_counter_of_the_environment_is_over_the_logs_steps() -> None:
    """As torchrl's bar and TRL's lines show it."""
    found = read(f"step {n}: loss {1 / n}, episode_reward {2 * n}" for n in range(1, 5)).rewards[0]
    assert ([p.step for p in found.points], found.over) == ([1, 2, 3, 4], "the log's steps")
    bar = read(f"reward: {n}.5:  1%|# | {n}000/90000 [00:0{n}<01:30, 9.00it/s]" for n in range(1, 5))
    assert [p.step for p in bar.rewards[0].points] == [1000, 2000, 3000, 4000]


def test_a_reward_above_a_rule_belongs_to_the_counter_below_it() -> None:
    """rsl_rl: `Mean reward`, some rows, a rule, `Total timesteps`, and a long way to the next block."""
    block = [
        "Learning iteration {n}/9",
        "",
        "",
        "",
        "Mean reward: {n}.5",
        "---",
        "Total timesteps: {t}",
        "",
        "",
    ]
    found = read(line.format(n=n, t=n * 96) for n in range(1, 4) for line in block)
    assert [(p.step, p.value) for p in found.rewards[0].points] == [(96, 1.5), (192, 2.5), (288, 3.5)]


def test_a_counter_that_begins_again_says_where() -> None:
    found = read(f"total_timesteps: {n}" for n in (512, 1024, 2048, 128, 256))
    assert found.counters[0].began_again == (2048, 128)


def test_a_reward_over_a_counter_that_begins_again_is_over_nothing() -> None:
    """One wrong number of the counter would else put a reward at the end of its course."""
    (found,) = read(f"total_timesteps: {n}, Mean reward: {n}" for n in (1, 2, 10**9, 3, 4)).rewards
    assert ([p.step for p in found.points], found.over) == ([None] * 5, None)
    assert [p.value for p in found.points] == [1, 2, 10**9, 3, 4]


def test_late_lines_of_another_process_are_no_new_beginning() -> None:
    found = read(f"total_timesteps: {n}" for n in (512, 1024, 1000, 1536))
    assert (found.counters[0].began_again, found.counters[0].last) == (None, 1536)


def test_a_recorded_log_has_its_counter_and_its_rewards() -> None:
    found = read((LOGS / "sb3__ppo_short_pipe.log").read_text().splitlines(), every=0.01)
    assert [(c.name, c.last) for c in found.counters] == [("total_timesteps", 2048)]
    assert [(r.name, r.count, r.points[-1].value) for r in found.rewards] == [("ep_rew_mean", 4, 31.6)]


@given(steps=st.lists(st.integers(1, 5000), min_size=2, max_size=60), cut=st.integers(1, 40))
def test_what_is_counted_does_not_depend_on_how_the_bytes_are_cut(steps: list[int], cut: int) -> None:
    totals = [sum(steps[: n + 1]) for n in range(len(steps))]
    text = "".join(f"total_timesteps: {n}\nMean reward: {n / 7:.3f}\n" for n in totals).encode()
    whole, parts = LogReader(), LogReader()
    whole.feed(text)
    for at in range(0, len(text), cut):
        parts.feed(text[at : at + cut])
    assert whole.summary(0).work == parts.summary(0).work
    (counter,) = whole.summary(0).work.counters
    assert (counter.last, counter.seen, counter.began_again) == (totals[-1], len(totals), None)
