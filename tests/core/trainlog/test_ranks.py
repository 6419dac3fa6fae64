"""Whose line it is."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.excerpts import course

from gpudebug.core.trainlog import LogReader, LogSummary
from gpudebug.core.trainlog.ranks import NumberedLines, find_ranks, order_of, rank_of
from gpudebug.core.trainlog.text import skeleton

LOSSES = course("falls", 5.0, 0.0, "ranks")[:12]


def rank(line: str) -> str:
    return rank_of(line.encode(), find_ranks(skeleton(line.encode()).decode())[1])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[default3]:step 10 loss 2.5", "3"),
        ("[rank10]: step 10 loss 2.5", "10"),
        ("[trainer1]:step 10 loss 2.5", "1"),
        ("[1,2]<stdout>:step 10 loss 2.5", "2"),
        ("[2024-01-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, loss=2.5", "0"),
        ("2022-02-08 11:02:01,303 INFO [train.py:529] (1/2) Epoch 11, batch 50, loss[loss=0.45]", "1"),
        ("2023-01-30 18:47:07,107 DEBUG TRAIN Batch 4/203700 loss 12.6 lr 0.0003 rank 2", "2"),
        ('{"rank": 1, "step": 10, "loss": 2.5}', "1"),
        ("GPU 1 | step 10 loss 2.5", "1"),
        ("Rank 3, step 10, loss 2.5", "3"),
        ("0: [rank0]: step 10 loss 2.5", "0"),
        ("1: [default0]: step 10 loss 2.5", "1/0"),
        ("[default1]:[rank1]: Traceback", "1"),
        ("(RayTrainWorker pid=1234, ip=10.0.0.2) step 10 loss 2.5", "pid 1234"),
        ("(RayTrainWorker pid=1234) [rank2] step 10 loss 2.5", "2"),
        ("step 10 loss 2.5", ""),
        ("image_to_text_mean_rank: 2.3 loss 0.5", ""),
        ("mean rank 12, loss 0.5", ""),
        ("Epoch: [3] (5/10) Loss: 2.5", ""),
        ("3: iter 10: loss 2.5", ""),  # It may be a step: only the lines together tell.
    ],
)
def test_labels(line: str, expected: str) -> None:
    assert rank(line) == expected


def test_labels_are_no_numbers_of_the_line() -> None:
    text, _ = find_ranks("0: [rank0]: step 00 loss 0.0 rank 0")
    assert text == "            step 00 loss 0.0 ~~~~~~"


def test_the_lowest_rank_comes_first() -> None:
    assert sorted(["10", "1/0", "0/1", "2"], key=order_of) == ["0/1", "1/0", "2", "10"]


@pytest.mark.parametrize(
    ("numbers", "labels"),
    [
        ([0, 1] * 6, True),
        ([2, 0, 1, 1, 0, 2, 0, 2, 1], True),
        ([3] * 9, False),
        (list(range(30)), False),
        ([*range(20)] * 3, False),  # Iterations of three folds.
        ([0, 10, 20, 30] * 3, False),
        ([10, 10, 20, 20, 30, 30], False),
    ],
)
def test_numbers_ahead_of_lines(numbers: list[int], labels: bool) -> None:
    lines = NumberedLines()
    for number in numbers:
        lines.add(number)
    assert lines.labels is labels


def read(template: str, apart: float = 3.0, count: int = 3) -> LogSummary:
    random, reader = Random(7), LogReader()
    for step, loss in enumerate(LOSSES):
        for one in random.sample(range(count), count):
            line = template.format(rank=one, step=step, loss=loss * (1 + apart * one))
            reader.feed(f"{line}\n".encode())
    return reader.summary()


@pytest.mark.parametrize(
    "label",
    [
        "[rank{rank}]: ",
        "[default{rank}]:",
        "{rank}: ",
        " {rank}: [rank{rank}]: ",
        "[RANK {rank}] ",
        "{rank}: [default0]: ",
    ],
)
def test_rank_0_is_judged_by_its_own_losses(label: str) -> None:
    found = read(label + "step {step} loss {loss:.4f}")
    assert (found.first, found.last, found.points) == (round(LOSSES[0], 4), round(LOSSES[-1], 4), 12)
    assert (found.loss_of, str(found.trend), found.steps) == ("rank 0 of 3", "CONVERGING", 12)
    assert [point.step for point in found.loss] == list(range(12))


def test_without_rank_0_the_lowest_one_is_judged() -> None:
    found = read("[rank{rank}]: step {step} loss {loss:.4f}".replace("{rank}", "1{rank}"))
    assert found.loss_of == "rank 10 of 3"


def test_a_rank_that_prints_little_does_not_speak_for_all() -> None:
    reader = LogReader()
    reader.feed(b"[rank0]: step 1 loss 9.0\n")
    for step, loss in enumerate(LOSSES):
        reader.feed(f"[rank1]: step {step} loss {loss:.4f}\n".encode())
    assert (reader.summary().loss_of, reader.summary().points) == ("rank 1 of 2", 12)


def test_without_labels_the_mean_is_judged() -> None:
    found = read("step {step} loss {loss:.4f}", count=2)
    assert found.loss_of == "2 ranks without labels: their mean is judged"
    assert [round(p.value, 2) for p in found.loss] == [round(2.5 * loss, 2) for loss in LOSSES]


def test_a_rank_that_loses_its_loss_is_told_whoever_speaks() -> None:
    reader = LogReader()
    for step, loss in enumerate(LOSSES):
        reader.feed(f"[rank0]: step {step} loss {loss:.4f}\n[rank1]: step {step} loss nan\n".encode())
    assert str(reader.summary().trend) == "NAN"


def test_one_process_needs_no_word() -> None:
    assert read("[rank{rank}]: step {step} loss {loss:.4f}", count=1).loss_of is None


def test_many_ranks_do_not_push_the_first_one_out() -> None:
    reader = LogReader()
    for one in range(200, -1, -1):
        reader.feed(f"[rank{one}]: step 1 loss 2.5\n[rank{one}]: step 2 loss 1.5\n".encode())
    assert (reader.summary().loss_of or "").startswith("rank 0 of ")
