"""Devices beside each other: least, median, most, and which is apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.diagnoses import stacks
from tests.support.trials import run

from gpudebug.core.records import DeviceEvidence, Evidence, Spread, Stacks, StacksEvidence
from gpudebug.core.statistics.across import (
    across,
    counted_as_busy,
    misleading,
    outliers,
    own_work,
    text,
    unused,
)


def device(index: int, util: float | None = None, **figures: float | None) -> DeviceEvidence:
    spread = lambda v: None if v is None else Spread(mean=v, p5=v, p50=v, p95=v)  # noqa: E731
    known: dict[str, Any] = {
        k: v if k in ("throttled", "mem_mean_mb") else spread(v) for k, v in figures.items()
    }
    return DeviceEvidence(index=index, uuid=f"GPU-{index}", name="x", gpu_util=spread(util), **known)


EIGHT = [device(i, 3.7 if i == 0 else 99.0 + i / 10, power_w=150.0 + i) for i in range(8)]


def test_the_device_that_the_others_wait_for_is_named() -> None:
    util, power = across(EIGHT)
    assert text(util) == "gpu_util least 3.7% (GPU 0), median 99.3%, most 99.7% (GPU 7); GPU 0 is apart"
    assert text(power) == "power least 150 W (GPU 0), median 154 W, most 157 W (GPU 7)"


def test_records_and_their_json_are_read_alike() -> None:
    assert across([d.model_dump(mode="json") for d in EIGHT]) == across(EIGHT)


def test_of_several_runs_a_device_has_its_mean() -> None:
    (found,) = across([device(0, 20), device(1, 90)], [device(1, 80), device(0, 30)])
    assert (found.least.value, found.most.value, found.most.index) == (25, 85, 1)


def test_one_device_is_no_comparison_and_of_two_none_is_apart() -> None:
    assert across([device(0, 20)]) == ()
    (found,) = across([device(0, 3), device(1, 99)])
    assert found.apart == ()
    assert text(found) == "gpu_util least 3.0% (GPU 0), median 51.0%, most 99.0% (GPU 1)"


def test_a_device_without_the_figure_is_counted_and_not_left_out() -> None:
    (found,) = across([device(0, 50), device(1, None), device(2, 50)])
    assert found.unknown == 1
    assert text(found) == "gpu_util 50.0% on each, 1 unknown"


def test_a_device_without_it_in_one_run_is_unknown() -> None:
    (found,) = across([device(i, 50) for i in range(3)], [device(0, 50), device(1, 50), device(2, None)])
    assert found.unknown == 1


@pytest.mark.parametrize(
    ("values", "apart"),
    [
        ([10, 90, 92], [0]),
        ([10, 50, 90], []),
        ([0, 0, 100, 100], []),
        ([0, 5, 100, 100, 100], [0, 1]),
        ([97, 98, 99, 100], []),
        ([88, 99, 99, 99], [0]),
        ([90, 99, 99, 99], []),
        ([3, 99], []),
        ([], []),
    ],
)
def test_the_rule_of_outliers(values: list[float], apart: list[int]) -> None:
    assert outliers(values, 10.0) == apart


def test_a_tenth_of_the_median_is_what_matters_of_power() -> None:
    assert outliers([450.0, 500.0, 500.0, 500.0]) == []
    assert outliers([440.0, 500.0, 500.0, 500.0]) == [0]


@given(st.lists(st.floats(0, 1000), max_size=16))
def test_those_apart_are_fewer_than_half(values: list[float]) -> None:
    assert len(outliers(values)) <= len(values) / 2


@pytest.mark.parametrize(("least", "says"), [(89.0, False), (88.0, True)])
def test_a_mean_over_unlike_devices_misleads(least: float, says: bool) -> None:
    found = misleading(across([device(0, least), device(1, 99.0)]))
    assert (found is not None) is says
    if found:
        assert "GPU 0 is busy 88.0% of the time, GPU 1 99.0%" in found
        assert "criteria: {devices: least}" in found
    assert misleading(across([device(0, 3.0)])) is None


def test_parts_of_one_gpu_are_told_apart() -> None:
    parts = [device(0, 20 + 40 * i).model_copy(update={"uuid": f"MIG-{i}"}) for i in range(2)]
    assert text(*across(parts)) == (
        "gpu_util least 20.0% (GPU 0 (MIG-0)), median 40.0%, most 60.0% (GPU 0 (MIG-1))"
    )


def visible(used: int, of: int = 8, held: float | None = 450.0) -> list[DeviceEvidence]:
    """So many GPUs train, the others are only visible, and hold what their driver holds."""
    train, idle = ({"mem_used_mb": mb} for mb in (30_000.0, held))
    return [
        device(i, *((95.0,) if i < used else (0.2,))).model_copy(update=train if i < used else idle)
        for i in range(of)
    ]


def test_gpus_that_no_run_uses_are_named_and_do_not_count() -> None:
    (found,) = across(visible(6))
    assert text(found) == "gpu_util 95.0% on each used one; GPU 6 and GPU 7 are unused"
    assert (found.apart, found.unknown, misleading([found])) == ((), 0, None)
    (alone,) = across([d.model_dump(mode="json") for d in visible(1, of=3)])
    assert text(alone) == "gpu_util 95.0% on each used one; GPU 1 and GPU 2 are unused"


@pytest.mark.parametrize("held", [None, 9000.0])
def test_a_gpu_that_may_hold_a_model_is_not_unused(held: float | None) -> None:
    (found,) = across(visible(6, held=held))
    assert (found.least.value, found.unused) == (0.2, ())
    assert misleading([found]) is not None


def test_a_gpu_that_one_run_uses_is_not_unused() -> None:
    assert unused(visible(6), visible(6)) == {(6, "GPU-6"), (7, "GPU-7")}
    assert unused(visible(6), visible(8)) == frozenset()
    assert unused(visible(0)) == frozenset()


def test_throttling_is_shown_in_percent() -> None:
    (found,) = across([device(i, throttled=0.5 if i == 2 else 0.0) for i in range(4)])
    assert text(found) == (
        "throttled least 0% of the time (GPU 0), median 0% of the time, most 50% of the time (GPU 2); "
        "GPU 2 is apart"
    )


CPU = (DeviceEvidence(index=0, uuid="CPU", name="x"),)
MODEL = [("forward", "job/t.py:main", 3, 1.0, 1.0), ("backward", "job/t.py:main", 4, 1.0, 1.0)]


def rows(*others: tuple[str, float, float]) -> Stacks:
    """A model that computes for 2 s, and `others`: phase, seconds, seconds that it ran."""
    made = [(phase, "job/t.py:main job/t.py:get", 9, seconds, ran) for phase, seconds, ran in others]
    return stacks(*MODEL, *made)


def watched(*others: tuple[str, float, float], devices: tuple[DeviceEvidence, ...] = CPU) -> Evidence:
    return run(devices=devices, stacks=StacksEvidence(training=rows(*others)))


def test_each_phase_that_is_not_the_models_counts_as_far_as_it_runs() -> None:
    found = own_work(rows(("data", 4.0, 3.0), ("env", 2.0, 0.0), ("other", 2.0, 1.0), ("eval", 2.0, 2.0)))
    assert found == pytest.approx({"data": 0.25, "env": 0.0, "other": 1 / 12})


def test_without_a_models_phases_nothing_is_known() -> None:
    assert own_work(stacks(("other", "job/t.py:main", 9, 5.0, 5.0))) is None


@pytest.mark.parametrize("json", [False, True])
def test_batches_made_in_the_training_process_are_named(json: bool) -> None:
    e = watched(("data", 6.0, 6.0))
    text = counted_as_busy([e.model_dump(mode="json") if json else e])
    assert text is not None
    assert "computes 75% of the time outside its model, most of it making batches" in text


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([watched(("data", 6.0, 0.2))], id="the loader waits for a store"),
        pytest.param([watched(("data", 0.4, 0.4))], id="little of it"),
        pytest.param(
            [watched(("data", 6.0, 6.0), devices=(DeviceEvidence(index=0, uuid="GPU-1", name="x"),))],
            id="a GPU, which the process keeps idle",
        ),
        pytest.param([watched(("data", 6.0, 6.0)), run(devices=CPU)], id="a run that was not watched"),
        pytest.param([], id="no run"),
    ],
)
def test_nothing_is_said_otherwise(found: list[Evidence]) -> None:
    assert counted_as_busy(found) is None
