"""Each check of a GPU passes on a healthy one, fails for its own fault, and abstains without evidence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support import gpu_recordings as made
from tests.support import nvml

from gpudebug.core.hardware.plan import Load
from gpudebug.core.samples.row import DeviceReading

GPU = nvml.uuid(0)
Change = Callable[[DeviceReading, Load | None], DeviceReading]


def changed(change: Change) -> made.Rule:
    return lambda index, load: change(made.healthy(index, load), load)


def test_a_healthy_gpu_passes_each_check() -> None:
    found = made.table()
    assert {check.result for check in found.values()} == {"ok"}
    assert {check.next for check in found.values()} == {None}
    assert "15 %: 15.0 % read, 15.0 % made" in found["GPU 0 utilisation"].found
    assert found["GPU 0 power"].found == "80 W idle, 140 W at 15 %, 280 W at 50 %, 460 W at 95 %"


def test_two_healthy_gpus_pass_alone_and_together() -> None:
    found = made.table(2)
    assert {check.result for check in found.values()} == {"ok"}
    assert "GPU 0: 15.0 % read" in found["two together"].found
    assert "GPU 1: 95.0 % read" in found["two together"].found


FAULTS: dict[str, tuple[Change, set[str]]] = {
    "always 100 %": (lambda r, load: r._replace(gpu_util=100.0), {"utilisation", "idle"}),
    "half of it": (lambda r, load: r._replace(gpu_util=(r.gpu_util or 0) / 2), {"utilisation"}),
    "flat power": (lambda r, load: r._replace(power_w=250.0), {"power", "spinning"}),
    "spinning costs as much": (
        lambda r, load: r._replace(power_w=80 + 400 * (load.duty if load else 0)),
        {"spinning"},
    ),
    "hot": (lambda r, load: r._replace(throttle="sw_power_cap+hw_thermal"), {"throttling"}),
    "own process foreign": (lambda r, load: r._replace(foreign_procs=int(load is not None)), {"processes"}),
    "memory of another": (lambda r, load: r._replace(mem_used_mb=2048.0), {"memory"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_its_own_checks_and_says_what_to_do(fault: str) -> None:
    change, names = FAULTS[fault]
    found = made.table(rule=changed(change))
    failed = {name.removeprefix("GPU 0 ") for name, check in found.items() if check.result == "failed"}
    assert failed == names
    assert all(check.next for check in found.values() if check.result == "failed")


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("gpu_util", {"utilisation", "idle", "columns"}),
        ("power_w", {"power", "spinning", "columns"}),
        ("throttle", {"throttling", "columns"}),
        ("foreign_procs", {"processes", "columns"}),
        ("mem_used_mb", {"memory", "columns"}),
    ],
)
def test_what_a_driver_lacks_is_unknown_with_its_reason(column: str, names: set[str]) -> None:
    # The builder counts energy by power.
    energy = {"energy_j": {GPU: 900.0}} if column == "power_w" else {}
    found = made.table(
        rule=changed(lambda r, load: r._replace(**{column: None})),
        notes={"missing": {column: "Not Supported"}, **energy},
    )
    without = {name.removeprefix("GPU 0 "): check for name, check in found.items() if check.result != "ok"}
    assert set(without) == names
    assert all(check.result == "unknown" and "Not Supported" in check.found for check in without.values())


def test_a_permission_is_to_be_given() -> None:
    found = made.table(notes={"missing": {"temperature_c": "Insufficient Permissions"}})
    assert found["GPU 0 columns"].result == "failed"
    assert "/dev/nvidia" in (found["GPU 0 columns"].next or "")


def test_a_reason_of_one_gpu_is_not_the_others() -> None:
    found = made.table(2, notes={"missing": {"temperature_c": "GPU 1: Not Supported"}})
    assert (found["GPU 0 columns"].result, found["GPU 1 columns"].result) == ("ok", "unknown")
    assert found["GPU 1 columns"].found == "temperature_c: Not Supported"


def test_the_energy_counter_against_power() -> None:
    assert made.table(notes={"energy_j": {}})["GPU 0 energy"].result == "unknown"
    assert made.table(notes={"energy_j": {GPU: 1.0}})["GPU 0 energy"].result == "failed"
    no_power = changed(lambda r, load: r._replace(power_w=None))
    assert made.table(rule=no_power, notes={"energy_j": {GPU: 900.0}})["GPU 0 energy"].result == "ok"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ({"kind": "timer", "asked_s": 0.05, "event_s": 0.08, "host_s": 0.09}, "events"),
        ({"kind": "timer", "asked_s": 0.05, "event_s": 0.05, "host_s": 0.01}, "events"),
        ({"kind": "copy", "bytes": 1, "to_s": 1.0, "back_s": 1.0, "same": False}, "copies"),
    ],
)
def test_a_clock_or_a_copy_that_is_wrong_fails(line: dict[str, object], name: str) -> None:
    found = made.table(more=({**line, "gpu": GPU},))
    assert [n for n, check in found.items() if check.result == "failed"] == [f"GPU 0 {name}"]


def test_gpus_that_are_taken_for_each_other_fail() -> None:
    def swapped(index: int, load: Load | None) -> DeviceReading:
        return made.healthy(index, load)._replace(gpu_util=100.0 - 100 * (load.duty if load else 0))

    found = made.table(2, swapped)
    failed = {name for name, check in found.items() if check.result == "failed"}
    assert failed >= {"GPU 0 utilisation", "GPU 1 utilisation", "GPU 0 idle", "two together"}


def test_a_run_that_ended_early_leaves_the_rest_unknown() -> None:
    found = made.table(until=9.0, machine_=made.machine(outcome="CRASHED", reason="exit status 1"))
    assert found["load"].result == "failed" and "CRASHED after work 15: exit status 1" in found["load"].found
    assert found["GPU 0 utilisation"].result == found["GPU 0 power"].result == "unknown"
    assert found["GPU 0 idle"].result == "ok"
    assert all(check.next for check in found.values() if check.result != "ok")
