"""The profiler's steps."""

from __future__ import annotations

import pytest
from tests.support import traces
from tests.support.traces import device, host, launched

from gpudebug.core.trace import summarise
from gpudebug.core.trace.steps import ROWS

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
    answer = summarise([traces.text(events)]).as_dict()
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
    answer = summarise([traces.text(events)]).as_dict()
    assert answer["steps"]["count"] == 1
    assert answer["steps"]["data_wait_share"] == pytest.approx(0.6)
    assert "ProfilerStep#2" not in [row["name"] for row in answer["operators"]]
    assert {c["cause"] for c in answer["gaps"]["by_cause"]} == {"python", "launch"}


def test_a_python_function_of_that_name_is_no_step() -> None:
    events = [host("python_function", "ProfilerStep#2", 0, 100), *launched("a", 62, 70, 10, 1)]
    assert summarise([traces.text(events)]).as_dict()["steps"] is None


def test_without_marks_there_are_none() -> None:
    answer = summarise([traces.text([device("a", 0, 5)])]).as_dict()
    assert answer["steps"] is None
    assert answer["kernels_per_step"] is None


def test_without_a_device_only_the_hosts_part_is_known() -> None:
    steps = summarise([traces.text([host("user_annotation", "ProfilerStep#7", 0, 100)])]).as_dict()["steps"]
    assert steps["table"] == [
        {"step": 7, "wall_s": 100e-6, "busy_share": None, "kernels": None, "data_wait_s": None}
    ]
    assert steps["kernels_per_step"] is None
    assert steps["data_wait_share"] is None


def test_of_many_steps_the_first_and_the_slowest_are_told() -> None:
    events = [host("user_annotation", f"ProfilerStep#{i}", 100 * i, 90 if i % 50 else 99) for i in range(500)]
    steps = summarise([traces.text(events)]).as_dict()["steps"]
    numbers = [r["step"] for r in steps["table"]]
    assert steps["count"] == 500
    assert len(numbers) == ROWS
    assert numbers == sorted(numbers)
    assert set(range(20)) | {50 * i for i in range(1, 10)} <= set(numbers)
