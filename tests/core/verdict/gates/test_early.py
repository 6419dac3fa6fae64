"""A run that ends well before its window is full: only where success is out of reach."""

from __future__ import annotations

import pytest
from tests.support.trials import BASE, criteria, run, verdict

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
