"""What the profiler stands at, without a process around it."""

from __future__ import annotations

import pytest

from gpudebug.training.profiling import tree
from gpudebug.training.profiling.state import ProfilingState


@pytest.mark.parametrize(
    ("warmup", "left_out", "warming_up"), [(0, 0, False), (3, 0, True), (3, 2, True), (3, 3, False)]
)
def test_iterations_count_once_the_warm_up_is_left_out(
    warmup: int, left_out: int, warming_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = ProfilingState()
    state.explicit, state.iterations = True, 7
    state.warmup, state.left_out = warmup, left_out
    assert state.warming_up is warming_up
    monkeypatch.setattr(tree, "state", state)
    assert tree.Registry().completed() == (0 if warming_up else 7)


def test_nothing_was_timed_before_it_was_enabled() -> None:
    assert ProfilingState().seconds() == {"wall_s": 0.0, "enabled_s": 0.0}


def test_time_before_and_since_the_last_enabling_adds_up() -> None:
    state = ProfilingState()
    state.began, state.on_for = 1, 3 * 10**9
    seconds = state.seconds()
    assert seconds["enabled_s"] == 3.0
    assert seconds["wall_s"] > 0


def test_notes_are_kept_once_and_few() -> None:
    state = ProfilingState()
    for i in range(100):
        state.note("the same")
        state.note(f"number {i}")
    assert state.notes[:2] == ["the same", "number 0"]
    assert len(state.notes) == 20
