"""Whether a run leaves room: on the worst of jobs the mean alone says that it does not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.powered import busy
from tests.support.trials import run

from gpudebug.engine.diagnosis.room import is_full


def job(least: float, others: float, working: float | None = None) -> dict[str, Any]:
    """Eight GPUs; `working` is the share that power shows, None without power."""
    mean_w = 300.0 if working is None else 150.0 + 380.0 * working
    lacking = {"power_w": None, "working": None} if working is None else {}
    devices = tuple(busy(u, mean_w, i, **lacking) for i, u in enumerate((least, *[others] * 7)))
    found = run((least + 7 * others) / 8, 1.0, devices=devices, working=working)
    return found.model_dump(mode="json")


@pytest.mark.parametrize(
    ("facts", "full"),
    [
        pytest.param(job(3.7, 99.9, 0.05), False, id="seven wait for one, by power"),
        pytest.param(job(3.7, 99.9), False, id="seven wait for one, without power"),
        pytest.param(job(95, 96, 0.94), True, id="all work"),
        pytest.param(job(95, 96), True, id="all are busy"),
        pytest.param(job(20, 25), False, id="all idle"),
    ],
)
def test_what_the_mean_hides_is_room(facts: dict[str, Any], full: bool) -> None:
    assert is_full(facts["utilisation"], [facts]) is full


def test_without_a_figure_nothing_is_full() -> None:
    assert not is_full(None, [])
