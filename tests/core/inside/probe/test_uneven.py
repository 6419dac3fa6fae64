"""Steps far above the median, and a part of a step that grows with the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.probe_lines import bucket, line, start, training

from gpudebug.core.inside.probe import evidence_of
from gpudebug.core.inside.probe.processes import read_probe
from gpudebug.core.records import ProbeEvidence, Window


def figures(text: str, window: Window | None = None) -> ProbeEvidence:
    found = evidence_of(read_probe(text), window)
    assert found is not None
    return found


def _uneven(step_s: float, long_s: float, every: int, steps: int = 300) -> str:
    """Every so many iterations one is long; a beat each."""
    lines, at = [start(1, 2.0)], 2.0
    for done in range(1, steps + 1):
        took = long_s if done % every == 0 else step_s
        at += took
        lines.append(line("beat", 1, at, steps=done, counters={}, hist={bucket(took): 1}, opt={"0": done}))
    return "".join(lines)


@pytest.mark.parametrize(
    ("long_s", "every", "share", "one_in"),
    [(1.1, 10, 0.5, 10), (0.6, 50, 0.0909, 50), (0.14, 10, 0.0, None)],
)
def test_time_is_lost_in_steps_far_above_the_median(
    long_s: float, every: int, share: float, one_in: float | None
) -> None:
    """Of steps of 100 ms."""
    found = figures(_uneven(0.1, long_s, every), None)
    # The window may begin or end a long step earlier or later.
    assert found.stall_share == pytest.approx(share, rel=0.1)
    assert found.stall_every_steps == (None if one_in is None else pytest.approx(one_in, rel=0.05))


def test_stalls_of_a_few_steps_are_not_known() -> None:
    found = figures(
        training(step_s=2.0, steps=10, every=1), Window(start_s=12, end_s=18, samples=9, rule="steps")
    )
    assert (found.stall_share, found.stall_every_steps) == (None, None)


def _steps(*, forward: Callable[[int], float], other: Callable[[int], float], steps: int = 400) -> str:
    """A beat an iteration; its forward, and what is in no phase, take so long by its number."""
    lines, at, spent = [start(1, 2.0)], 2.0, 0.0
    for done in range(1, steps + 1):
        took = forward(done) + other(done)
        at, spent = at + took, spent + forward(done)
        told = {"forward_s": spent}
        lines.append(line("beat", 1, at, steps=done, counters=told, hist={bucket(took): 1}, opt={"0": done}))
    return "".join(lines)


def _same(_: int) -> float:
    return 0.05


@pytest.mark.parametrize(
    ("forward", "other", "part"),
    [
        (_same, lambda n: 0.02 + 0.0004 * n, "other"),
        (lambda n: 0.02 + 0.0004 * n, _same, "forward"),
        # A neighbour that comes slows both parts alike.
        (lambda n: 0.05 if n < 200 else 0.1, lambda n: 0.05 if n < 200 else 0.1, None),
        (_same, lambda n: 0.2 if 100 < n < 200 else 0.05, None),
        # The queue of a loader that was full at the start.
        (_same, lambda n: 0.02 if n < 100 else 0.06, None),
    ],
    ids=["host code", "forward", "a neighbour", "a burst", "once"],
)
def test_a_part_that_grows_with_the_run(
    forward: Callable[[int], float], other: Callable[[int], float], part: str | None
) -> None:
    found = figures(_steps(forward=forward, other=other))
    assert found.slowing_part == part
    assert found.slowing_share is not None
    assert (found.slowing_share > 0.2) is (part is not None)


def test_few_steps_tell_of_no_growth() -> None:
    assert figures(_steps(forward=_same, other=_same, steps=24)).slowing_share is None
