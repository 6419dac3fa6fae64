"""Parts of a run's record: what older and newer versions wrote of how it ended, and what is shown of it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gpudebug.core.records import DeviceInfo, Failure, PlannedEnd, RunRecord
from gpudebug.core.records.parts import ServerRun

FIRST = {
    "name": "0001-h1",
    "campaign": "c",
    "role": "h1",
    "command": "python train.py",
    "argv": ("python", "train.py"),
    "cwd": "/repo",
    "start": "now",
}


def test_a_run_of_a_version_that_knew_none_of_them_is_read() -> None:
    found = RunRecord.model_validate(FIRST)
    assert (found.server, found.planned, found.failure) == (None, None, None)
    assert found.devices == ()


@pytest.mark.parametrize(
    ("key", "part"),
    [
        (
            "server",
            ServerRun(command="serve --port={port}", argv=("serve", "--port=8000"), cwd="/repo", ready_s=1.5),
        ),
        ("planned", PlannedEnd(at_s=42.5, log_bytes=9000, window_s=30.0)),
        ("failure", Failure(kind="import", lines=("ModuleNotFoundError: x",))),
    ],
)
def test_each_part_comes_back_from_json_as_it_was(key: str, part: ServerRun | PlannedEnd | Failure) -> None:
    record = RunRecord.model_validate({**FIRST, key: part})
    assert getattr(RunRecord.model_validate_json(record.model_dump_json()), key) == part


def test_a_server_that_was_never_ready_has_no_time_and_no_end() -> None:
    server = ServerRun(command="serve", argv=("serve",), cwd="/repo")
    assert (server.ready_s, server.exit_status, server.signal, server.died) == (None, None, None, False)


def test_what_a_device_does_not_tell_is_unknown() -> None:
    device = DeviceInfo(index=0, uuid="CPU", name="2 cores", kind="cpu", missing={"power_w": "no sensor"})
    assert (device.memory_total_mb, device.clocks_mhz, device.power_limit_w) == (None, None, None)
    with pytest.raises(ValidationError):
        DeviceInfo.model_validate({"index": 0, "uuid": "CPU"})


@pytest.mark.parametrize(
    ("link", "nvlinks", "links"),
    [
        ("PCIe 5 x16", 18, "PCIe 5 x16, 18 NVLinks"),
        ("PCIe 5 x16", 1, "PCIe 5 x16, 1 NVLink"),
        ("PCIe 4 x8 of x16", None, "PCIe 4 x8 of x16"),
        (None, 0, "0 NVLinks"),
        (None, None, None),
    ],
)
def test_what_a_device_hangs_on(link: str | None, nvlinks: int | None, links: str | None) -> None:
    device = DeviceInfo(index=0, uuid="GPU-0", name="x", kind="nvml", link=link, nvlinks=nvlinks)
    assert device.links == links
    assert "links" not in device.model_dump()
