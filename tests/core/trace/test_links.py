"""Operators by the id that their kernels carry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trace import links
from gpudebug.core.trace.links import Links

ids = st.integers(1, 20)


@given(st.lists(ids), st.lists(st.integers(0, 25)))
def test_operators_are_found_by_their_id_in_any_order(known: list[int], wanted: list[int]) -> None:
    of = Links()
    for name, external in enumerate(known, start=1):
        of.add(external, name)
    of.finish()
    found = of.names(np.array(wanted, np.uint32))
    # The first of several with one id; none for 0.
    assert found.tolist() == [known.index(i) + 1 if i in known else 0 for i in wanted]


def test_links_beyond_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LIMIT", 2)
    of = Links()
    for number in (5, 6, 7):
        of.add(number, number)
    of.finish()
    assert of.names(np.array([7, 6, 5])).tolist() == [0, 6, 5]
