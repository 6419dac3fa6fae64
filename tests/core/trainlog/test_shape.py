"""Where a line's numbers stand and what they are called."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trainlog.shape import Shape, read_shape
from gpudebug.core.trainlog.text import plain, skeleton


def shape_of(line: str) -> tuple[Shape | None, str]:
    text = plain(line.encode())
    return read_shape(skeleton(text).decode()), text.decode()


def fields(line: str) -> list[tuple[str, str, str]]:
    """(kind, name, value) of each field."""
    shape, text = shape_of(line)
    assert shape is not None
    return [
        (f.role.kind, f.name, "/".join(text[a:b] for a, b in (f.value, f.total) if (a, b) != (0, 0)))
        if f.total
        else (f.role.kind, f.name, text[f.value[0] : f.value[1]])
        for f in shape.fields
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("step 10/200 | train loss 1.39", [("step", "step", "10/200"), ("loss", "train loss", "1.39")]),
        ("{'loss': '3.757', 'epoch': '0.05'}", [("loss", "loss", "3.757"), ("epoch", "epoch", "0.05")]),
        ("batch 20 of 60, loss so far 1.773", [("step", "batch", "20/60"), ("loss", "loss so far", "1.773")]),
        ("Loss: 1.12 (1.46)", [("loss", "loss", "1.12")]),
        ("loss: 0.3357Traceback", [("loss", "loss", "0.3357")]),
        ("| loss | 7.57 |", [("loss", "loss", "7.57")]),
        ("global step 5: loss = nan", [("step", "global step", "5"), ("loss", "loss", "nan")]),
        ("number of nan iterations:   0 | lm loss: 4.4E+00 |", [("loss", "lm loss", "4.4E+00")]),
        (
            "tot[loss=0.5], loss: tensor(0.25, grad=1)",
            [("loss", "tot loss", "0.5"), ("loss", "loss", "0.25")],
        ),
        ("loss 50%", [("loss", "loss", "50")]),
        ("accuracy: 970/1000 (97%) loss 1", [("loss", "loss", "1")]),
        ("0.5 / 0.7 loss", [("loss", "loss", "0.7")]),
        ("59.77/s step_time 20ms", [("total", "step_time", "20")]),
    ],
)
def test_fields(line: str, found: list[tuple[str, str, str]]) -> None:
    assert fields(line) == found


@pytest.mark.parametrize(
    ("line", "label", "n", "total", "rate"),
    [
        (" 45%|###  | 27/60 [00:01<00:01, 22.87it/s, loss=0.1]", "", "27", "60", "22.87"),
        ("Epoch 2: 100%|██| 60/60 [00:02<00:00, 22.8it/s]", "epoch", "60", "60", "22.8"),
        ("Training:  84%|# | 67/80 [00:40<00:13,  1.03s/step]INFO step:67", "training", "67", "80", "1.03"),
        ("Epoch 0/2  ━━━ 27/60 0:00:01 • 0:00:01 22.4it/s loss: 0.1", "epoch", "27", "60", "22.4"),
        ("  3% ━━ 168/12,000  [ 0:00:00 < 0:00:14 , 908 it/s ]", "", "168", "12,000", "908"),
        ("Training: 120it [00:05, 23.1it/s]", "training", "120", None, "23.1"),
        (" 0%|  | 0/200 [00:00<?, ?it/s]", "", "0", "200", None),
    ],
)
def test_bars(line: str, label: str, n: str, total: str | None, rate: str | None) -> None:
    shape, text = shape_of(line)
    assert shape is not None and shape.bars
    bar = shape.bars[0]
    cut = [None if span is None else text[span[0] : span[1]] for span in (bar.n, bar.total, bar.rate)]
    assert (bar.label, *cut) == (label, n, total, rate)


@pytest.mark.parametrize(
    "line",
    [
        "Downloading: 45%|## | 12.3M/45.6M [00:01<00:01, 9.5MB/s]",
        "Map: 100%|##| 1000/1000 [00:00<00:00, 5000 examples/s]",
        "Loading checkpoint shards: 100%|##| 2/2 [00:01<00:00, 1.5it/s]",
    ],
)
def test_bars_of_preparations_are_no_positions(line: str) -> None:
    shape, _ = shape_of(line)
    assert shape is None or not shape.bars


def test_phases() -> None:
    for line in (
        "Test: [5/5] Loss: 2.4",
        "Epoch(val) [1][10/20] loss: 1",
        "validation loss at iteration 20 | loss: 2",
    ):
        shape, _ = shape_of(line)
        assert shape is not None
        assert {f.role.phase for f in shape.fields if f.role.kind == "loss"} == {"val"}, line


@pytest.mark.parametrize("line", ["", "plain text", "took 5 minutes", "/a/b/c.py:12: UserWarning: x"])
def test_lines_that_say_nothing(line: str) -> None:
    assert shape_of(line)[0] is None


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300))
def test_spans_lie_inside_the_line(line: str) -> None:
    shape, text = shape_of(line)
    if shape is not None:
        spans = [f.value for f in shape.fields] + [bar.n for bar in shape.bars]
        assert all(0 <= a < b <= len(text) for a, b in spans)


HOSTILE = (
    "0%|" * 1300, "1/" * 2000 + " loss 1", "loss " + "1.1" * 1300, "1,111" * 800, "(" + "a" * 4000 + " loss 1",
    "a/" * 2000 + "b.py:1 loss", "0:00" * 1000 + " loss", "[rank 0" * 500 + "loss 1", "- " * 2000 + "loss 1",
    "loss" + " " * 4000 + "1", "{" * 4000 + "loss 1", "tensor(" * 500 + "1 loss", "0%" * 2000 + "loss",
)  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE, ids=[line[:12] for line in HOSTILE])
def test_hostile_lines_take_no_time_to_speak_of(line: str) -> None:
    text = skeleton(plain(line.encode())).decode()
    start = time.process_time()
    read_shape(text)
    assert time.process_time() - start < 1.0
