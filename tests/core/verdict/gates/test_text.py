"""Estimates as gates print them."""

from __future__ import annotations

import pytest

from gpudebug.core.records import Estimate
from gpudebug.core.verdict.gates import estimate_text


@pytest.mark.parametrize(
    ("estimate", "unit", "signed", "digits", "expected"),
    [
        (Estimate(value=33.61, low=31.2, high=36.04), "pp", True, 1, "+33.6pp (95% CI +31.2 to +36.0)"),
        (Estimate(value=-0.04, low=-4, high=3.92), "pp", True, 1, "+0.0pp (95% CI -4.0 to +3.9)"),
        (Estimate(value=2.197, low=2.0, high=2.4), "x", False, 2, "2.20x (95% CI 2.00 to 2.40)"),
        (Estimate(value=5), "pp", True, 1, "+5.0pp"),
    ],
)
def test_estimates_as_text(estimate: Estimate, unit: str, signed: bool, digits: int, expected: str) -> None:
    assert estimate_text(estimate, unit, signed=signed, digits=digits) == expected
