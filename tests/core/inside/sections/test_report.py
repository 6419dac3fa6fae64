"""What a report knows without being asked for more."""

from __future__ import annotations

import pytest

from gpudebug.core.inside.sections import Report


@pytest.mark.parametrize(
    ("iterations", "seconds", "rate"),
    [(100, 10.0, 10.0), (None, 10.0, None), (100, None, None), (100, 0.0, None), (0, 10.0, None)],
)
def test_a_rate_needs_iterations_and_their_time(
    iterations: int | None, seconds: float | None, rate: float | None
) -> None:
    assert Report((), iterations=iterations, enabled_s=seconds).iterations_per_s == rate
