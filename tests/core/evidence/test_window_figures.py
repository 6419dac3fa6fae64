"""Steps a second within a window: by when lines arrived, else by what the log prints."""

from __future__ import annotations

import pytest
from tests.support.readings import steady_steps, steps_log

from gpudebug.core.evidence.window_figures import rates
from gpudebug.core.records import Window

WINDOW = Window(start_s=10, end_s=40, samples=150, rule="steps")


def test_inside_the_window_only() -> None:
    slow = [(n, 0.2 * n) for n in range(1, 50)]
    fast = [(49 + n, round(10 + 0.1 * n, 3)) for n in range(1, 301)]
    log = steps_log([*slow, *fast], rate=3.0)
    assert rates(log, WINDOW)[:2] == pytest.approx((10, 10), rel=0.01)


def test_steps_that_arrive_together_count_once() -> None:
    """Blocks of lines: the first one brings many steps that were made before the window."""
    times = [(n, 20.0 + 20 * ((n - 1) // 120)) for n in range(1, 601)]
    window = Window(start_s=20, end_s=100, samples=1, rule="steps")
    assert rates(steps_log(times), window)[0] == pytest.approx(6)


def test_many_steps_a_tick_do_not_bias_a_short_window() -> None:
    window = Window(start_s=10, end_s=15, samples=25, rule="steps")
    times = steady_steps(0, 30, 100)
    assert rates(steps_log(times), window)[0] == pytest.approx(100, rel=0.005)


@pytest.mark.parametrize(
    "times",
    [
        [],
        [(200, 39.0)],
        [(n, 39.8) for n in range(200)],
        [(100, 38.0), (200, 39.0)],
        [(5, 1.0), (9, 2.0)],
    ],
    ids=["none", "one", "burst", "too near", "outside"],
)
def test_where_arrivals_do_not_tell_the_log_does(times: list[tuple[int, float]]) -> None:
    assert rates(steps_log(times, rate=7.5), WINDOW) == (7.5, 7.5, "printed")
    assert rates(steps_log(times), WINDOW) == (None, None, None)


def test_without_a_window_the_log_tells() -> None:
    assert rates(steps_log(steady_steps(0, 3, 10), rate=9.0), None) == (9.0, 9.0, "printed")
