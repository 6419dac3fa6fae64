"""Asking the driver what is there, whatever state it is in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import nvml

from gpudebug.core.errors import DeviceError
from gpudebug.edges.devices.probe import nvidia_hardware, probe_nvml


def test_a_driver_that_answers(tmp_path: Path) -> None:
    found = probe_nvml(nvml.standin(tmp_path, "count=2 driver=555.1\ngpu 1 name=NVIDIA_H100 mem_total=1000"))
    assert found.works
    assert found.driver == "555.1"
    assert [device["uuid"] for device in found.devices] == [nvml.uuid(0), nvml.uuid(1)]
    second = found.devices[1]
    assert (second["name"], second["memory_total_mb"], second["mig"]) == ("NVIDIA H100", 1000, False)
    assert second["missing"] == {}


def test_mig_parts_are_listed_with_their_instances(tmp_path: Path) -> None:
    device = probe_nvml(nvml.standin(tmp_path, "gpu 0 mig=2")).devices[0]
    assert device["mig"]
    assert [(part["gpu_instance"], part["compute_instance"]) for part in device["mig_devices"]] == [
        (7, 0),
        (8, 0),
    ]
    assert device["mig_devices"][0]["missing"] == {"gpu_util": "Not Supported"}


def test_a_driver_without_mig_is_no_trouble(tmp_path: Path) -> None:
    assert probe_nvml(nvml.standin(tmp_path, "unsupported=mig_mode")).devices[0]["mig"] is False


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (4, "/dev/nvidia"),
        (9, "modprobe"),
        (15, "Xid"),
        (16, "gpu-reset"),
        (17, "container"),
        (18, "reload"),
        (999, "container"),
        (23, "nvidia-smi"),
    ],
)
def test_a_driver_in_trouble_says_what_to_do(tmp_path: Path, code: int, word: str) -> None:
    found = probe_nvml(nvml.standin(tmp_path, f"init_error={code}"))
    assert not found.works
    error = found.as_error()
    assert isinstance(error, DeviceError)
    assert f"NVML error {code}" in error.message
    assert word in str(error.next)
    assert "device: cpu" in str(error.next)


def test_no_driver_is_absent_and_not_broken(tmp_path: Path) -> None:
    found = probe_nvml(nvml.no_driver(tmp_path))
    assert found.absent
    assert "no NVIDIA driver" in found.as_error().message


def test_a_driver_that_hangs_is_given_up(tmp_path: Path) -> None:
    found = probe_nvml(nvml.standin(tmp_path, "hang_at=-1"), timeout=1)
    assert found.hung
    assert not found.works
    assert not found.absent
    assert "within 1 s" in found.as_error().message


def test_a_driver_that_crashes_takes_only_the_child_along(tmp_path: Path) -> None:
    found = probe_nvml(nvml.standin(tmp_path, "crash_at=-1"))
    assert found.crashed
    assert "SIGABRT" in found.as_error().message


def test_a_lost_gpu_keeps_its_place_beside_healthy_ones(tmp_path: Path) -> None:
    found = probe_nvml(nvml.standin(tmp_path, "count=2\ngpu 0 handle_error=15"))
    assert found.works
    assert found.devices[0]["error"] == 15
    assert found.devices[1]["uuid"] == nvml.uuid(1)


@pytest.mark.parametrize(
    ("vendor", "kind", "expected"),
    [("0x10de", "0x030200", True), ("0x10de", "0x040300", False), ("0x8086", "0x030000", False)],
)
def test_nvidia_hardware(tmp_path: Path, vendor: str, kind: str, expected: bool) -> None:
    device = tmp_path / "0000:01:00.0"
    device.mkdir()
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")
    (tmp_path / "0000:02:00.0").mkdir()
    assert nvidia_hardware(tmp_path) is expected


def test_settings_and_who_computes_already_are_told(tmp_path: Path) -> None:
    (tmp_path / "pids").write_text("41\n17\n")
    script = f"gpu 0 power_limit=350 app_sm=1200 procs={tmp_path / 'pids'}"
    (device,) = probe_nvml(nvml.standin(tmp_path, script)).devices
    assert (device["power_limit_w"], device["clocks_mhz"]) == (350, [1200, 1593])
    assert device["processes"] == [17, 41]
    assert device["link"] == "PCIe 4 x16"


def test_a_gpu_with_fewer_lanes_than_it_has_is_told(tmp_path: Path) -> None:
    script = "count=2\ngpu 1 link_gen=3 link_width=8"
    found = probe_nvml(nvml.standin(tmp_path, script)).devices
    assert [device["link"] for device in found] == ["PCIe 4 x16", "PCIe 3 x8 of x16"]


def test_nvlinks_that_are_up_are_counted_and_sleeping_ones_are(tmp_path: Path) -> None:
    script = "count=4\ngpu 0 nvlinks=18\ngpu 1 nvlinks=18 nvlinks_up=17 nvlinks_asleep=3\n"
    script += "gpu 2 nvlinks=4 nvlinks_up=0"
    found = probe_nvml(nvml.standin(tmp_path, script)).devices
    assert [device["nvlinks"] for device in found] == [18, 17, 0, None]
    found = probe_nvml(nvml.standin(tmp_path, f"unsupported=nvlink\n{script}")).devices
    assert [device["nvlinks"] for device in found] == [None] * 4


def test_settings_that_a_device_lacks_are_unknown(tmp_path: Path) -> None:
    script = "unsupported=power_limit,app_clocks,processes,link"
    (device,) = probe_nvml(nvml.standin(tmp_path, script)).devices
    assert device["link"] is None
    assert (device["power_limit_w"], device["clocks_mhz"], device["processes"]) == (None, None, [])
