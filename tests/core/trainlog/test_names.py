"""What names mean."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.names import classify, find_header, find_rows, phase_of, row_like, words
from gpudebug.core.trainlog.reader import LogReader


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
        ("loss.py", "", "", 0),
        ("learning_rate", "", "", 0),
        ("ent_coef", "", "", 0),
        ("step", "step", "", 0),
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


@pytest.mark.parametrize(
    ("line", "sign", "count"),
    [
        ("epoch     train_loss  valid_loss  accuracy  time    ", " ", 5),
        ("step,loss,lr", ",", 3),
        ("| epoch | loss |", "|", 2),
        ("E    #       LOSS TOK0VEC  LOSS TAGGER  SCORE", " ", 5),
    ],
)
def test_heads(line: str, sign: str, count: int) -> None:
    found = find_header(line)
    assert found is not None
    assert (found[0], len(found[1])) == (sign, count)


@pytest.mark.parametrize(
    "line", ["the loss is computed per step", "loss: 0.0", "a,b,c", "name  params", "loss"]
)
def test_no_heads(line: str) -> None:
    assert find_header(line) is None


def test_rows() -> None:
    assert row_like("0  0.0") and row_like("| 0 |") and not row_like("loss 0.0")
    assert [(sign, len(cells)) for sign, cells in find_rows("0,0.0,0.0", False)] == [(",", 3)]


HEAD = "epoch     train_loss  valid_loss  accuracy  time    \n"


def first_and_last(text: str) -> tuple[float | None, float | None, int]:
    reader = LogReader()
    reader.feed(text.encode())
    summary = reader.summary()
    return summary.first, summary.last, summary.points


def test_wide_numbers_that_touch_are_cut_at_their_columns() -> None:
    rows = "0         59392.3906258.889188    0.184896  00:00     \n1         780.906921  4.164494    0.1848    00:00     \n"
    assert first_and_last(HEAD + rows) == (59392.390625, 780.906921, 2)


def test_rows_of_another_table_are_left_out() -> None:
    text = HEAD + "0         0.65        0.33        0.91      00:00\n  all   4   17   0.62   0.58\n7 8 9\n"
    assert first_and_last(text) == (0.65, 0.65, 1)


def test_a_row_before_its_bar() -> None:
    text = (
        "      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
        "\r        1/2      0.52G      3.312      4.212         12        640: 100%|██| 4/4 [00:01<00:00,  3.2it/s]"
        "\r        2/2      0.52G      2.312      3.212         12        640: 100%|██| 4/4 [00:01<00:00,  3.2it/s]\n"
    )
    assert first_and_last(text) == (3.312, 2.312, 2)
