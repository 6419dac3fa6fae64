"""One printed series of losses."""

from __future__ import annotations

from math import inf, nan

import pytest

from gpudebug.core.trainlog.loss_series import BEGIN, LossSeries


def series(*values: float, tier: int = 0, phase: str = "", unnamed: bool = False) -> LossSeries:
    found = LossSeries("loss", phase, tier, 0, unnamed=unnamed)
    for step, value in enumerate(values):
        found.add(value, step, None, False)
    return found


@pytest.mark.parametrize(
    ("found", "trend"),
    [
        (series(2.0, 1.0), "CONVERGING"),
        (series(2.0, nan), "NAN"),
        (series(2.0, inf, phase="val"), "NAN"),
        (series(2.0, 1.0, phase="val"), "UNKNOWN"),
        (series(2.0, 1.0, tier=5), "UNKNOWN"),
        (series(2.0, 2.0, 2.0), "PLATEAU"),
        (series(2.0), "UNKNOWN"),
        (series(0.1, 0.5, 0.9, unnamed=True), "UNKNOWN"),
        (series(0.1, 0.5, 9.0, unnamed=True), "DIVERGING"),
    ],
)
def test_its_course(found: LossSeries, trend: str) -> None:
    assert str(found.trend()) == trend


def test_points_keep_their_steps_unless_most_share_one() -> None:
    assert [p.step for p in series(3.0, 2.0, 1.0).shown()] == [0, 1, 2]
    buffered = LossSeries("loss", "", 0, 0)
    for value in (3.0, 2.0, 1.0):
        buffered.add(value, 7, None, False)
    assert [p.step for p in buffered.shown()] == [None, None, None]


def test_its_first_points_are_kept_of_any_length() -> None:
    long = series(*(1000.0 - n for n in range(5000)))
    assert [(p.step, p.value) for p in long.begun()] == [(n, 1000.0 - n) for n in range(BEGIN)]
    buffered = LossSeries("loss", "", 0, 0)
    for value in (3.0, 2.0):
        buffered.add(value, 7, None, False)
    unnumbered = LossSeries("loss", "", 0, 0)
    unnumbered.add(3.0, None, None, False)
    assert (buffered.begun(), unnumbered.begun()) == ((), ())
