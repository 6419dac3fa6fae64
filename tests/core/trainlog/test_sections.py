"""Lines that announce training or evaluation."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.sections import LogSection, announced


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Eval begin...", "val"),
        ("***** Running Evaluation *****", "val"),
        (" > EVALUATION ", "val"),
        ("0000-00-00 00:00:00.000 INFO: Evaluating valid_Default ...", "val"),
        ("  --> EVAL PERFORMANCE", "val"),
        (" > TRAINING (0000-00-00)", "train"),
        ("Evaluation finished", "train"),
        ("Started training, reporting errors on validation set", "reported"),
        ("Evaluation Hyper Parameters:", ""),
        ("eval_batch_size: 00", ""),
        ("Validation loss: 0.000", ""),
        ("the model is evaluated on every thousandth step of the training run by default", ""),
    ],
)
def test_what_a_line_announces(line: str, said: str) -> None:
    assert announced(line) == said


def test_evaluation_is_believed_in_a_log_that_announces_training_too() -> None:
    section = LogSection()
    section.read("val", begun=True)
    assert section.phase == ""
    section.read("train", begun=True)
    section.read("val", begun=True)
    assert section.phase == "val"
    section.read("train", begun=True)
    assert section.phase == ""
