"""The probe's figures against a program of one copy, one read and one wait a step."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.hardware.probe_check import probe_check
from gpudebug.core.records import ProbedCopies, ProbeEvidence


def probe(**changes: Any) -> ProbeEvidence:
    figures: dict[str, Any] = {
        "h2d": ProbedCopies(count=100, mb=6.4, seconds=0.1, pinned_share=1.0),
        "blocking_reads_per_step": 1.0,
        "syncs_per_step": 1.0,
        "device_time_share": 0.4,
    }
    return ProbeEvidence(pid=1, steps=200, span_steps=100, **{**figures, **changes})


def test_what_was_made_was_counted() -> None:
    check = probe_check(probe(), None)
    assert (check.result, check.next) == ("ok", None)
    assert "1.00 copies to the GPU a step" in check.found and "events: 40 % of a step" in check.found


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({"syncs_per_step": 0.0}, "failed"),
        ({"blocking_reads_per_step": 2.0}, "failed"),
        ({"h2d": ProbedCopies(count=1, mb=1, seconds=1)}, "failed"),
        ({"h2d": None}, "unknown"),
        ({"device_time_share": None}, "unknown"),
        ({"device_time_share": None, "syncs_per_step": 0.0}, "failed"),
    ],
)
def test_what_is_wrong_fails_and_what_is_missing_is_unknown(changes: dict[str, Any], result: str) -> None:
    check = probe_check(probe(**changes), None)
    assert check.result == result and check.next


def test_a_probe_that_reported_nothing_fails_with_its_reason() -> None:
    check = probe_check(None, "PyTorch was not loaded")
    assert check.result == "failed" and "PyTorch was not loaded" in check.found
