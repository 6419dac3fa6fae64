"""What the profiler stands at, without a process around it."""

from __future__ import annotations

import pytest

from gpudebug.training.profiling.progress import ProfilerState


@pytest.mark.parametrize(
    ("warmup", "left_out", "warming_up"), [(0, 0, False), (3, 0, True), (3, 2, True), (3, 3, False)]
)
def test_iterations_count_once_the_warm_up_is_left_out(warmup: int, left_out: int, warming_up: bool) -> None:
    progress = ProfilerState()
    progress.explicit, progress.iterations = True, 7
    progress.warmup, progress.left_out = warmup, left_out
    assert progress.warming_up is warming_up
    assert progress.completed() == (0 if warming_up else 7)


def test_nothing_was_timed_before_it_was_enabled() -> None:
    assert ProfilerState().seconds() == {"wall_s": 0.0, "enabled_s": 0.0}


def test_time_before_and_since_the_last_enabling_adds_up() -> None:
    progress = ProfilerState()
    progress.began, progress.on_for = 1, 3 * 10**9
    seconds = progress.seconds()
    assert seconds["enabled_s"] == 3.0
    assert seconds["wall_s"] > 0
