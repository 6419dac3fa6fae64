"""Lines of stacks are read, and what is none counts for nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.probe_lines import line, start
from tests.support.stack_lines import FRAMES, told

from gpudebug.core.inside.stacks.lines import Stack, read_stacks


def test_a_line_is_read() -> None:
    record = read_stacks(start() + told() + '{"kind":"stacks","pid":1')
    assert record is not None
    (one,) = record.lines
    assert (one.process, one.of, one.start_s, one.end_s) == ((None, 1), "training", 2.0, 4.0)
    assert (one.seconds, one.cpu_s, one.samples) == (1.0, 0.5, 40)
    assert one.places == {
        Stack("data", tuple(FRAMES), 1, 7): (0.5, 0.4),
        Stack("other", tuple(FRAMES[:2]), 1, 9): (0.25, 0.0),
    }
    assert one.code == {(FRAMES[1], 7): "image.resize(size)", (FRAMES[1], 9): "time.sleep(1)"}


def test_nothing_is_nothing() -> None:
    assert read_stacks("") is None
    assert read_stacks(start() + line("beat", 1, 3, steps=1, counters={}, hist={}, stacks=[])) is None


def test_why_one_told_no_more_is_a_note() -> None:
    record = read_stacks(told() + line("stacks", 1, 5, of="training", why="MemoryError: x"))
    assert record is not None
    assert (len(record.lines), record.notes) == (1, ("stacks end early: MemoryError: x",))


WRONG: dict[str, dict[str, Any]] = {
    "no launch": {"t0": None},
    "of whom": {"of": "others"},
    "seconds that are none": {"s": "much"},
    "less than nothing": {"cpu": -1},
    "endless": {"since": float("inf")},
    "a count that is a truth": {"n": True},
    "seconds beyond all numbers": {"s": 10**400},
    "a count beyond them": {"n": 10**400},
    "a launch beyond them": {"t0": 10**400},
}


@pytest.mark.parametrize("more", WRONG.values(), ids=WRONG)
def test_a_line_that_is_none_counts_for_nothing(more: dict[str, Any]) -> None:
    assert read_stacks(told(**more)) is None


ODD: dict[str, object] = {
    "no list": 3,
    "a short one": [["data", [0], 7]],
    "another phase": [["sleep", [0], 7, 0.5, 0.4, 1]],
    "a list as its phase": [[[], [0], 7, 0.5, 0.4, 1]],
    "an object as its phase": [[{}, [0], 7, 0.5, 0.4, 1]],
    "seconds beyond all numbers": [["data", [0], 7, 10**400, 0.4, 1]],
    "no frames": [["data", None, 7, 0.5, 0.4, 1]],
    "no number": [["data", [0], "7", 0.5, 0.4, 1]],
    "no seconds": [["data", [0], 7, None, 0.4, 1]],
    "an object": [{"data": 1}],
}


@pytest.mark.parametrize("stacks", ODD.values(), ids=ODD)
def test_a_stack_that_is_none_is_left_out(stacks: object) -> None:
    record = read_stacks(told(stacks=stacks))
    assert record is not None
    assert record.lines[0].places == {}


def test_frames_that_are_not_there_are_left_out_and_the_line_with_them() -> None:
    record = read_stacks(told(stacks=[["data", [0, 7, -1, "x"], 12, 0.5, 0.9, 1]], frames=["a.py:f", 3]))
    assert record is not None
    # It cannot have run longer than it was there.
    assert record.lines[0].places == {Stack("data", ("a.py:f",), -1, 0): (0.5, 0.5)}


def test_half_a_character_is_replaced_for_it_could_not_be_written() -> None:
    names = ["a\ud800.py:f", "caf\udce9.py:g", "\U0001f600.py:h"]
    text = told(frames=names, code={"0:7": "x = '\udfff'"}, stacks=[["data", [0, 1, 2], 7, 0.5, 0.4, 1]])
    record = read_stacks(text + line("stacks", 1, 5, of="training", why="OSError: \ud9ab"))
    assert record is not None
    # A byte of a file's name that is no UTF-8 stays.
    frames = ("a\ufffd.py:f", "caf\udce9.py:g", "\U0001f600.py:h")
    assert record.lines[0].places == {Stack("data", frames, 0, 7): (0.5, 0.4)}
    assert record.lines[0].code == {("a\ufffd.py:f", 7): "x = '\ufffd'"}
    assert record.notes == ("stacks end early: OSError: \ufffd",)


def test_source_of_what_is_no_frame_is_left_out() -> None:
    record = read_stacks(told(code={"9:1": "x", "one": "x", "1:7": 3, "0:1": "y" * 500}))
    assert record is not None
    assert record.lines[0].code == {(FRAMES[0], 1): "y" * 120}


def test_a_line_that_is_too_long_is_not_read() -> None:
    assert read_stacks(told(code={"0:1": "x" * (1 << 16)})) is None
    assert json.loads(told())["kind"] == "stacks"
