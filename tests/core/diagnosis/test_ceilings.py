from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.diagnosis.ceilings import Ceiling, ceiling


@pytest.mark.parametrize(
    ("exposed", "util", "rate", "shows", "expected"),
    [
        (0.5, 40.0, 10.0, True, Ceiling(40.0, 80.0, 2.0, 20.0)),
        (0.5, 40.0, 10.0, False, Ceiling(None, None, 2.0, 20.0)),
        (0.8, 40.0, None, True, Ceiling(60.0, 100.0, 5.0, None)),
        (0.0, 40.0, 10.0, True, Ceiling(0.0, 40.0, 1.0, 10.0)),
        (None, 40.0, 10.0, True, Ceiling()),
        (0.5, None, None, True, Ceiling(None, None, 2.0, None)),
        (1.0, 1.0, None, True, Ceiling(19.0, 20.0, 20.0, None)),
    ],
)
def test_what_a_fix_brings_at_most(
    exposed: float | None, util: float | None, rate: float | None, shows: bool, expected: Ceiling
) -> None:
    found = ceiling(exposed, util, rate, shows=shows)
    for name, wanted in vars(expected).items():
        assert getattr(found, name) == (None if wanted is None else pytest.approx(wanted)), name


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 100))
def test_more_exposed_time_never_promises_less(one: float, other: float, util: float) -> None:
    less, more = (ceiling(share, util, 5.0, shows=True) for share in sorted((one, other)))
    assert less.pp is not None and more.pp is not None and less.util is not None and more.util is not None
    assert 0.0 <= less.pp <= more.pp + 1e-9
    assert util <= less.util + 1e-9 <= more.util + 2e-9 <= 100.0 + 3e-9
    assert 1.0 <= (less.ratio or 0.0) <= (more.ratio or 0.0) <= 20.0 + 1e-6
