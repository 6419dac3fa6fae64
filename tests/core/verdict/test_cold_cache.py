"""A first run that read from disk what the later ones found in memory."""

from __future__ import annotations

import pytest
from tests.support.trials import run

from gpudebug.core.records import Conditions
from gpudebug.core.verdict.cold_cache import fills_cache, finds_cache, is_cold


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


FOUND = "Using cached features from data/cache.npy"


@pytest.mark.parametrize(
    ("cached", "wrote", "rates", "why"),
    [
        ((None, FOUND, FOUND), (0.0, 0.0, 0.0), (5.0, 5.0, 5.0), f"a cache that it made ({FOUND})"),
        ((FOUND, FOUND, FOUND), (0.0, 0.0, 0.0), (5.0, 5.0, 5.0), None),
        ((None, FOUND, None), (0.0, 0.0, 0.0), (5.0, 5.0, 5.0), None),
        ((None, None, None), (60.0, 0.0, 0.2), (2.0, 5.0, 5.1), "it wrote 60 MB/s, the next one 0 MB/s"),
        # Checkpoints are written by each; and what is written in passing costs nothing.
        ((None, None, None), (60.0, 58.0, 61.0), (2.0, 5.0, 5.1), None),
        ((None, None, None), (60.0, 0.0, 0.2), (4.9, 5.0, 5.1), None),
        ((None, None, None), (None, None, None), (2.0, 5.0, 5.1), None),
        ((None, None, None), (60.0, 0.0, 0.2), (None, 5.0, 5.1), None),
        ((None,), (60.0,), (2.0,), None),
        ((), (), (), None),
    ],
)
def test_a_first_run_that_makes_what_the_later_ones_find(
    cached: tuple[str | None, ...],
    wrote: tuple[float | None, ...],
    rates: tuple[float | None, ...],
    why: str | None,
) -> None:
    runs = [
        run(cached=line, conditions=Conditions(write_mb_s=mb), progress_per_s=rate)
        for line, mb, rate in zip(cached, wrote, rates, strict=True)
    ]
    found = fills_cache(runs)
    assert found is None if why is None else found is not None and why in found


def test_a_run_beside_recorded_ones_that_finds_what_they_did_not() -> None:
    found, plain = run(cached=FOUND), run()
    assert finds_cache(found, [plain, plain]) == FOUND
    assert finds_cache(found, [plain, found]) is None
    assert finds_cache(plain, [plain]) is None
    assert finds_cache(found, []) is None
