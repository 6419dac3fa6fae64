"""Kernels, copies, synchronising calls and operators."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import traces
from tests.support.traces import Event, device, host

from gpudebug.core.trace import summarise

PINNED, PAGEABLE = "Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pageable -> Device)"
RATE = "memory bandwidth (GB/s)"


def answer(*events: Event) -> dict[str, Any]:
    return summarise([traces.text(events)]).as_dict()


def test_kernels_by_their_time() -> None:
    found = answer(
        device("short", 0, 2),
        device("ncclKernel_X", 5, 30),
        device("short", 40, 4),
        device("m", 50, 9, "gpu_memset"),
    )
    assert found["kernels"] == [
        {
            "name": "ncclKernel_X",
            "communication": True,
            "count": 1,
            "seconds": 30e-6,
            "mean_us": 30,
            "min_us": 30,
            "max_us": 30,
        },
        {
            "name": "short",
            "communication": False,
            "count": 2,
            "seconds": 6e-6,
            "mean_us": 3,
            "min_us": 2,
            "max_us": 4,
        },
    ]
    assert found["mean_kernel_us"] == 12
    assert found["nccl"] == {
        "seconds": 30e-6,
        "share_of_busy": pytest.approx(30 / 45),
        "overlapped_share": 0,
        "exposed_s": 30e-6,
    }


def test_copies_by_kind_and_host_memory() -> None:
    found = answer(
        device(PINNED, 0, 10, "gpu_memcpy", bytes=100_000),
        device(PINNED, 20, 30, "gpu_memcpy", **{"bytes": 100_000, RATE: 4.0}),
        device(PAGEABLE, 60, 50, "gpu_memcpy", bytes=100_000),
        device("Memset (Device)", 120, 1, "gpu_memset"),
    )
    pageable, pinned, fill = found["memcpy"]
    assert (pageable["kind"], pageable["host_memory"], pageable["gb_s"]) == ("HtoD", "pageable", 2.0)
    assert (pinned["host_memory"], pinned["count"], pinned["bytes"]) == ("pinned", 2, 200_000)
    assert (pinned["gb_s"], pinned["mean_gb_s"], pinned["max_gb_s"]) == (5.0, 7.0, 10.0)
    assert fill == {
        "kind": "Memset",
        "host_memory": None,
        "count": 1,
        "bytes": None,
        "seconds": 1e-6,
        "gb_s": None,
        "mean_gb_s": None,
        "max_gb_s": None,
    }


def test_a_synchronising_call_names_its_callers() -> None:
    found = answer(
        device("k", 0, 10),
        host("python_function", "train.py(12): main", 0, 200),
        host("cpu_op", "aten::item", 10, 30, **{"External id": 5}),
        host("cpu_op", "aten::_local_scalar_dense", 11, 28, **{"External id": 6}),
        host("cuda_runtime", "cudaStreamSynchronize", 15, 20, **{"External id": 6}),
        host("python_function", "torch/cuda/__init__.py(983): synchronize", 50, 100),
        host("cuda_runtime", "cudaDeviceSynchronize", 51, 98),
        host("cuda_runtime", "cudaEventSynchronize", 180, 5, tid=77),
    )
    assert [(s["call"], s["kind"], s["count"], round(s["seconds"] * 1e6)) for s in found["syncs"]] == [
        ("cudaDeviceSynchronize", "runtime", 1, 98),
        ("cudaStreamSynchronize", "runtime", 1, 20),
        ("cudaEventSynchronize", "runtime", 1, 5),
        ("aten::item", "operator", 1, 30),
        ("aten::_local_scalar_dense", "operator", 1, 28),
    ]
    frames = [[s["frames"] for s in row["stacks"]] for row in found["syncs"]]
    assert frames == [
        [["torch/cuda/__init__.py(983): synchronize", "train.py(12): main"]],
        [["aten::_local_scalar_dense", "aten::item", "train.py(12): main"]],
        [],
        [["train.py(12): main"]],
        [["aten::item", "train.py(12): main"]],
    ]


def test_frames_of_the_probe_are_none_of_the_training() -> None:
    """As a training records itself that runs under gpudebug."""
    probe = "site-packages/gpudebug/training/probe/gpudebug_probe/reads.py({}): {}"
    found = answer(
        host("python_function", "train.py(12): main", 0, 200),
        host("python_function", probe.format(90, "read"), 5, 100),
        host("python_function", probe.format(64, "item"), 6, 90),
        host("python_function", "<built-in method item of Tensor object at 0x7f1bf085e6c0>", 8, 80),
        host("cpu_op", "aten::item", 10, 30),
    )
    [row] = found["syncs"]
    frames = ["<built-in method item of Tensor>", "train.py(12): main"]
    assert row["stacks"] == [{"frames": frames, "count": 1, "seconds": 30e-6}]
    assert "gpudebug_probe" not in str(found)


def test_operators_by_host_and_by_device_time() -> None:
    found = answer(
        host("cpu_op", "aten::linear", 0, 50, **{"External id": 1}),
        host("cpu_op", "aten::mm", 10, 20, **{"External id": 2}),
        host("cpu_op", "aten::view", 60, 5, **{"External id": 3}),
        device("gemm", 20, 500, **{"External id": 2, "correlation": 9}),
    )
    keys = ("calls", "host_s", "self_s", "device_s")
    rows = {r["name"]: tuple(r[key] for key in keys) for r in found["operators"]}
    assert rows == {
        "aten::mm": (1, 20e-6, 20e-6, 500e-6),
        "aten::linear": (1, 50e-6, 30e-6, 0),
        "aten::view": (1, 5e-6, 5e-6, 0),
    }
    assert found["operators"][0]["name"] == "aten::mm"


def test_device_time_that_nothing_links_to_operators_is_unknown() -> None:
    found = answer(
        host("cpu_op", "aten::mm", 0, 20, **{"External id": 9}),
        device("gemm", 20, 50, **{"External id": 9, "correlation": 9}),
    )
    assert [r["device_s"] for r in found["operators"]] == [None]
    assert any("do not name their operators" in note for note in found["notes"])
