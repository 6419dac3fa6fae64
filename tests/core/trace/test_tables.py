"""Kernels, copies, synchronising calls and operators."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import traces
from tests.support.traces import Event, device, host, launched

from gpudebug.core.trace.summary import summarise
from gpudebug.core.trace.tables import ROWS

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_a_step_has_its_kernels_by_launch_and_its_time_by_clock() -> None:
    events = [
        host("user_annotation", "ProfilerStep#7", 0, 100),
        host("user_annotation", "ProfilerStep#8", 100, 50),
        host("user_annotation", LOADER, 0, 20),
        host("user_annotation", LOADER, 90, 20),
        *launched("a", 30, 40, 10, 1),
        *launched("b", 80, 95, 20, 2),  # launched in the first, half of it runs in the second
        device("m", 130, 5, "gpu_memset"),
        *launched("behind", 160, 170, 5, 3),
    ]
    answer = summarise([traces.text(events)]).answer
    table = answer["steps"]["table"]
    assert [(r["step"], r["kernels"]) for r in table] == [(7, 2), (8, 0)]
    assert [r["wall_s"] for r in table] == [100e-6, 50e-6]
    assert [r["busy_share"] for r in table] == [0.15, 0.4]
    assert [r["data_wait_s"] for r in table] == [30e-6, 10e-6]
    assert answer["steps"]["data_wait_share"] == pytest.approx(40 / 150)
    assert answer["steps"]["busy_share"] == pytest.approx(35 / 150)
    assert answer["kernels_per_step"] == 1


@pytest.mark.parametrize("category", ["Operator", "cpu_op", "user_annotation", ""])
def test_a_step_is_one_whatever_its_category(category: str) -> None:
    events = [
        host(category, "ProfilerStep#2", 0, 100),
        host("Operator", LOADER, 0, 60),
        host("Operator", "aten::add", 60, 10),
        *launched("a", 62, 70, 10, 1),
        *launched("b", 90, 95, 5, 2),
    ]
    answer = summarise([traces.text(events)]).answer
    assert answer["steps"]["count"] == 1
    assert answer["steps"]["data_wait_share"] == pytest.approx(0.6)
    assert "ProfilerStep#2" not in [row["name"] for row in answer["operators"]]
    assert {c["cause"] for c in answer["gaps"]["by_cause"]} == {"python", "launch"}


def test_a_python_function_of_that_name_is_no_step() -> None:
    events = [host("python_function", "ProfilerStep#2", 0, 100), *launched("a", 62, 70, 10, 1)]
    assert summarise([traces.text(events)]).answer["steps"] is None


def test_without_marks_there_are_none() -> None:
    answer = summarise([traces.text([device("a", 0, 5)])]).answer
    assert answer["steps"] is None
    assert answer["kernels_per_step"] is None


def test_without_a_device_only_the_hosts_part_is_known() -> None:
    steps = summarise([traces.text([host("user_annotation", "ProfilerStep#7", 0, 100)])]).answer["steps"]
    assert steps["table"] == [
        {"step": 7, "wall_s": 100e-6, "busy_share": None, "kernels": None, "data_wait_s": None}
    ]
    assert steps["kernels_per_step"] is None
    assert steps["data_wait_share"] is None


def test_of_many_steps_the_first_and_the_slowest_are_told() -> None:
    events = [host("user_annotation", f"ProfilerStep#{i}", 100 * i, 90 if i % 50 else 99) for i in range(500)]
    steps = summarise([traces.text(events)]).answer["steps"]
    numbers = [r["step"] for r in steps["table"]]
    assert steps["count"] == 500
    assert len(numbers) == ROWS
    assert numbers == sorted(numbers)
    assert set(range(20)) | {50 * i for i in range(1, 10)} <= set(numbers)


PINNED, PAGEABLE = "Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pageable -> Device)"
RATE = "memory bandwidth (GB/s)"


def answer(*events: Event) -> dict[str, Any]:
    return summarise([traces.text(events)]).answer


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
