"""Whether two texts write one value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text.values import same_value


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("8", "8.0", True),
        ("1e-4", "0.0001", True),
        ("True", "true", True),
        ("1", "True", True),
        ("off", "False", True),
        ("0", "True", False),
        ("[1, 2]", "1 2", True),
        ("(1, 2)", "1,2", True),
        ("[1, 2]", "[1, 3]", False),
        ("1", "1 1", False),
        ("'adam'", "adam", True),
        ("./out/", "out", True),
        ("nan", "nan", True),
        ("inf", "1", False),
        ("", "None", False),
        ("\u0661", "1", False),
        ("bf16", "fp16", False),
    ],
)
def test_values_are_compared_as_what_they_are(a: str, b: str, same: bool) -> None:
    assert same_value(a, b) is same
    assert same_value(b, a) is same


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_however_it_is_written(value: float) -> None:
    assert same_value(repr(value), f"{value:.17g}")
    assert not same_value(repr(value), repr(value * 2 + 1)) or value == -1
