"""Which allocations a baseline counts in."""

from __future__ import annotations

import pytest

from gpudebug.core.campaign.allocation import afresh


@pytest.mark.parametrize(
    ("measured", "here", "why"),
    [
        (["412", "412"], "412", None),
        (["412"], "413", "it was measured in allocation 412, and this is 413"),
        (["412"], "412.1", "it was measured in allocation 412, and this is 412.1"),
        (["411", "412", "413"], "413", "it was measured in allocation 411, 412, and this is 413"),
        pytest.param([None], "412", None, id="unknown is no difference"),
        pytest.param(["412"], None, None, id="a login node reads and measures nothing"),
        ([], "412", None),
    ],
)
def test_a_baseline_counts_in_its_own_allocation(
    measured: list[str | None], here: str | None, why: str | None
) -> None:
    assert afresh(measured, here) == why
