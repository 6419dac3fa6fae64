"""What one device did in the window, by the columns that its driver fills."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.collectives import EVERY, H100, checkpoints, healthy, recorded, truly_working
from tests.support.readings import GPU, row

from gpudebug.core.evidence.build import build
from gpudebug.core.evidence.devices import (
    awaited_in,
    awaited_text,
    device_evidence,
    joules_per_step,
    mean_hides,
    mean_misleads,
    notes,
    silent,
    telling,
    waited_for,
)
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.records import AwaitedDevice, DeviceEvidence, DeviceInfo, Evidence, Window
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.samples.window import stretches
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.words import Outcome

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


def evidence_of(rows: tuple[Sample, ...], limit: float | None = None, **missing: str) -> Evidence:
    found = SampleTable(rows=list(rows))
    devices = [
        DeviceInfo(index=i, uuid=uuid, name="NVIDIA H100", kind="nvml", power_limit_w=limit)
        for i, uuid in found.devices
    ]
    run = EndedRun(
        name="0001-sample", role="sample", outcome=Outcome.COMPLETED, devices=devices, missing=missing
    )
    return build(run, RunReadings(samples=found, log=LogSummary()))


@pytest.fixture(scope="module")
def six() -> list[Evidence]:
    return [evidence_of(checkpoints(every, devices=8, seconds=240.0, noise=0.02)) for every in EVERY]


def test_each_of_the_six_names_the_device_and_its_period(six: list[Evidence]) -> None:
    found = [e.awaited for e in six]
    assert [one.index if one else None for one in found] == [0] * 6
    assert [one.every_s if one else None for one in found] == pytest.approx(
        [1.05, 1.5, 3.5, 6.0, 26.0, 51.0], rel=0.01
    )
    assert [e.awaited_reason for e in six] == [None] * 6


def test_least_and_working_rank_the_six(six: list[Evidence]) -> None:
    least = [min(d.gpu_util.mean for d in e.devices if d.gpu_util) for e in six]
    working = [e.working for e in six]
    assert least == sorted(least)
    assert working == sorted(working, key=lambda share: share or 0.0)
    assert working == pytest.approx([truly_working(every) for every in EVERY], abs=0.04)


def test_the_mean_is_marked_in_all_six(six: list[Evidence]) -> None:
    for e in six:
        told, misleads = notes(e)
        assert told.startswith("GPU 0 is idle every ")
        assert "misleads: waiting counts as busy in it" in misleads
        assert "criteria: {devices: working}" in misleads


def test_what_is_advised_is_silent_for_who_does_it(six: list[Evidence]) -> None:
    stored = [e.model_dump(mode="json") for e in six]
    assert mean_hides(stored) == mean_hides(six)
    assert "GPU 0 is busy" in str(mean_hides(six))
    assert "{devices: least}" in str(mean_hides(six))
    assert mean_hides(six, "mean") == mean_hides(six)
    assert (mean_hides(six, "working"), mean_hides(six, "least")) == (None, None)


def test_all_that_spin_are_told_to_who_judges_by_the_least() -> None:
    rows = recorded(lambda _, t: (0.0, 70.0) if t < 5 else (97.0, 150.0), 4, 60.0, noise=0.02)
    found = evidence_of(tuple(rows), limit=700.0)
    said = str(mean_hides([found]))
    assert said.startswith("the mean gpu_util of 97")
    assert mean_hides([found], "least") == said
    assert mean_hides([found], "working") is None


def test_unlike_devices_without_power_are_told_once() -> None:
    rows = [replace(r, power_w=None) for r in checkpoints(50, devices=2, seconds=30.0)]
    found = evidence_of(tuple(rows))
    assert "{devices: least}" in str(mean_hides([found, found]))
    assert mean_hides([found], "least") is None


def test_a_healthy_job_has_nothing_to_note() -> None:
    found = evidence_of(healthy(H100, seconds=60.0), limit=700.0)
    assert found.awaited is None
    assert notes(found) == ()


def test_without_power_shares_are_unknown_and_the_reason_is_the_drivers() -> None:
    rows = tuple(Sample(*(getattr(r, n) for n in _FIRST)) for r in checkpoints(50, devices=2, seconds=30.0))
    found = evidence_of(rows, power_w="not supported by this driver")
    assert found.working is None
    assert found.working_reason == "not supported by this driver"
    assert found.awaited_reason == "GPU 0: no reading of power"
    assert [d.working_reason for d in found.devices] == ["not supported by this driver"] * 2
    (note,) = notes(found)
    assert note.startswith("the mean over GPUs misleads: GPU 0 is busy ")


_FIRST = (
    *("elapsed", "gpu_util", "mem_used_mb", "gpu_index", "gpu_uuid", "new_samples", "rss_mb", "log_bytes"),
)


def test_without_a_window_nothing_is_said() -> None:
    found = evidence_of(checkpoints(50, devices=2, seconds=2.0))
    assert found.window is None
    assert (found.working, found.working_reason, found.awaited_reason) == (None, None, None)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"state": "idle", "times": 66, "length_s": 1.0, "every_s": 3.5},
            "GPU 3 is idle every 3.5 s for 1 s while the others are busy at waiting power: "
            "periodic work on one device",
        ),
        (
            {"state": "works", "times": 4, "length_s": 2.0, "every_s": None},
            "GPU 3 works alone 4 times for 2 s on average while the others are busy at waiting power: "
            "they wait for it",
        ),
        (
            {"state": "idle", "times": 1, "length_s": 61.0, "every_s": None},
            "GPU 3 is idle for 1 min 1 s while the others are busy at waiting power: they wait for it",
        ),
    ],
)
def test_the_sentence(fields: dict[str, object], text: str) -> None:
    found = AwaitedDevice.model_validate({"index": 3, "uuid": "GPU-3", "share": 0.2, "alike": True, **fields})
    assert awaited_text(found) == text
    part = found.model_copy(update={"uuid": "MIG-7"})
    assert awaited_text(part) == text.replace("GPU 3", "GPU 3 (MIG-7)")


@pytest.mark.parametrize(
    ("utilisation", "share", "awaited", "said"),
    [
        (97.0, 0.95, False, False),
        (97.0, 0.95, True, True),
        (97.0, 0.4, False, True),
        (97.0, None, True, False),
        (None, 0.4, True, False),
    ],
)
def test_when_the_mean_misleads(
    utilisation: float | None, share: float | None, awaited: bool, said: bool
) -> None:
    assert (mean_misleads(utilisation, share, awaited=awaited) is not None) is said


def test_a_record_and_its_json_have_the_same_notes(six: list[Evidence]) -> None:
    for e in six:
        assert notes(e.model_dump(mode="json")) == notes(e)


def test_the_device_that_all_runs_wait_for(six: list[Evidence]) -> None:
    alone, none = six[2], healthy_run()
    assert waited_for([alone]) == notes(alone)[0]
    assert waited_for([none]) is None
    # Of two runs one shows it: half of the time, as a mean.
    assert alone.awaited is not None
    assert f"({alone.awaited.share / 2:.0%} of the window)" in str(waited_for([alone, none]))
    other = alone.awaited.model_copy(update={"index": 3, "uuid": "GPU-3"})
    assert waited_for([alone, alone.model_copy(update={"awaited": other})]) is None


@pytest.mark.parametrize("record", [{"x": 1}, "GPU 0", 7, [1], None])
def test_a_record_that_is_none_is_waited_for_by_none(record: object) -> None:
    assert awaited_in([{"working": 0.5, "awaited": record}]) is None
    assert notes({"working": 0.5, "utilisation": 50.0, "awaited": None, "devices": None}) == ()


def test_what_tells_how_busy_devices_are(six: list[Evidence]) -> None:
    assert {telling([e]) for e in six} == {"working"}
    assert telling([healthy_run()]) is None
    lacking = six[0].model_copy(update={"working": None, "awaited": None})
    assert telling([lacking]) == "least"


def healthy_run() -> Evidence:
    return evidence_of(healthy(devices=8, seconds=60.0))
