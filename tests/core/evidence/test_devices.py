"""What one device did in the window, by the columns that its driver fills."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.readings import GPU, row

from gpudebug.core.evidence.devices import device_evidence, joules_per_step, silent
from gpudebug.core.records import DeviceEvidence, DeviceInfo, Window
from gpudebug.core.samples.table import Sample
from gpudebug.core.samples.window import stretches

WINDOW = Window(start_s=2.0, end_s=8.0, samples=60, rule="steps")
INFO = DeviceInfo(
    index=0, uuid="GPU-0", name="NVIDIA A100", kind="nvml", memory_total_mb=40960.0, power_limit_w=400.0
)


def told(
    rows: list[Sample], window: Window | None = WINDOW, info: DeviceInfo | None = INFO
) -> DeviceEvidence:
    return device_evidence(GPU, info, rows, stretches(rows, GPU), window, "too short", {})


def ticks(seconds: float = 10, every: float = 0.1, **columns: Any) -> list[Sample]:
    """A row each `every` s; a column is a value or a function of the time that the row ends."""
    times = [round(every * (i + 1), 6) for i in range(round(seconds / every))]
    return [
        replace(
            row(t, 50), **{name: value(t) if callable(value) else value for name, value in columns.items()}
        )
        for t in times
    ]


def test_each_column_has_its_spread_in_the_window() -> None:
    half = lambda t: 300.0 if t <= 5 else 100.0  # noqa: E731
    found = told(
        ticks(power_w=half, sm_clock_mhz=1410.0, mem_clock_mhz=1593.0, temperature_c=61.0, mem_util=9.0)
    )
    assert found.power_w is not None
    assert found.power_w.mean == pytest.approx(200, abs=1)
    assert (found.power_w.p5, found.power_w.p95) == (100, 300)
    figures = (found.sm_clock_mhz, found.mem_clock_mhz, found.temperature_c, found.mem_util)
    assert [f.mean if f else None for f in figures] == pytest.approx([1410, 1593, 61, 9])
    assert (found.power_limit_w, found.mem_total_mb) == (400, 40960)


def test_power_that_varies_slowly_has_a_wide_error() -> None:
    """Phases of 1 s: 60 readings are worth no more than a few."""
    steady = told(ticks(power_w=300.0)).power_error
    slow = told(ticks(power_w=lambda t: 500.0 if t % 2 < 1 else 150.0)).power_error
    assert steady == 0.0
    assert slow is not None and slow > 2 * 175 / 60**0.5 / 2
    assert told(ticks()).power_error is None


def test_what_no_row_has_is_unknown_and_not_zero() -> None:
    found = told(ticks(), info=None)
    blank = DeviceEvidence(index=0, uuid="GPU-0", name="")
    assert found == blank.model_copy(
        update={"gpu_util": found.gpu_util, "standard_error": found.standard_error}
    )


def test_what_was_read_for_too_little_of_the_window_has_no_spread() -> None:
    found = told(
        ticks(power_w=lambda t: 300.0 if t <= 5 else None, throttle=lambda t: "none" if t <= 5 else None)
    )
    assert (found.power_w, found.energy_j, found.throttle, found.throttled) == (None,) * 4


def test_without_a_window_the_reason_says_why() -> None:
    found = told(ticks(power_w=300.0), window=None)
    assert (found.reason, found.power_w, found.energy_j) == ("too short", None, None)


def test_a_reason_that_slows_counts_for_its_time() -> None:
    """Rows are further apart where it was set: shares of rows would be another figure."""
    fast, slow = ticks(4, throttle="none"), ticks(10, 0.5, throttle="sw_thermal+hw_thermal")
    found = told([*fast, *(r for r in slow if r.elapsed > 4)])
    assert found.throttle == pytest.approx({"hw_thermal": 2 / 3, "sw_thermal": 2 / 3})
    assert found.throttled == pytest.approx(2 / 3)


@pytest.mark.parametrize("reason", ["none", "gpu_idle", "sw_power_cap", "applications_clocks"])
def test_what_a_busy_or_idle_device_does_of_itself_slows_nothing(reason: str) -> None:
    assert told(ticks(throttle=reason)).throttled == 0


def test_the_counter_of_energy_counts_in_the_window_alone() -> None:
    """Read once a second, from another beginning than the run's, and 100 W in the window."""
    counter = lambda t: 5000 + 100 * t + 300 * max(0, t - 8) if abs(t - round(t)) < 0.01 else None  # noqa: E731
    found = told(ticks(power_w=250.0, energy_j=counter))
    assert (found.energy_j, found.energy_by) == (pytest.approx(600), "counter")


def test_without_a_counter_energy_is_power_over_time() -> None:
    found = told(ticks(power_w=250.0))
    assert (found.energy_j, found.energy_by) == (pytest.approx(1500), "power")


@pytest.mark.parametrize(
    "counter",
    [lambda t: 9000 - t, lambda t: 100 * t if t < 6 else None, lambda t: 5.0 if t == 3 else None],
    ids=["backwards", "too little of the window", "once"],
)
def test_a_counter_that_cannot_be_right_is_not_believed(counter: Any) -> None:
    assert told(ticks(power_w=250.0, energy_j=counter)).energy_by == "power"
    assert told(ticks(energy_j=counter)).energy_j is None


def test_joules_a_step_are_of_all_devices() -> None:
    half = told(ticks(power_w=250.0))
    assert joules_per_step([half, half], WINDOW, 5.0) == pytest.approx(2 * 1500 / 30)


def test_joules_a_step_are_unknown_without_a_device_s_energy_or_the_steps() -> None:
    one, silent_one = told(ticks(power_w=250.0)), told(ticks())
    assert joules_per_step([one, silent_one], WINDOW, 5.0) is None
    assert joules_per_step([one], WINDOW, None) is None
    assert joules_per_step([one], None, 5.0) is None
    assert joules_per_step([], WINDOW, 5.0) is None


def test_a_device_without_a_row_is_named_all_the_same() -> None:
    other = INFO.model_copy(update={"index": 1, "uuid": "GPU-1"})
    (found,) = silent([INFO, other], [GPU])
    assert (found.index, found.uuid, found.reason) == (1, "GPU-1", "no device reading")
    assert silent([INFO], [GPU]) == []
