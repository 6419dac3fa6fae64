"""What names mean."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.names import classify, phase_of, words


@pytest.mark.parametrize(
    ("name", "kind", "phase", "tier"),
    [
        ("loss", "loss", "", 0),
        ("train_loss_step", "loss", "train", 0),
        ("TrainLoss", "loss", "train", 0),
        ("lm loss value", "loss", "", 0),
        ("val_loss", "loss", "val", 0),
        ("Average loss", "loss", "", 0),
        ("total_loss", "loss", "", 0),
        ("avr_loss", "loss", "", 0),
        ("loss_cls", "loss", "", 1),
        ("CrossEntropyLoss", "loss", "", 1),
        ("critic_loss", "loss", "", 5),
        ("value_loss", "loss", "", 5),
        ("Mean value_function loss", "loss", "", 5),
        ("LossPi", "loss", "", 6),
        ("loss value", "loss", "", 0),
        ("policy_gradient_loss", "loss", "", 6),
        ("entropy_loss", "loss", "", 6),
        ("train-logloss", "loss", "train", 2),
        ("training's l0", "loss", "train", 2),
        ("xent", "loss", "", 2),
        ("cross-entropy", "loss", "", 2),
        ("learn", "loss", "train", 2),
        ("ppl", "loss", "", 4),
        ("train-auc", "", "train", 0),
        ("accuracy", "", "", 0),
        ("loss scale", "", "", 0),
        ("loss_weight", "", "", 0),
        ("best_loss", "", "", 0),
        ("Metric val_loss improved by", "", "val", 0),
        ("loss.py", "", "", 0),
        ("learning_rate", "", "", 0),
        ("ent_coef", "", "", 0),
        ("step", "step", "", 0),
        ("Iteration", "step", "", 1),
        ("max_epochs", "epochs", "", 0),
        ("warmup_epochs", "", "", 0),
        ("Critic_Steps", "step", "", 2),
        ("batch i", "step", "", 1),
        ("trainer/global_step", "step", "", 0),
        ("num_updates", "step", "", 0),
        ("Learning iteration", "step", "", 1),
        ("batch_idx", "step", "", 1),
        ("global batch size", "", "", 0),
        ("warmup_steps", "", "", 0),
        ("number of skipped iterations", "", "", 0),
        ("max_steps", "limit", "", 0),
        ("Total optimization steps", "limit", "", 0),
        ("total_timesteps", "other", "", 0),
        ("env_step", "other", "", 0),
        ("epoch", "epoch", "", 0),
        ("Num Epochs", "epochs", "", 0),
        ("data_s", "data", "", 0),
        ("data_time", "data", "", 0),
        ("reader_cost", "data", "", 0),
        ("Collection time", "data", "", 0),
        ("updt_s", "update", "", 0),
        ("learning", "update", "", 1),
        ("batch_cost", "total", "", 0),
        ("elapsed time per iteration ms", "total", "", 0),
        ("train_step_timing in s", "total", "train", 0),
        ("last_data_time", "", "", 0),
        ("time_elapsed", "", "", 0),
        ("total time", "", "", 0),
        ("forward_time", "part", "", 0),
        ("ups", "rate", "", 0),
        ("train_steps_per_second", "rate", "train", 0),
        ("eval_steps_per_second", "", "val", 0),
        ("tokens_per_second", "", "", 0),
        ("grad_norm", "gradient", "", 0),
        ("", "", "", 0),
    ],
)
def test_roles(name: str, kind: str, phase: str, tier: int) -> None:
    role = classify(name)
    assert (role.kind, role.phase if kind else phase) == (kind, phase)
    if kind:
        assert role.tier == tier


def test_a_duration_in_milliseconds_is_scaled() -> None:
    assert classify("ms/batch").scale == 1e-3


def test_a_loss_that_is_told_of_at_a_step() -> None:
    role = classify("average loss at step")
    assert (role.kind, role.about) == ("step", "average loss")


def test_words_and_phases() -> None:
    assert words("CELoss_trainVal2") == ["ce", "loss", "train", "val"]
    assert phase_of(["train", "and", "eval"]) == "val"
    assert phase_of(["batch"]) == ""
