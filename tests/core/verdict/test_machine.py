"""What the machine did otherwise on two sides: each device against itself."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import BASE, GOOD, gate, run, verdict

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, Spread
from gpudebug.core.verdict.machine import devices_apart, machine_apart
from gpudebug.core.words import Result, Status


def gpu(index: int, clock: float | None = 1410.0, **throttle: float) -> DeviceEvidence:
    spread = Spread(mean=clock, p5=clock, p50=clock, p95=clock) if clock else None
    return DeviceEvidence(
        index=index, uuid=f"GPU-{index}", name="x", sm_clock_mhz=spread, throttle=dict(throttle)
    )


def side(
    *devices: DeviceEvidence, runs: int = 2, utilisation: float = 30.0, rate: float = 5.0
) -> list[Evidence]:
    return [run(utilisation, rate, devices=devices) for _ in range(runs)]


EIGHT = side(*map(gpu, range(8)))


def eight(which: int, other: DeviceEvidence) -> list[Evidence]:
    return side(*(other if i == which else gpu(i) for i in range(8)), utilisation=61.0, rate=11.0)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (gpu(3), ()),
        (gpu(3, 1280), ()),
        (gpu(3, 1200), ("clocks of GPU 3 1410 and 1200 MHz",)),
        (gpu(3, 1200, gpu_idle=0.3), ()),
        (gpu(3, 1200, sw_power_cap=0.3), ()),
        (gpu(3, 1410, sw_thermal=0.4), ("GPU 3 throttled by sw_thermal 0% and 40% of the time",)),
        (gpu(3, 1410, sw_thermal=0.2), ()),
        (gpu(3, None), ()),
    ],
)
def test_one_slow_card_of_eight_is_named(other: DeviceEvidence, said: tuple[str, ...]) -> None:
    assert machine_apart(EIGHT, eight(3, other)) == said


def test_a_card_that_is_slow_on_both_sides_is_as_it_was() -> None:
    slow = eight(3, gpu(3, 900, hw_thermal=0.9))
    assert machine_apart(slow, slow) == ()


def test_another_card_that_idles_does_not_excuse_the_slow_one() -> None:
    """The worst of all devices would: the idle one's reason stood for the slow one's clock."""
    devices = [gpu(0, 1000), gpu(1, 1410, gpu_idle=0.9)]
    assert machine_apart(side(gpu(0), gpu(1)), side(*devices)) == ("clocks of GPU 0 1410 and 1000 MHz",)


def test_one_device_needs_no_name() -> None:
    assert machine_apart(side(gpu(0)), side(gpu(0, 1000))) == ("clocks of 1410 and 1000 MHz",)


def test_runs_of_earlier_versions_are_compared_by_their_worst_device() -> None:
    met = [
        [run(conditions=Conditions(sm_clock_mhz=clock, throttle={})) for _ in range(2)]
        for clock in (1410.0, 1000.0)
    ]
    assert machine_apart(*met) == ("clocks of 1410 and 1000 MHz",)
    new = [e.model_copy(update={"devices": (gpu(0, 1000),)}) for e in met[1]]
    assert machine_apart(met[0], new) == ("clocks of 1410 and 1000 MHz",)


def test_one_slow_card_in_one_arm_is_no_verdict() -> None:
    found = verdict(EIGHT, eight(5, gpu(5, 900, gpu_idle=0.0)))
    assert (found.status, gate(found, "environment_parity").result) == (Status.INVALID, Result.FAIL)
    assert found.why == "environment differs: clocks of GPU 5 1410 and 900 MHz"


def test_without_figures_of_clocks_nothing_differs() -> None:
    assert machine_apart(BASE, GOOD) == ()


def test_a_neighbour_on_one_of_several_devices_is_named_by_it() -> None:
    met: dict[str, Any] = {"foreign_procs": 1, "foreign_share": 0.5, "foreign_on": 6}
    shared = [e.model_copy(update={"conditions": Conditions(**met)}) for e in eight(0, gpu(0))]
    value = gate(verdict(EIGHT, shared), "device_to_itself").value
    assert value.startswith("1 other process on GPU 6 in trial run ")


def test_a_neighbour_on_a_part_of_a_gpu_is_named_by_that_part() -> None:
    met: dict[str, Any] = {"foreign_procs": 1, "foreign_share": 0.5, "foreign_on": 0, "foreign_uuid": "MIG-b"}
    shared = [e.model_copy(update={"conditions": Conditions(**met)}) for e in eight(0, gpu(0))]
    value = gate(verdict(EIGHT, shared), "device_to_itself").value
    assert value.startswith("1 other process on GPU 0 (MIG-b) in trial run ")


def test_what_differs_has_its_device_and_both_values_apart() -> None:
    other = eight(3, gpu(3, 1200, sw_thermal=0.4))
    assert devices_apart(EIGHT, other) == (
        ("clocks of GPU 3", "1410", "1200", " MHz"),
        ("GPU 3 throttled by sw_thermal", "0%", "40%", " of the time"),
    )
    assert devices_apart(EIGHT, EIGHT) == ()
    assert devices_apart(BASE, GOOD) is None
