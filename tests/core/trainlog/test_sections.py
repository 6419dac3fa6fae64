"""Lines that announce training or evaluation, and pages in a log."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.sections import LONGEST_PAGE, LogSection, PageLines, announced


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
        ("Engine:Epoch[0] Complete. Time taken: 00:00:00.000", "whole"),
        ("EPOCH 0: training on 000 words took 0.0s", "whole"),
        ("Validation epoch 0 finished", "train"),
        ("loss: 0.0Batch 0: Invalid loss, terminating training", "stopped"),
        ("<!DOCTYPE html>", "page"),
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


def test_a_page_ends_by_its_tag_or_its_length() -> None:
    pages = PageLines()
    assert [pages.holds(said, line) for said, line in (("", b"a"), ("page", b"<html>"), ("", b"b"))] == [
        False,
        True,
        True,
    ]
    assert (pages.holds("", b"</body></HTML>"), pages.holds("", b"step 1"), pages.count) == (True, False, 1)
    assert pages.holds("page", b"<html>")
    assert sum(pages.holds("", b"x") for _ in range(2 * LONGEST_PAGE)) == LONGEST_PAGE - 1
