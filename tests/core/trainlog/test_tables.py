"""Heads of tables and the rows below them."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.tables import find_header, find_rows, row_like
from gpudebug.core.words import Trend


@pytest.mark.parametrize(
    ("line", "sign", "count"),
    [
        ("epoch     train_loss  valid_loss  accuracy  time    ", " ", 5),
        ("step,loss,lr", ",", 3),
        ("| epoch | loss |", "|", 2),
        ("Iterat #Evals   function value  axis ratio  t[m:s]", " ", 7),
        ("epoch   accuracy   seconds", " ", 3),
        ("E    #       LOSS TOK0VEC  LOSS TAGGER  SCORE", " ", 5),
    ],
)
def test_heads(line: str, sign: str, count: int) -> None:
    found = find_header(line)
    assert found is not None
    assert (found[0], len(found[1])) == (sign, count)


@pytest.mark.parametrize(
    "line",
    [
        "the loss is computed per step",
        "loss: 0.0",
        "a,b,c",
        "name  params",
        "loss",
        "epoch  accuracy",
        "step  by step",
    ],
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


def test_losses_that_are_sums_since_the_row_before_are_judged_by_the_step() -> None:
    """spaCy's table: a row every five times as many steps sums five times as much."""
    head = "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE\n---  ------  ------------  --------  ------  ------\n"
    found = []
    for every in (20, 100):
        rows = [
            (step, sum(50 / (1 + s) for s in range(max(0, step - every), step + 1)))
            for step in range(0, 601, every)
        ]
        reader = LogReader()
        reader.feed(
            (
                head + "".join(f"  0  {s:6}          1.00  {v:8.2f}   90.00    0.90\n" for s, v in rows)
            ).encode()
        )
        found.append(reader.summary())
    assert [(one.trend, one.summed, one.steps) for one in found] == [(Trend.CONVERGING, True, 601)] * 2
    few, many = (next(p.value for p in one.loss if p.step == 500) for one in found)
    assert many == pytest.approx(few, rel=0.3)
    assert found[1].last == pytest.approx(sum(50 / (1 + s) for s in range(500, 601)), abs=0.01)
