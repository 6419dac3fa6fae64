"""Names as they are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.inside.sections.names import short


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("forward", "forward"),
        ("get_actions.preprocessing", "get_a…ssing"),
        ("two\nlines", "two?lines"),
        ("\x1b[31mred", "?[31mred"),
        ("", "(no name)"),
    ],
)
def test_a_name_is_shown_on_one_line(name: str, shown: str) -> None:
    assert short(name, 11) == shown


@given(st.text(max_size=80), st.integers(9, 60))
def test_no_name_breaks_a_table(name: str, width: int) -> None:
    shown = short(name, width)
    assert shown.isprintable()
    assert 0 < len(shown) <= width
