"""A run that ends well before its window is full: only where success is out of reach."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.powered import busy
from tests.support.trials import BASE, criteria, run, verdict

from gpudebug.core.records import Evidence
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.protocol import is_certain
from gpudebug.core.words import Outcome, Status


@pytest.mark.parametrize(
    ("level", "window", "rise", "expected"),
    [
        pytest.param(28, 17.0, (26.0, 27.0, 28.0, 28.0), True, id="no effect"),
        pytest.param(28, 9.0, (26.0, 27.0, 28.0, 28.0), False, id="a window too short"),
        pytest.param(28, 17.0, (14.0, 14.0, 14.0, 28.0), False, id="the baseline began as slowly"),
        pytest.param(36, 17.0, (26.0, 27.0, 28.0, 28.0), False, id="not surely below"),
        pytest.param(28, 17.0, (), False, id="how the baseline began is not known"),
    ],
)
def test_a_hopeless_run_may_end_well_before_min_window(
    level: float, window: float, rise: tuple[float, ...], expected: bool
) -> None:
    before = [e.model_copy(update={"rise": rise}) for e in BASE]
    seen = run(level, 5, window=window, outcome=Outcome.ENDED_EARLY)
    assert is_certain(1, criteria(), before, [seen], TrialSetting()) is expected
    assert (verdict(before, [seen]).status is Status.REJECTED) is expected
    assert not is_certain(1, criteria(), before, [seen], TrialSetting(rule=4))


def test_how_the_mean_began_says_nothing_of_the_least_device() -> None:
    """The whole mean is 64 % and began at 52 %, which is above what the least device ever reads."""
    before = [two(28.0, 100.0, rise=(52.0, 58.0, 62.0, 64.0)) for _ in range(4)]
    seen = two(28.0, 100.0, window=17.0, outcome=Outcome.ENDED_EARLY)
    assert is_certain(1, criteria(), before, [seen], TrialSetting())
    assert not is_certain(1, criteria(devices="least"), before, [seen], TrialSetting())
    assert verdict(before, [seen], devices="least").status is Status.INCONCLUSIVE


def two(*utilisations: float, **more: Any) -> Evidence:
    devices = tuple(busy(u, index=i) for i, u in enumerate(utilisations))
    return run(sum(utilisations) / len(utilisations), 5.0, devices=devices, **more)
