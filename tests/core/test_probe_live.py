"""Steps of a training that goes on."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import beat, start, training

from gpudebug.core.probe.live import LiveSteps

TEXT = training(steps=40, every=4).encode()


@given(st.lists(st.integers(0, len(TEXT)), max_size=8))
def test_however_it_arrives(cuts: list[int]) -> None:
    live = LiveSteps()
    marks = [0, *sorted(cuts), len(TEXT)]
    for begin, end in pairwise(marks):
        live.feed(TEXT[begin:end])
    assert live.steps == 40


def test_the_process_that_made_the_most_and_nothing_before_the_first() -> None:
    live = LiveSteps()
    live.feed((start() + "loss 3\n[1]\n").encode())
    assert live.steps is None
    live.feed((beat(1, 3, 5) + beat(2, 3, 4) + '{"kind": "beat", "pid": 1, "steps": "9"}\n').encode())
    assert live.steps == 5
    live.feed(b"x" * 100_000)
    live.feed(b"\n" + beat(1, 4, 9).encode())
    assert live.steps == 9
