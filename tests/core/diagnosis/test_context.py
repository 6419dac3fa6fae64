from __future__ import annotations

from typing import Any

import pytest
from tests.support import traces
from tests.support.diagnoses import facts
from tests.support.traces import device, host

from gpudebug.core.diagnosis.context import of_others, of_trace
from gpudebug.core.inside.torch_profile import headline
from gpudebug.core.trace import summarise

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
    "syncs": [
        {"kind": "runtime", "seconds": 0.3},
        {"kind": "runtime", "seconds": 0.1},
        {"kind": "operator", "seconds": 0.35},
    ],
}


def test_a_trace() -> None:
    assert of_trace({"file": "trace.json.gz", "analysis": ANALYSIS}) == {
        "trace_busy_share": 0.4,
        "kernels_per_step": 900.0,
        "mean_kernel_us": 6.0,
        "memcpy_pageable_share": 0.75,
        "sync_share": pytest.approx(0.2),
        "nccl_share": None,
        "nccl_exposed_share": None,
        "nccl_overlap_share": None,
    }


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ([], 0.0),
        ([("runtime", 0.3), ("operator", 0.31), ("operator", 0.305)], 0.15),
        ([("operator", 0.31), ("operator", 0.305)], 0.155),
        ([("runtime", 3.0)], 1.0),
        ([(None, 0.3)], None),
        (None, None),
    ],
    ids=str,
)
def test_a_wait_is_counted_once(rows: list[tuple[str | None, float]] | None, share: float | None) -> None:
    syncs = None if rows is None else [{"kind": kind, "seconds": seconds} for kind, seconds in rows]
    found = of_trace({"analysis": {**ANALYSIS, "syncs": syncs}})["sync_share"]
    assert found == (None if share is None else pytest.approx(share))


def test_shares_of_a_real_trace_are_of_the_traced_time() -> None:
    recorded = [
        host("cpu_op", "aten::item", 0, 50, **{"External id": 5}),
        host("cpu_op", "aten::_local_scalar_dense", 1, 48, **{"External id": 6}),
        host("cuda_runtime", "cudaStreamSynchronize", 5, 40, **{"External id": 6}),
        device("k", 0, 50),
        device("ncclDevKernel_AllReduce", 40, 40, stream=traces.NCCL),
        host("cpu_op", "aten::mm", 190, 10),
    ]
    found = of_trace({"analysis": headline(summarise([traces.text(recorded)]).as_dict())})
    expected = {
        "sync_share": pytest.approx(0.2),
        "nccl_share": pytest.approx(0.2),
        "nccl_exposed_share": pytest.approx(0.15),
        "nccl_overlap_share": pytest.approx(0.25),
    }
    assert {name: found[name] for name in expected} == expected


def test_communication_is_the_mean_of_several_devices() -> None:
    told = {**ANALYSIS, "devices": [{}, {}], "nccl": {"seconds": 1.0, "exposed_s": 0.5}}
    found = of_trace({"analysis": told})
    assert (found["nccl_share"], found["nccl_exposed_share"]) == (0.25, 0.125)


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
