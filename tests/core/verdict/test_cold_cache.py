"""A first run that read from disk what the later ones found in memory."""

from __future__ import annotations

import pytest
from tests.support.trials import run

from gpudebug.core.records import Conditions
from gpudebug.core.verdict.cold_cache import is_cold


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        pytest.param((120.0, 0.0, 0.1), True, id="cold, then warm"),
        pytest.param((120.0, 118.0, 121.0), False, id="too large for the cache"),
        pytest.param((3.0, 0.0, 0.0), False, id="next to nothing"),
        pytest.param((0.0, 120.0, 0.0), False, id="a later one"),
        pytest.param((120.0, None, 0.0), True, id="one not known"),
        pytest.param((120.0, None), False, id="none to compare with"),
        pytest.param((None, 0.0), False, id="not known"),
        pytest.param((120.0,), False, id="alone"),
        pytest.param((), False, id="none"),
    ],
)
def test_the_first_run_is_compared_with_the_later_ones(
    rates: tuple[float | None, ...], expected: bool
) -> None:
    runs = [run(conditions=Conditions(read_mb_s=rate)) for rate in rates]
    assert is_cold(runs) is expected
