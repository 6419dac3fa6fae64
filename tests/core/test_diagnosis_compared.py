from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import facts

from gpudebug.core.diagnosis.compared import of_others, of_trace

ANALYSIS = {
    "busy_share": 0.4,
    "span_s": 2.0,
    "mean_kernel_us": 6.0,
    "kernels_per_step": None,
    "steps": {"kernels_per_step": 900.0},
    "memcpy": [
        {"kind": "HtoD", "host_memory": "Pageable", "count": 3},
        {"kind": "HtoD", "host_memory": "Pinned", "count": 1},
        {"kind": "DtoH", "host_memory": "Pageable", "count": 50},
    ],
    "syncs": [{"seconds": 0.3}, {"seconds": 0.1}],
}


def test_a_trace() -> None:
    assert of_trace({"file": "trace.json.gz", "analysis": ANALYSIS}) == {
        "trace_busy_share": 0.4,
        "kernels_per_step": 900.0,
        "mean_kernel_us": 6.0,
        "memcpy_pageable_share": 0.75,
        "sync_share": pytest.approx(0.2),
        "nccl_share": None,
        "nccl_overlap_share": None,
    }


@pytest.mark.parametrize("trace", [None, {}, {"why": "not there"}, {"file": "t", "analysis": None}], ids=str)
def test_no_trace_tells_nothing(trace: dict[str, Any] | None) -> None:
    assert of_trace(trace) == {}


@pytest.mark.parametrize(
    ("figure", "measured", "share"),
    [
        ("steps_per_s", 5.0, 0.5),
        ("step_time_p50", 40.0, 0.5),
        ("steps_per_s", None, None),
        ("latency_p50", 10.0, 2.0),
    ],
)
def test_what_is_expected(figure: str, measured: float | None, share: float | None) -> None:
    row = {"figure": figure, "range": [10.0, 20.0], "measured": measured}
    assert of_others(None, None, [row])["expected_share"] == share


def test_the_gap_to_the_reference() -> None:
    assert of_others(30.0, facts(gpu_util=85.0), [])["reference_gap_pp"] == 55.0
    assert of_others(30.0, facts(), [])["reference_gap_pp"] is None
    assert of_others(None, facts(gpu_util=85.0), [])["reference_gap_pp"] is None
