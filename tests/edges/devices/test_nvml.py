"""NVIDIA devices as the sampler reads them from a scripted driver."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pynvml
import pytest
from tests.support import nvml
from tests.support.sampling import SamplerProcess, mean_util, numbers

from gpudebug.core.evidence.devices import device_evidence
from gpudebug.core.records import DeviceInfo, Window
from gpudebug.core.samples.table import read_samples
from gpudebug.core.samples.window import stretches
from gpudebug.core.statistics.across import across
from gpudebug.edges import devices
from gpudebug.edges.devices import probe
from gpudebug.edges.devices.nvml import THROTTLE, throttle_names


def sample(folder: Path, script: str, seconds: float, *defines: str, **order: object) -> SamplerProcess:
    """Sample all GPUs of the script for some time, or until the sampler ends by itself."""
    env = nvml.standin(folder, script, *defines)
    spec = devices.resolve("nvml", env).spec
    with SamplerProcess(folder, spec, env, **order) as run:
        assert run.answer.get("ready"), run.answer
        run.launch()
        until = time.monotonic() + seconds
        while time.monotonic() < until and run.process.poll() is None:
            time.sleep(0.02)
        if run.process.poll() is None:
            run.stop()
    return run


def test_a_steady_device_reports_its_utilisation(tmp_path: Path) -> None:
    start = time.monotonic()
    run = sample(tmp_path, "gpu 0 util=15 mem_used=2048 power=250 throttle=4 temperature=61", 1.5)
    whole = time.monotonic() - start
    rows = run.rows()
    assert mean_util(rows) == pytest.approx(15, abs=1)
    # What the buffer held before the launch (77 %) is not the run's.
    assert set(numbers(rows, "gpu_util")) == {15}
    span = numbers(rows, "elapsed")[-1]
    assert sum(numbers(rows, "new_samples")) == pytest.approx(10 * span, abs=3)
    first = rows[0]
    assert (first["gpu_index"], first["gpu_uuid"]) == ("0", nvml.uuid(0))
    assert [first[column] for column in ("mem_used_mb", "mem_total_mb", "power_w", "mem_util")] == [
        "2048",
        "81920",
        "250",
        "5",
    ]
    assert [first[column] for column in ("sm_clock_mhz", "mem_clock_mhz", "temperature_c", "throttle")] == [
        "1410",
        "1593",
        "61",
        "sw_power_cap",
    ]
    notes = run.notes()
    assert (notes["source"], notes["missing"], notes["driver"]) == ("samples", {}, "550.54.15")
    # From before the first sample to after the last, however long a busy machine takes between them.
    assert 250 * span * 0.99 <= notes["energy_j"][nvml.uuid(0)] <= 250 * whole
    # It began before the run: only a difference of it is the run's.
    counted = [row for row in rows if row["energy_j"]]
    assert len(counted) >= 2
    used, between = (
        numbers(counted, column)[-1] - numbers(counted, column)[0] for column in ("energy_j", "elapsed")
    )
    assert 0 < used < 1e6
    assert used == pytest.approx(250 * between, rel=0.3)


def test_each_of_eight_devices_has_its_own_figures(tmp_path: Path) -> None:
    """From the driver to the evidence: what one of them does is not lost among the others."""
    slow = "gpu 5 util=4 power=120 sm_clock=900 throttle=64 temperature=88 power_limit=300"
    run = sample(tmp_path, f"count=8\n{slow}", 1.6)
    with run.csv.open() as file:
        table = read_samples(file, "samples.csv")
    infos = {
        d["uuid"]: DeviceInfo(**d)
        for d in probe.probe_nvml(nvml.standin(tmp_path, f"count=8\n{slow}")).devices
    }
    window = Window(start_s=0.2, end_s=1.4, samples=12, rule="steps")
    found = [
        device_evidence(key, infos[key[1]], rows, stretches(rows, key), window, None, {})
        for key, rows in table.by_device.items()
    ]
    assert [d.index for d in found] == list(range(8))
    assert [round(d.power_w.mean) if d.power_w else None for d in found] == [250] * 5 + [120] + [250] * 2
    assert [d.throttled for d in found] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert [d.power_limit_w for d in found] == [400] * 5 + [300] + [400] * 2
    for d in found:
        assert d.energy_j is not None
        assert d.energy_j == pytest.approx((120 if d.index == 5 else 250) * 1.2, rel=0.3)
    apart = {one.figure: [d.index for d in one.apart] for one in across(found)}
    assert {name for name, indices in apart.items() if indices == [5]} >= {
        *("power_w", "sm_clock_mhz", "temperature_c", "throttled")
    }


def test_a_ramp_is_followed(tmp_path: Path) -> None:
    run = sample(tmp_path, "gpu 0 util=0@0 util=100@1.5 linear=1", 1.5)
    rows = [row for row in run.rows() if row["new_samples"] != "0"]
    # The timeline starts when the driver is loaded, a moment before the launch.
    for row in rows:
        assert float(row["gpu_util"]) == pytest.approx(min(100, 67 * float(row["elapsed"])), abs=25)
    assert numbers(rows, "gpu_util") == sorted(numbers(rows, "gpu_util"))


def test_all_samples_between_two_ticks_are_averaged(tmp_path: Path) -> None:
    script = "period=0.02\ngpu 0 " + " ".join(f"util={90 * (i % 2)}@{i / 10:.1f}" for i in range(40))
    run = sample(tmp_path, script, 1.5, interval=0.4)
    middle = run.rows()[1:-1]
    assert all(18 <= int(row["new_samples"]) <= 22 for row in middle)
    assert all(float(row["gpu_util"]) == pytest.approx(45, abs=10) for row in middle)


def test_one_of_two_gpus_is_chosen_and_held_by_uuid(tmp_path: Path) -> None:
    env = nvml.standin(tmp_path, "count=2\ngpu 0 util=80\ngpu 1 util=15")
    resolved = devices.resolve("auto", {**env, "CUDA_VISIBLE_DEVICES": "1"})
    assert resolved.spec == {"kind": "nvml", "uuids": [nvml.uuid(1)]}
    with SamplerProcess(tmp_path, resolved.spec, env) as run:
        run.launch()
        run.wait_for_rows(5)
        run.stop()
    assert {(row["gpu_index"], row["gpu_uuid"]) for row in run.rows()} == {("1", nvml.uuid(1))}
    assert mean_util(run.rows()) == pytest.approx(15, abs=1)


def test_two_gpus_have_a_row_each_at_every_tick(tmp_path: Path) -> None:
    run = sample(tmp_path, "count=2\ngpu 0 util=80\ngpu 1 util=15", 0.6)
    rows = run.rows()
    assert [row["gpu_index"] for row in rows[:4]] == ["0", "1", "0", "1"]
    assert rows[0]["elapsed"] == rows[1]["elapsed"]
    assert set(numbers(rows[0::2], "gpu_util")) == {80}
    assert set(numbers(rows[1::2], "gpu_util")) == {15}


def test_mig_has_no_utilisation_and_says_why(tmp_path: Path) -> None:
    run = sample(tmp_path, "gpu 0 mig=2 util=50", 0.5)
    rows = run.rows()
    assert {row["gpu_util"] for row in rows} == {""}
    assert {row["mem_total_mb"] for row in rows} == {"40960"}
    assert rows[0]["gpu_uuid"].startswith("MIG-")
    notes = run.notes()
    assert notes["source"] == "none"
    assert notes["missing"]["gpu_util"] == "Not Supported"
    assert {"power_w", "mem_util", "sm_clock_mhz", "temperature_c", "throttle"} <= set(notes["missing"])


def test_without_a_sample_buffer_the_rates_are_read(tmp_path: Path) -> None:
    run = sample(tmp_path, "no_samples=1\ngpu 0 util=15", 1)
    assert run.notes()["source"] == "rates"
    assert mean_util(run.rows()) == pytest.approx(15, abs=1)
    # At 10 Hz not every reading can be new: a product refreshes its figure at most six times a second.
    assert 4 <= sum(numbers(run.rows(), "new_samples")) <= 7


def test_an_idle_device_whose_buffer_runs_dry_is_at_zero_not_unknown(tmp_path: Path) -> None:
    run = sample(tmp_path, "dry=1\ngpu 0 util=60@0 util=0@0.5", 2.6)
    late = [row for row in run.rows() if float(row["elapsed"]) > 1.7]
    new = [row for row in late if row["new_samples"] != "0"]
    assert new
    assert {row["gpu_util"] for row in new} == {"0"}


def test_samples_of_another_value_type_are_understood(tmp_path: Path) -> None:
    run = sample(tmp_path, "doubles=1\ngpu 0 util=42", 0.5)
    assert set(numbers(run.rows(), "gpu_util")) == {42}


def test_an_old_driver_has_throttle_reasons_under_their_old_name(tmp_path: Path) -> None:
    run = sample(tmp_path, "gpu 0 util=15 throttle=96", 0.3, "OLD_DRIVER")
    assert run.rows()[0]["throttle"] == "sw_thermal+hw_thermal"


def test_a_value_that_the_device_lacks_is_empty_with_its_reason(tmp_path: Path) -> None:
    run = sample(tmp_path, "unsupported=power,temperature,energy\ngpu 0 util=15", 0.4)
    assert {row["power_w"] for row in run.rows()} == {""}
    assert {row["temperature_c"] for row in run.rows()} == {""}
    assert {row["energy_j"] for row in run.rows()} == {""}
    assert set(numbers(run.rows(), "sm_clock_mhz")) == {1410}
    notes = run.notes()
    assert set(notes["missing"]) == {"power_w", "temperature_c", "energy_j"}
    assert notes["energy_j"] == {}


def test_a_passing_trouble_costs_cells_not_the_run(tmp_path: Path) -> None:
    run = sample(tmp_path, "error=999 error_at=0.6 error_until=0.8\ngpu 0 util=15", 1.2)
    rows = run.rows()
    assert run.process.returncode == 0
    assert any(row["power_w"] == "" for row in rows)
    assert rows[-1]["power_w"] == "250"


@pytest.mark.parametrize(
    ("script", "word"),
    [("lost_at=0.6", "lost"), ("error=999 error_at=0.6", "999"), ("error=16 error_at=0.6", "16")],
)
def test_a_device_that_is_lost_ends_the_sampler_with_its_own_status(
    tmp_path: Path, script: str, word: str
) -> None:
    run = sample(tmp_path, f"{script}\ngpu 0 util=15", 10)
    assert run.process.returncode == 3
    notes = run.notes()
    assert word in notes["lost"]
    assert notes["complete"]
    # Nothing was invented after the loss, and what was sampled before it stays.
    assert set(numbers(run.rows(), "gpu_util")) == {15}


@pytest.mark.parametrize(
    ("fault", "ending"), [("crash", signal.SIGABRT), ("hang", signal.SIGALRM)], ids=["crash", "hang"]
)
def test_a_call_that_crashes_or_hangs_costs_a_gap_when_the_sampler_is_started_again(
    tmp_path: Path, fault: str, ending: int
) -> None:
    env = nvml.standin(tmp_path, f"{fault}_at=0.8 {fault}_times=1\ngpu 0 util=15")
    spec = {"kind": "nvml", "uuids": [nvml.uuid(0)]}
    with SamplerProcess(tmp_path, spec, env, hang=0.5) as first:
        first.launch()
        assert first.wait() == -ending
    before = len(first.rows())
    assert before >= 3
    # A start may be quicker than the interval.
    time.sleep(0.3)
    with SamplerProcess(tmp_path, spec, env, hang=0.5, resume=True) as second:
        second.launch(t0=first.t0)
        second.wait_for_rows(before + 5)
        assert second.stop() == 0
    rows = second.rows()
    times = [float(row["elapsed"]) for row in rows]
    assert times == sorted(times)
    assert mean_util(rows) == pytest.approx(15, abs=1)
    notes = second.notes()
    assert notes["restarts"] == 1
    assert notes["missed"] >= 1
    assert notes["missing"] == {"energy_j": "the sampler was restarted in mid-run"}


def test_a_slow_call_is_not_made_at_every_tick(tmp_path: Path) -> None:
    run = sample(tmp_path, "slow=0.004\ngpu 0 util=15", 1.5)
    rows = run.rows()
    assert len(numbers(rows, "power_w")) <= 3
    assert len(numbers(rows, "gpu_util")) >= 10
    assert rows[0]["power_w"] == "250"


def test_an_unknown_uuid_is_an_error_before_the_run(tmp_path: Path) -> None:
    env = nvml.standin(tmp_path, "gpu 0 util=15")
    with SamplerProcess(tmp_path, {"kind": "nvml", "uuids": ["GPU-gone"]}, env) as run:
        assert run.wait() == 4
    assert run.answer["error"]["code"] == "device"
    assert run.answer["error"]["next"]
    assert not run.csv.exists()


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0, "none"),
        (1, "gpu_idle"),
        (0x20 | 0x40, "sw_thermal+hw_thermal"),
        (0x4 | 1 << 40, "sw_power_cap+other"),
    ],
)
def test_throttle_reasons_have_names(mask: int, names: str) -> None:
    assert throttle_names(mask) == names


def test_the_bits_of_the_throttle_reasons_are_nvidia_ml_py_s() -> None:
    names = {
        "gpu_idle": "GpuIdle",
        "applications_clocks": "ApplicationsClocksSetting",
        "sw_power_cap": "SwPowerCap",
        "hw_slowdown": "HwSlowdown",
        "sync_boost": "SyncBoost",
        "sw_thermal": "SwThermalSlowdown",
        "hw_thermal": "HwThermalSlowdown",
        "hw_power_brake": "HwPowerBrakeSlowdown",
        "display_clock": "DisplayClockSetting",
    }
    assert {
        bit: getattr(pynvml, f"nvmlClocksThrottleReason{names[name]}") for bit, name in THROTTLE.items()
    } == {bit: bit for bit in THROTTLE}
