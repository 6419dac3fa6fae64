"""Which device a setting means here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support import nvml

from gpudebug.core.errors import DeviceError
from gpudebug.core.records import DeviceInfo
from gpudebug.edges import devices
from gpudebug.edges.devices.cpu import available_cores


def records(resolved: devices.Resolved) -> list[DeviceInfo]:
    return [DeviceInfo(**device) for device in resolved.devices]


def test_auto_takes_the_gpus_that_the_program_would_see(tmp_path: Path) -> None:
    env = nvml.standin(tmp_path, "count=2")
    found = devices.resolve("auto", {**env, "CUDA_VISIBLE_DEVICES": "1"})
    assert found.spec == {"kind": "nvml", "uuids": [nvml.uuid(1)]}
    assert [(info.index, info.uuid, info.driver) for info in records(found)] == [
        (1, nvml.uuid(1), "550.54.15")
    ]


@pytest.mark.parametrize("script", ["init_error=9", "count=0"])
def test_auto_takes_the_cpu_where_there_is_no_gpu_and_says_so(tmp_path: Path, script: str) -> None:
    if script == "init_error=9" and devices_present():
        pytest.skip("an NVIDIA GPU is on this machine's bus: an unloaded driver is then a broken one")
    found = devices.resolve("auto", nvml.standin(tmp_path, script))
    assert found.spec == {"kind": "cpu", "cores": available_cores(), "own": 0}
    assert "stands in" in found.notes[0]


def devices_present() -> bool:
    from gpudebug.edges.devices.probe import nvidia_hardware

    return nvidia_hardware()


def test_auto_takes_the_cpu_where_there_is_no_driver(tmp_path: Path) -> None:
    found = devices.resolve("auto", nvml.no_driver(tmp_path))
    assert records(found)[0].uuid == "CPU"


@pytest.mark.parametrize("hide", ["", "-1"])
def test_hidden_gpus_mean_the_cpu_for_auto_and_an_error_for_nvml(tmp_path: Path, hide: str) -> None:
    env = {**nvml.standin(tmp_path, "count=1"), "CUDA_VISIBLE_DEVICES": hide}
    assert devices.resolve("auto", env).spec["kind"] == "cpu"
    with pytest.raises(DeviceError, match="hides every GPU"):
        devices.resolve("nvml", env)


@pytest.mark.parametrize("script", ["init_error=18", "init_error=999", "crash_at=-1"])
def test_a_broken_driver_never_falls_back_silently(tmp_path: Path, script: str) -> None:
    env = nvml.standin(tmp_path, script)
    for setting in ("auto", "nvml"):
        with pytest.raises(DeviceError) as caught:
            devices.resolve(setting, env)
        assert "device: cpu" in str(caught.value.next)


def test_nvml_without_a_driver_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        devices.resolve("nvml", nvml.no_driver(tmp_path))


def test_a_lost_gpu_is_an_error_only_where_it_is_the_run_s(tmp_path: Path) -> None:
    env = nvml.standin(tmp_path, "count=2\ngpu 0 handle_error=15")
    assert devices.resolve("nvml", {**env, "CUDA_VISIBLE_DEVICES": "1"}).spec["uuids"] == [nvml.uuid(1)]
    with pytest.raises(DeviceError, match="GPU 0 does not answer"):
        devices.resolve("auto", {**env, "CUDA_VISIBLE_DEVICES": "0"})


def test_mig_resolves_with_the_reason_for_what_it_lacks(tmp_path: Path) -> None:
    found = devices.resolve("auto", nvml.standin(tmp_path, "gpu 0 mig=1"))
    assert found.spec["uuids"][0].startswith("MIG-")
    assert any("reports no utilisation" in note for note in found.notes)


@pytest.mark.parametrize(
    ("setting", "cores", "own"), [("cpu:1", 1.0, 1), ("cpu:0.5", 0.5, 1), ("cpu", available_cores(), 0)]
)
def test_cpu(setting: str, cores: float, own: int) -> None:
    found = devices.resolve(setting, {})
    assert found.spec == {"kind": "cpu", "cores": cores, "own": own}
    assert records(found)[0].cores == cores
    assert found.notes == ()


def test_more_cores_than_there_are_is_remarked_on() -> None:
    assert "may use" in devices.resolve("cpu:4096", {}).notes[0]


@pytest.mark.parametrize(
    "setting", ["cpu:0", "cpu:-1", "cpu:x", "cpu:", "cpu:inf", "cpu:nan", "tpu", "", "NVML"]
)
def test_a_setting_that_means_nothing(setting: str) -> None:
    env: Mapping[str, str] = {}
    with pytest.raises(DeviceError) as caught:
        devices.resolve(setting, env)
    assert caught.value.next
