"""Progress bars in lines."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.bars import take_bars


@pytest.mark.parametrize(
    ("line", "label", "phase", "counts"),
    [
        ("Epoch 0:  00%|##  | 00/000 [00:00<00:00,  0.00it/s]", "epoch", "", ""),
        ("Validating:  00%|##  | 00/000 [00:00<00:00,  0.00it/s]", "validating", "val", ""),
        ("loss: 0.000 | test_accuracy:  nan%:  00%|##  | 0/00 [00:00<00:00,  0.00it/s]", "", "", ""),
        ("Training epochs on cpu:  00%|##  | 0/00 [00:00<00:00,  0.00s/epoch]", "training epochs on cpu", "train", "epoch"),
        (" 00%|##  | 0/00 [00:00<00:00, 00.00batch/s]", "", "", "batch"),
        ("frames:  00%|##  | 0/00 [00:00<00:00, 00.00it/s]", "frames", "", "env"),
    ],
)  # fmt: skip
def test_what_a_bar_says_of_itself(line: str, label: str, phase: str, counts: str) -> None:
    rest, (bar,) = take_bars(line)
    assert (bar.label, bar.phase, bar.counts) == (label, phase, counts)
    assert len(rest) == len(line) and "[" not in rest


def test_what_is_done_stands_at_the_beginning_of_the_line() -> None:
    line = "train: Scanning /home/0/a/long/way/to/the/labels/of/plates... 000 images, 0 backgrounds, 0 corrupt: 000%|##| 000/000 [00:00<00:00, 0000.0it/s]"
    assert take_bars(line)[1] == ()
