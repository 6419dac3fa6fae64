"""The figures of learning that one run's log shows beside its loss."""

from __future__ import annotations

from gpudebug.core.evidence.learning import series
from gpudebug.core.trainlog.reader import LogReader


def test_the_reward_of_the_log_and_the_users_patterns() -> None:
    reader = LogReader({"success": r"success (?P<value>\S+)"})
    for n in range(1, 9):
        text = f"total_timesteps: {100 * n}\nMean reward: {n}.5\nMean reward/a: {n}\nsuccess 0.{n}\n"
        reader.feed(text.encode(), float(n))
    reward, own = series(reader.summary(0))
    assert (reward.metric, reward.name, reward.points, reward.over) == (
        "reward",
        "Mean reward",
        8,
        "total_timesteps",
    )
    assert (reward.first, reward.last, reward.finite) == (1.5, 8.5, True)
    assert (reward.curve[0], reward.curve[-1]) == ((100.0, 1.5), (800.0, 8.5))
    assert (own.metric, own.last) == ("log:success", 0.8)


def test_a_reward_that_is_no_number_is_kept_as_such() -> None:
    reader = LogReader()
    for n in range(1, 6):
        value = "nan" if n == 4 else n
        reader.feed(f"total_timesteps: {n}\nMean reward: {value}\n".encode(), float(n))
    (reward,) = series(reader.summary(0))
    assert (reward.finite, reward.last) == (False, 5.0)


def test_whose_value_a_list_by_policy_holds() -> None:
    reader = LogReader()
    for n in range(1, 6):
        reader.feed(f"Total num frames: {n}00\nAvg episode reward: [(0, '{n}.25')]\n".encode(), float(n))
    (reward,) = series(reader.summary(0))
    assert (reward.first, reward.last) == (1.25, 5.25)


def test_evaluations_show_learning_if_the_training_prints_no_reward() -> None:
    reader = LogReader()
    for n in range(1, 6):
        reader.feed(f"Eval num_timesteps={n}00, episode_reward={n}.50 +/- 1.0\n".encode(), float(n))
    (reward,) = series(reader.summary(0))
    assert (reward.first, reward.last) == (1.5, 5.5)
