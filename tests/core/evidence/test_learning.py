"""The figures of learning that one run's log shows beside its loss."""

from __future__ import annotations

import pytest

from gpudebug.core.evidence.learning import chosen, restarts, series
from gpudebug.core.inside.probe import TrainingProcess
from gpudebug.core.trainlog.logger_files import WrittenScalars
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


@pytest.mark.parametrize(("optimizers", "known"), [(["Adam"], True), ([], True), (["G", "D"], False)])
def test_the_loss_of_backward_is_that_of_one_objective(optimizers: list[str], known: bool) -> None:
    losses = [(step, 3.0 / step) for step in range(1, 40)]
    process = TrainingProcess(1, 0.0, 0.0, losses=losses, facts={"optimizers": [*optimizers]})
    found = series(LogReader().summary(0), (), process)
    assert [(one.source, one.last) for one in found] == [("backward()", 3.0 / 39)] * known


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


def scalars(*names: str) -> WrittenScalars:
    found = WrittenScalars()
    for name in names:
        for n in range(5):
            found.add(name, n, float(n))
    return found


def test_rewards_before_losses_and_no_loss_of_a_critic() -> None:
    found = scalars("losses/value_loss", "charts/SPS", "train/loss", "charts/episodic_return", "val_loss")
    assert [(one.metric, one.name) for one in chosen(found, "TensorBoard")] == [
        ("reward", "charts/episodic_return"),
        ("loss", "train/loss"),
    ]


def test_what_a_learner_logs_of_its_update_is_no_loss() -> None:
    """As CleanRL's PPO names it."""
    names = ["value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac"]
    assert chosen(scalars(*(f"losses/{n}" for n in names), "losses/explained_variance"), "x") == []
    assert [one.name for one in chosen(scalars("losses/train_loss"), "x")] == ["losses/train_loss"]


def test_names_of_known_trainers() -> None:
    names = ["Reward / Total reward (mean)", "rewards/step", "Train/mean_reward", "rollout/ep_rew_mean"]
    assert {one.name for one in chosen(scalars(*names), "x")} == set(names)


def test_steps_that_begin_again_show_no_course_and_are_named() -> None:
    """An earlier run's rows, to which this run appended; a validation that steps back a little is none."""
    found = WrittenScalars()
    for step in (10, 20, 30, 10, 20, 30):
        found.add("train_loss", step, 1 / step)
    for step in (10, 20, 15, 30):
        found.add("reward", step, 1.0)
    assert [one.name for one in chosen(found, "log.csv")] == ["reward"]
    assert restarts(found, "log.csv") == (
        "log.csv: the steps of train_loss begin again at 10 after 30: it is not used"
    )
    assert restarts(scalars("reward", "train_loss"), "log.csv") is None


def test_too_few_values_show_no_course() -> None:
    found = WrittenScalars()
    found.add("reward", 0, 1.0)
    assert chosen(found, "x") == []


def test_a_name_that_would_print_more_than_itself_is_left_out() -> None:
    names = ["loss\n\n## ", "\x1b[2loss", "train\u2028loss", "loss"]
    assert [one.name for one in chosen(scalars(*names), "x")] == ["loss"]
