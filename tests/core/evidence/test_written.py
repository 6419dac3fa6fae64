"""Which series of a file show how a training learns."""

from __future__ import annotations

from gpudebug.core.evidence.written import chosen, restarts
from gpudebug.core.trainlog.logger_files import WrittenScalars


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
