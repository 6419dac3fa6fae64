"""The devices of a run as text: lines of a few, a table of many, and what is apart first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudebug.core.answers.sample import (
    DeviceMemory,
    FigureSpread,
    LateRank,
    RankRow,
    RanksFinding,
    SampledDevice,
    StragglerRank,
)
from gpudebug.core.samples.conditions import SLOWING
from gpudebug.core.statistics.across import across
from gpudebug.terminal.devices import devices, energy, facts, ranks, slowed

SPREAD = FigureSpread(mean=15.04, p5=14.0, p50=15.0, p95=16.0)
DEVICE = SampledDevice(index=1, uuid="GPU-1", name="x", gpu_util=SPREAD, reason=None)


def test_an_unknown_utilisation_is_a_reason_and_never_a_zero() -> None:
    known, unknown = devices([DEVICE, replace(DEVICE, uuid="CPU", gpu_util=None, reason="too short")])
    assert known == "GPU 1 (GPU-1): gpu_util 15.0%  (p5 14, p50 15, p95 16)"
    assert unknown == "CPU stand-in (CPU): gpu_util unknown: too short"
    assert "0.0" not in unknown
    _, memory = devices([replace(DEVICE, memory=DeviceMemory(mean_mb=199.6, peak_mb=300.0))])
    assert memory == "  memory 200 MB on average, 300 MB at most"


def spread(value: float) -> FigureSpread:
    return FigureSpread(mean=value, p5=value, p50=value, p95=value)


def gpu(index: int, util: float, power: float, **more: Any) -> SampledDevice:
    return SampledDevice(
        index=index,
        uuid=f"GPU-{index}",
        name="x",
        gpu_util=FigureSpread(mean=util, p5=0, p50=util, p95=100),
        reason=None,
        power_w=spread(power),
        **more,
    )


def test_what_the_driver_tells_is_behind_the_utilisation() -> None:
    more = {"sm_clock_mhz": spread(1410), "mem_clock_mhz": spread(1593), "temperature_c": spread(61)}
    slow = {"throttle": {"sw_thermal": 0.37, "sw_power_cap": 0.5, "gpu_idle": 0.1}, "throttled": 0.37}
    _, facts = devices([gpu(0, 15, 250, power_limit_w=400.0, **more, **slow)])
    assert facts == (
        "  power 250 of 400 W, clocks 1410/1593 MHz, 61 C, throttled 37% of the time (sw_thermal)"
    )


def test_only_what_slows_is_a_reason() -> None:
    """Whatever else a driver names: the share is of those reasons alone."""
    others = {"applications_clocks": 1.0, "other": 1.0, "sync_boost": 0.5}
    slow = gpu(0, 15, 250, throttle={**others, **dict.fromkeys(SLOWING, 0.2)}, throttled=0.2)
    assert slowed(slow) == f"throttled 20% of the time ({', '.join(sorted(SLOWING))})"


def test_eight_devices_are_a_table_below_what_is_apart() -> None:
    rows = [gpu(i, 3.7 if i == 0 else 99.9, 153.0, throttled=0.5 if i == 5 else 0.0) for i in range(8)]
    rows[7] = replace(rows[7], gpu_util=None, reason="too short")
    figures = [replace(row, throttled=row.throttled) for row in rows]
    lines = devices(rows, across(figures))
    assert lines[:2] == [
        "gpu_util least 3.7% (GPU 0), median 99.9%, most 99.9% (GPU 1), 1 unknown; GPU 0 is apart",
        "throttled least 0% of the time (GPU 0), median 0% of the time, most 50% of the time (GPU 5); "
        "GPU 5 is apart",
    ]
    assert lines[2:] == [
        "  GPU  util   p5..p95  power W  throttled",
        "  0    3.7%   0..100   153      0%",
        *(f"  {i}    99.9%  0..100   153      {50 if i == 5 else 0}%" for i in range(1, 7)),
        "  7    -      -        153      0%         unknown: too short",
    ]


def test_parts_of_one_gpu_have_rows_of_their_own_names() -> None:
    parts = [replace(gpu(0, 50, 100), uuid=f"MIG-{i}") for i in range(3)]
    assert [line.split("  ")[1] for line in devices(parts)[1:]] == [f"0 (MIG-{i})" for i in range(3)]


def test_very_many_are_counted() -> None:
    lines = devices([gpu(i, 50, 100) for i in range(20)])
    assert lines[-1] == "  and 4 more devices (--json)"


def test_energy_that_is_unknown_is_not_printed() -> None:
    assert energy(None) == []
    assert energy(1234.6) == ["energy 1235 J/step"]


def test_a_monitor_that_names_no_uuid_leaves_no_empty_brackets() -> None:
    assert devices([replace(gpu(0, 50, 100), uuid="")])[0].startswith("GPU 0: gpu_util 50.0%")


ROW = RankRow(
    rank=0,
    node="n1",
    device="cpu",
    gpu_index=None,
    wait_share=0.1,
    data_share=0.2,
    own_s=0.03,
    cores=2.0,
    loader_workers=0,
)
STRAGGLER = StragglerRank(
    rank=1,
    node="n1",
    cause="loader",
    title="its batches come later",
    gap=0.45,
    certain=True,
    for_=("waits for batches 50% of the time, the others 5%",),
    line=None,
)
FOUND = RanksFinding(
    world_size=2,
    reported=2,
    rows=(ROW, replace(ROW, rank=1, wait_share=0.5)),
    straggler=STRAGGLER,
    late=None,
    abstains=None,
    notes=("PyTorch differs: …",),
)


def test_the_straggler_is_named_with_what_the_others_wait() -> None:
    head, named, note = ranks(FOUND)
    waits = "they wait for each other 10.0% (least), 30.0% (median), 50.0% (most) of the time"
    assert head == f"Ranks: 2 of 2 reported; {waits}"
    assert (
        named == "Straggler: rank 1 on n1, loader: its batches come later; they wait 45.0% of the time for it"
    )
    assert note == "Ranks: PyTorch differs: …"
    assert facts(FOUND) == ["waits for batches 50% of the time, the others 5%"]


def test_where_none_is_named_it_says_whether_that_is_known() -> None:
    healthy = replace(FOUND, straggler=None, notes=())
    assert ranks(healthy)[1:] == ["No rank holds the others up"]
    assert facts(healthy) == []
    assert ranks(replace(healthy, abstains="only 1 was seen"))[1:] == [
        "No straggler is named: only 1 was seen"
    ]
    blind = replace(healthy, rows=(replace(ROW, wait_share=None),), abstains="why")
    assert ranks(blind)[0] == "Ranks: 2 of 2 reported; what they wait for each other is unknown"


def test_on_a_gpu_the_waits_are_the_hosts_alone() -> None:
    on_gpu = replace(FOUND, rows=(replace(ROW, device="cuda:0"), ROW))
    waits = "their hosts wait for each other 10.0% (least), 10.0% (median), 10.0% (most) of the time"
    assert ranks(on_gpu)[0] == f"Ranks: 2 of 2 reported; {waits}, and what their devices wait is not seen"


def test_one_that_is_only_possible_and_a_late_start() -> None:
    sharded = replace(FOUND, straggler=replace(STRAGGLER, certain=False, node=None), notes=())
    assert ranks(sharded)[1].startswith("Possible straggler: rank 1, loader: ")
    late = replace(FOUND, straggler=None, late=LateRank(rank=1, node="n1", seconds=12.0), notes=())
    assert ranks(late)[2] == "Late start: rank 1 began last; the others had waited 12.0 s longer or more"
