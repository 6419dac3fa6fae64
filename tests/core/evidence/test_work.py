"""The candidates for a unit of work that one run's log and probe give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.evidence.work import bar_of_environment, candidates, counter_rate, doubts
from gpudebug.core.records import Window
from gpudebug.core.trainlog.reader import LogReader, LogSummary

WINDOW = Window(start_s=5.0, end_s=25.0, samples=100, rule="steps")


def log(lines: Iterable[tuple[float, str]], **patterns: str) -> LogSummary:
    reader = LogReader(patterns)
    for time, line in lines:
        reader.feed(f"{line}\n".encode(), time)
    return reader.summary(0)


def found(summary: LogSummary, **figures: Any) -> list[tuple[str, str, float]]:
    return [(one.unit, one.source, round(one.per_s, 3)) for one in both(summary, **figures)[0]]


def both(summary: LogSummary, **figures: Any) -> Any:
    none = dict.fromkeys(("steps_per_s", "steps_by", "progress_per_s", "samples_per_s", "samples_by"))
    return candidates(summary, WINDOW, **{**none, **figures})


def every(form: str, per_s: float, until: float = 30.0, start: float = 1.0) -> list[tuple[float, str]]:
    """A line a second of a counter."""
    times = [start + n for n in range(int(until - start) + 1)]
    return [(t, form.format(n=int(per_s * t))) for t in times]


FORMS = {
    "stable-baselines3": ("|    total_timesteps | {n} |", "environment steps", "total_timesteps"),
    "rsl_rl": ("                   Total timesteps: {n}", "environment steps", "Total timesteps"),
    "rsl_rl, later": ("                       Total steps: {n}", "environment steps", "Total steps"),
    "CleanRL": ("global_step={n}, episodic_return=[1.0]", "environment steps", "global_step"),
    "rl_games": ("fps step: 9 fps total: 7 epoch: 1/9 frames: {n}/99", "environment steps", "frames"),
    "RLlib": (
        "num_env_steps_sampled_lifetime: {n}",
        "environment steps",
        "num_env_steps_sampled_lifetime",
    ),
    "metta": ("agent_steps: {n}", "environment steps", "agent_steps"),
    "Spinning Up": ("| TotalEnvInteracts |      {n} |", "environment steps", "TotalEnvInteracts"),
    "Sample Factory": (
        "Fps is (10 sec: 9.0). Total num frames: {n}. T: 0",
        "environment steps",
        "Total num frames",
    ),
    "steps beside a return": ("Ep: 3 | Steps: {n} | Return: 1.5", "environment steps", "steps"),
    "TRL": ("{{'loss': 1.0, 'num_tokens': {n}.0}}", "tokens", "num_tokens"),
    "Megatron": (" consumed samples:   {n} | lm loss: 1.0", "samples", "consumed samples"),
}


@pytest.mark.parametrize(("form", "unit", "source"), FORMS.values(), ids=FORMS)
def test_a_counter_in_the_window(form: str, unit: str, source: str) -> None:
    assert found(log(every(form, 400.0)))[0] == (unit, source, 400.0)


def test_printed_rates_are_taken_without_a_counter() -> None:
    lines = [(float(n), f"SPS: {rate}") for n, rate in enumerate([100] * 6 + [200, 300] * 10)]
    (one,) = found(log(lines))
    assert one[:2] == ("environment steps", "printed SPS")
    assert 200 < one[2] < 250


@pytest.mark.parametrize(
    "line",
    [
        "step: {n}/9000, speed: 2048.0 sps, reward avg: 0.3, returns: 0.5",
        "fps step: 9000 fps step and policy inference: 4000 fps total: 2048 epoch: {n}/500",
    ],
    ids=["an iteration beside its speed", "rl_games without frames"],
)
def test_what_an_update_is_called_is_no_count_of_the_environment(line: str) -> None:
    first, *_ = found(
        log([(float(n), line.format(n=n)) for n in range(1, 30)]), steps_per_s=1.0, steps_by="arrival"
    )
    assert (first[0], first[2]) == ("environment steps", 2048.0)


def test_a_count_of_each_line_is_no_counter() -> None:
    """RLlib prints the steps of an iteration above those of the run."""
    each = (4000, 4010, 3990, 4005, 3980)
    lines = [
        (float(n), f"num_env_steps_sampled: {each[n % 5]}\nnum_env_steps_sampled_lifetime: {4000 * n}")
        for n in range(1, 31)
    ]
    summary = log([(t, f"episode_return_mean: {t}\n{line}") for t, line in lines])
    assert found(summary) == [("environment steps", "num_env_steps_sampled_lifetime", 4000.0)]
    assert summary.work.rewards[0].over == "num_env_steps_sampled_lifetime"


RATES = {
    "metta": ("Epoch {i} / 2.05 ksps / 1.20% of 10.00 Msteps / (55% train / 40% rollout)", "printed sps"),
    "rl_games without frames": (
        "fps step: 9000 fps step and policy inference: 4000 fps total: 2050 epoch: {i}/500",
        "printed fps total",
    ),
    # Steps that come as fast as the environment's are the environment's.
    "PufferLib": (
        "  Steps   {k:.2f}K   Evaluate  1s  40%   value_loss  0.1\n  SPS     2.1K     Env  0s  10%",
        "the log's steps",
    ),
    "metta's table": (
        "  Steps    {n} / 10,000,000  \n  Steps/sec   2,050  \n  Reward  {i}",
        "the log's steps",
    ),
}


@pytest.mark.parametrize(("form", "source"), RATES.values(), ids=RATES)
def test_a_rate_of_the_environment(form: str, source: str) -> None:
    lines = [(float(i), form.format(i=i, n=2050 * i, k=2.05 * i)) for i in range(1, 31)]
    got = found(log(lines), steps_per_s=2050.0, steps_by="arrival", progress_per_s=2050.0)
    assert (got[0][0], got[0][1]) == ("environment steps", source)
    assert got[0][2] == pytest.approx(2050, rel=0.03)
    if source == "the log's steps":
        assert "optimizer steps" not in [one[0] for one in got]


def test_frames_per_second_of_a_video_model_are_no_environment() -> None:
    lines = [(float(n), f"step {n} loss {1 / (n + 1):.3f} fps: 30") for n in range(30)]
    assert found(log(lines), steps_per_s=1.0, steps_by="arrival") == [
        ("optimizer steps", "the log's steps", 1.0)
    ]


def test_tokens_of_an_iteration_that_are_printed_once() -> None:
    """nanoGPT."""
    lines = [(0.0, "tokens per iteration will be: 12,288")]
    lines += [(float(n), f"iter {n}: loss 3.2, time 90ms, mfu 1%") for n in range(1, 30)]
    got = found(log(lines), steps_per_s=1.0, steps_by="arrival", samples_per_s=12.0, samples_by="flags")
    assert got == [
        ("tokens", "steps x tokens per step", 12288.0),
        ("samples", "steps x batch flags", 12.0),
        ("optimizer steps", "the log's steps", 1.0),
    ]


def test_samples_stand_before_steps_unless_they_are_only_printed() -> None:
    steps = {"steps_per_s": 2.0, "steps_by": "arrival", "samples_per_s": 64.0}
    assert [one[0] for one in found(log([]), **steps, samples_by="probe")] == ["samples", "optimizer steps"]
    assert [one[0] for one in found(log([]), **steps, samples_by="printed")] == ["optimizer steps", "samples"]


def test_a_timestep_of_all_environments_at_once() -> None:
    """skrl's bar counts a step of all of them as one."""
    lines = [(0.0, "[skrl:INFO] Environment wrapper: gymnasium")]
    lines += [(float(n), f" {n}%|## | {n}0/3000 [00:{n:02d}<01:00, 10.0it/s]") for n in range(1, 30)]
    got = found(log(lines), steps_per_s=10.0, steps_by="arrival", progress_per_s=10.0, environments=64)
    assert got[0] == ("environment steps", "timesteps x environments", 640.0)


def test_timesteps_of_an_unknown_number_of_environments_are_named() -> None:
    lines = [(0.0, "[skrl:INFO] Environment wrapper: gymnasium")]
    lines += [(float(n), f" {n}%|## | {n}0/3000 [00:{n:02d}<01:00, 10.0it/s]") for n in range(1, 30)]
    rates, notes = both(log(lines), steps_per_s=10.0, steps_by="arrival", progress_per_s=10.0)
    assert rates == ()
    assert notes[0].endswith("timesteps of all environments at once, and nothing says how many these are")


def test_a_pattern_of_the_user_that_counts_up() -> None:
    lines = every("turn {n} of the day", 10.0)
    got = found(log(lines, turns=r"turn (?P<value>\d+) of"))
    assert got == [("log:turns", "turns", 10.0)]


def test_a_counter_that_begins_again_is_named_and_not_used() -> None:
    again = [(t + 31.0, line) for t, line in every("total_timesteps: {n}", 400.0)]
    rates, notes = both(log([*every("total_timesteps: {n}", 400.0), *again]))
    assert rates == ()
    assert notes == ("total_timesteps began again at 400 after 12000: it is not used",)


def test_a_unit_that_changes_in_the_middle_is_named_and_not_used() -> None:
    lines = [*every("total_timesteps: {n}", 400.0, until=12.0), *every("num_tokens: {n}", 9.0, start=13.0)]
    rates, notes = both(log(lines))
    assert [one.source for one in rates] == ["num_tokens"]
    assert notes == ("total_timesteps is printed until 12.0 s only: it is not used",)


def test_two_counters_that_disagree_are_named() -> None:
    lines = [
        (t, f"{a}\n{b}")
        for (t, a), (_, b) in zip(
            every("total_timesteps: {n}", 400.0), every("agent_steps: {n}", 1600.0), strict=True
        )
    ]
    rates, notes = both(log(lines))
    assert [(one.source, one.per_s) for one in rates] == [("total_timesteps", 400.0), ("agent_steps", 1600.0)]
    assert notes == (
        "two counts of environment steps disagree: total_timesteps 400/s and agent_steps 1600/s; "
        "the first is used",
    )


@given(
    per_s=st.floats(1.0, 1e6),
    gaps=st.lists(st.floats(0.1, 2.0), min_size=30, max_size=80),
)
def test_a_steady_counter_has_its_rate_whatever_the_times_of_its_lines(
    per_s: float, gaps: list[float]
) -> None:
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    window = Window(start_s=times[1], end_s=times[-1], samples=9, rule="steps")
    rate = counter_rate([(int(1000 * per_s * t), t) for t in times], window)
    if window.duration_s >= 5:
        assert rate == pytest.approx(1000 * per_s, rel=1e-2)


def test_nothing_is_guessed_from_a_counter_that_is_silent_in_the_window() -> None:
    assert counter_rate([(100, 1.0), (200, 2.0), (300, 3.0), (400, 4.0)], WINDOW) is None
    assert counter_rate([], WINDOW) is None


PLAN = 100_000


def log_of_bars(draw: Callable[[int], str], head: str = "") -> LogSummary:
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


def found_of_bars(summary: LogSummary, plans: set[int], environments: int | None = None) -> Any:
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
    rates, notes = found_of_bars(log_of_bars(lambda n: draw(2048 * n)), {PLAN}, environments)
    assert (rates, notes) == ([("environment steps", "the progress bar", 2048.0)], ())


def test_another_bar_counts_what_it_did_before() -> None:
    rates, _ = found_of_bars(log_of_bars(lambda n: tqdm(2048 * n)), {PLAN + 1})
    assert rates == [("optimizer steps", "the log's steps", 2048.0)]


@pytest.mark.parametrize(("unit", "label"), [("frames", ""), ("it", "Collected frames: "), ("timestep", "")])
def test_its_unit_or_its_label_says_so_where_something_learns_by_reward(unit: str, label: str) -> None:
    drawn = log_of_bars(lambda n: f"{tqdm(2048 * n, unit, label)[:-1]}, reward={n / 7:.2f}]")
    assert found_of_bars(drawn, set())[0][0] == ("environment steps", "the progress bar", 2048.0)
    of_video = log_of_bars(lambda n: f"{tqdm(2048 * n, unit, label)[:-1]}, loss={1 / n:.2f}]")
    assert bar_of_environment(of_video, set(), None) is None


def test_a_bar_that_moves_by_one_for_several_environments_is_named_and_not_used() -> None:
    """With eight environments it is no fewer steps than with one: nothing is slower."""
    rates, notes = found_of_bars(log_of_bars(lambda n: tqdm(2048 * n + n % 3)), {PLAN}, 8)
    assert rates == []
    assert notes == (
        "the progress bar of 100000 does not move on by multiples of 8 environments: "
        "it may not count the environment steps of all, and is not used",
    )


def test_skrls_bar_stays_one_of_all_environments_at_once() -> None:
    head = "[skrl:INFO] Environment wrapper: gymnasium"
    rates, _ = found_of_bars(log_of_bars(lambda n: tqdm(2048 * n), head), {PLAN}, 4)
    assert rates[0] == ("environment steps", "timesteps x environments", 8192.0)


def test_a_bar_of_each_epoch_is_no_plan_of_the_whole() -> None:
    drawn = log_of_bars(lambda n: tqdm(25_000 * (n % 5)))
    assert found_of_bars(drawn, {PLAN})[0] == [("optimizer steps", "the log's steps", 2048.0)]


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
