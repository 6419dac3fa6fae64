"""Steps of a training that goes on."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import beat, start, training

from gpudebug.core.inside.probe.live import Lately, LiveSteps

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


def test_the_distance_of_two_reports_is_of_one_clock() -> None:
    """Another node's clock counts from its own boot: a stall would be waited for as long as it was up."""
    live = LiveSteps()
    for at, steps, host in ((3, 5, "a"), (5, 9, "a"), (90_000, 10, "b"), (90_003, 14, "b")):
        text = beat(1, at, steps).replace('"pid": 1', f'"pid": 1, "host": "{host}"')
        live.feed(text.encode())
        assert live.gap <= 3
    assert (live.steps, live.gap) == (14, 3)


def lately(text: str) -> Lately:
    found = Lately()
    found.feed(text.encode())
    return found


def test_what_a_training_did_lately() -> None:
    found = lately(training(step_s=0.1, steps=300, per_step={"data_s": 0.04}))
    assert found.steps == 300
    assert found.steps_per_s == pytest.approx(10)
    assert found.data_wait_share == pytest.approx(0.4)


def test_lately_is_the_last_minute() -> None:
    slow = [beat(1, 2 + n, 10 * n, data_s=0.9 * n) for n in range(100)]
    fast = [beat(1, 102 + n, 1000 + 40 * n, data_s=90.0) for n in range(100)]
    found = lately("".join([start(), *slow, *fast]))
    assert found.steps_per_s == pytest.approx(40) and found.data_wait_share == 0.0


def test_rare_beats_are_enough() -> None:
    found = lately(beat(1, 100, 10, data_s=1.0) + beat(1, 400, 40, data_s=151.0))
    assert found.steps_per_s == pytest.approx(0.1) and found.data_wait_share == pytest.approx(0.5)


UNKNOWN = {
    "nothing": "",
    "one beat": beat(1, 5, 10, data_s=1.0),
    "no counter": beat(1, 5, 10) + beat(1, 6, 20),
    "no numbers": beat(1, 5, 10, data_s=float("nan")) + beat(1, 6, 20, data_s=-1.0),
    "counters that are none": '{"kind": "beat", "pid": 1, "t": 5, "steps": 3, "counters": [1]}\n' * 2,
}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_a_wait_that_nobody_tells_is_unknown(text: str) -> None:
    assert lately(text).data_wait_share is None


def test_the_process_that_made_the_most_iterations_tells() -> None:
    text = "".join(
        beat(1, n, 10 * n, data_s=0.1 * n) + beat(2, n, 9 * n, data_s=0.9 * n) for n in range(1, 9)
    )
    assert lately(text).data_wait_share == pytest.approx(0.1)


def test_a_line_that_was_cut_counts_for_nothing() -> None:
    found = lately(beat(1, 5, 10, data_s=1.0) + beat(1, 6, 20)[:30])
    found.feed((beat(1, 7, 1)[9:] + beat(1, 8, 40, data_s=2.5)).encode(), torn=True)
    assert found.steps == 40 and found.data_wait_share == pytest.approx(0.5)
