"""What follows from a skeleton: the same for all lines that share it, and bounded."""

from __future__ import annotations

import copy
import re
import sys
from types import FrameType

import pytest

from gpudebug.core.trainlog.learned import LONGEST_KEPT, MAX_HELD, LearnedLines, topics
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.text import _FULL, _TIME, skeleton

STAMP = (_TIME.pattern, _FULL.pattern)


@pytest.mark.parametrize(
    ("line", "speaks"),
    [
        (b"step 12: loss 2.31, time 46.10ms", False),
        (b"{'loss': 2.31, 'grad_norm': 0.12, 'epoch': 0.5}", False),
        (b"saving checkpoint to out/ckpt-120.pt", True),
        (b"resuming from step 120", True),
        (b"using cached features from 12 files", True),
        (b"switching to stage 2", True),
        (b"Evaluation:", True),
        (b"batch size 32", True),
        (b'  File "train.py", line 12, in main', True),
        (b"train.py:12: UserWarning: slow", True),
        (b"train.py: error: unrecognized arguments: --lr", True),
    ],
)
def test_only_lines_of_words_are_listened_to(line: bytes, speaks: bool) -> None:
    assert LearnedLines().learn(skeleton(line)).speaks is speaks


def test_what_is_kept_is_bounded_and_shared_by_copies() -> None:
    lines = LearnedLines()
    for at in range(2 * MAX_HELD):
        lines.learn(b"name%s loss 0.00" % bytes(97 + int(c) for c in str(at)))
        assert lines.held <= MAX_HELD + LONGEST_KEPT
    assert len(lines) < 2 * MAX_HELD
    assert copy.deepcopy(lines) is lines
    lines.learn(b"loss 0." + b"0" * LONGEST_KEPT)
    assert all(len(key) <= LONGEST_KEPT for key in lines)


def test_a_line_is_read_alike_when_its_skeleton_is_known() -> None:
    """The second time neither colours, blocks of a bar nor a traceback behind text may be taken for text."""
    bar = "  5%|█▌   | {}/100 [00:0{}<01:00,  1.50it/s, loss={:.2f}]\r"
    coloured = "\x1b[32mstep {}: loss {:.2f}\x1b[0m\n"
    drawn, lines = LogReader(), LogReader()
    for at in range(1, 9):
        drawn.feed(bar.format(at, at, 2 - at / 10).encode())
        lines.feed(coloured.format(at, 2 - at / 10).encode())
    for found in (drawn.summary(), lines.summary()):
        assert (found.steps, found.first, found.last) == (8, 1.9, 1.2)
    lines.feed(
        b'step 9: loss 1.10 Traceback (most recent call last):\n  File "a.py", line 3\nValueError: no\n'
    )
    lines.feed(b"step 10: loss 1.00 Traceback (most recent call last):\n")
    assert (lines.summary().steps, lines.summary().last) == (10, 1.0)
    assert lines.summary(1).failure is not None


@pytest.mark.parametrize(
    "line",
    [
        "step {}: loss 2.31, time 46.10ms, lr 1.00e-04\n",
        "{{'loss': 2.3{}, 'grad_norm': 1.5275, 'learning_rate': 1.9e-05, 'epoch': 0.05}}\n",
        "\rEpoch 1:  10%|█   | {}/1000 [00:04<00:42, 21.08it/s, loss=3.42, lr=1.0e-04]",
        "2026-03-09 10:00:02 - INFO - Epoch(train) [1][{}/5000] lr: 1.0e-02 time: 0.21 loss: 3.59\n",
    ],
)
def test_a_known_line_runs_no_expression_but_that_of_its_stamp(line: str) -> None:
    """A log of a million lines would take minutes for each that runs a few."""
    reader, ran = LogReader(), list[str]()
    for at in range(200, 230):
        reader.feed(line.format(at).encode())

    def watch(_frame: FrameType, event: str, called: object) -> None:
        of = getattr(called, "__self__", None)
        if event == "c_call" and isinstance(of, re.Pattern) and of.pattern not in STAMP:
            ran.append(str(of.pattern))

    sys.setprofile(watch)
    try:
        for at in range(230, 260):
            reader.feed(line.format(at).encode())
    finally:
        sys.setprofile(None)
    assert ran == []
    assert reader.loss is not None


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("step 7 loss 0.5 412.3 samples/s", ("samples",)),
        ("{'train_samples_per_second': '285.8', 'loss': 1}", ("samples",)),
        ("Speed: 118.2 img/sec", ("samples",)),
        ("throughput 12 sequences per second", ("samples",)),
        ("effective batch size: 16 x 2 = 32", ("batch",)),
        ("batch_size=8", ("batch",)),
        ("Inference latency: 12.3 ms", ("latency",)),
        ("forward pass time: 3 ms", ("latency",)),
        ("batch size 8: 412 samples/s, latency 19 ms", ("samples", "batch", "latency")),
        ("step 7 loss 0.5 12.3 it/s", ()),
        ("downloading samples", ()),
    ],
)
def test_what_a_line_speaks_of(line: str, about: tuple[str, ...]) -> None:
    assert topics(line.encode()) == about
