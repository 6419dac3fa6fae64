"""Which launch put what on the device."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trace import spans
from gpudebug.core.trace.correlation import matched

correlations = st.lists(st.one_of(st.integers(0, 12), st.integers(2**32 - 3, 2**32 - 1)), max_size=25)


@given(correlations, correlations, st.sampled_from([1, 4, 50_000]))
def test_the_first_launch_with_the_correlation(wanted: list[int], launched: list[int], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "_BLOCK", block)
        found = matched(array("I", wanted), array("I", launched))
    assert found.tolist() == [launched.index(c) if c and c in launched else -1 for c in wanted]
