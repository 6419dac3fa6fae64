"""A recorded run in place of device and process."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.sampling import SamplerProcess

from gpudebug.core.errors import DeviceError
from gpudebug.core.samples.row import HEADER
from gpudebug.edges import devices
from gpudebug.edges.devices import replay

LOG = b"step:1 loss:2.0\nstep:2 loss:1.5\nstep:3 loss:1.0\ndone\n"


def record(folder: Path, name: str, duration: float = 0.9, **ending: Any) -> Path:
    """A run folder of two GPUs at 10 Hz whose log grows by a line each 0.3 s."""
    run = folder / name
    run.mkdir(parents=True)
    rows = []
    for tick in range(round(duration * 10) + 1):
        size = [0, 16, 32, 48][min(3, tick // 3)]
        for index in (0, 1):
            host = "120.5,300,0,0.5,3" if tick == 5 else ",,,,"
            device = f"{15 + tick + index},3,2048,81920,{index},GPU-{index},250,1410,1593,45,none,2"
            rows.append(f"{tick / 10:g},{device},{host},{size},,,,,,,\n")
    rows.append(
        f"{duration + 0.004:g},15,3,2048,81920,0,GPU-0,250,1410,1593,45,none,0,,,,,,{len(LOG)},,,,,,,\n"
    )
    (run / "samples.csv").write_text(HEADER + "".join(rows))
    (run / "train.log").write_bytes(LOG)
    infos = [
        {"index": i, "uuid": f"GPU-{i}", "name": "NVIDIA A100", "kind": "nvml", "driver": "1"} for i in (0, 1)
    ]
    (run / "run.json").write_text(
        json.dumps({"devices": infos, "duration_s": duration, "exit_status": 0, "signal": None, **ending})
    )
    (run / "sampler.json").write_text(json.dumps({"missing": {"mem_util": "no"}, "energy_j": {"GPU-0": 5.0}}))
    return run


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_the_rows_of_the_recording_are_written_again_as_they_are(tmp_path: Path, speed: float) -> None:
    run = record(tmp_path, "0001-baseline-workload")
    with SamplerProcess(
        tmp_path, {"kind": "replay", "path": str(run), "speed": speed}, interval=0.05
    ) as sampler:
        assert [device["uuid"] for device in sampler.answer["devices"]] == ["GPU-0", "GPU-1"]
        assert sampler.answer["devices"][0]["name"] == "recording of NVIDIA A100"
        sampler.launch()
        time.sleep(0.45 / speed)
        assert 1 < len(sampler.csv.read_text().splitlines()) < 20
        time.sleep(0.6 / speed)
        assert sampler.stop() == 0
    assert sampler.csv.read_text() == (run / "samples.csv").read_text()
    notes = sampler.notes()
    assert (notes["source"], notes["missing"], notes["driver"]) == ("replay", {"mem_util": "no"}, "1")
    assert notes["energy_j"] == {"GPU-0": 5.0}


def test_a_run_that_is_cut_short_has_only_the_rows_up_to_there(tmp_path: Path) -> None:
    run = record(tmp_path, "0001-h1", duration=5)
    with SamplerProcess(tmp_path, {"kind": "replay", "path": str(run)}, interval=0.05) as sampler:
        sampler.launch()
        time.sleep(0.5)
        sampler.stop()
    assert all(float(row["elapsed"]) < 2 for row in sampler.rows())
    assert sampler.rows()


def test_the_player_writes_the_log_at_its_recorded_times_and_ends_as_the_job_did(tmp_path: Path) -> None:
    run = record(tmp_path, "0001-h1", exit_status=7)
    began = time.monotonic()
    with subprocess.Popen(replay.player_command(run), stdout=subprocess.PIPE, cwd=tmp_path) as player:
        assert player.stdout is not None
        first = player.stdout.readline()
        first_at = time.monotonic() - began
        rest = player.stdout.read()
    assert first + rest == LOG
    assert first_at >= 0.3
    assert time.monotonic() - began >= 0.9
    assert player.returncode == 7


@pytest.mark.parametrize("signal", [2, 9, 11, 15])
def test_a_job_that_died_of_a_signal_dies_of_it_again(tmp_path: Path, signal: int) -> None:
    run = record(tmp_path, "0001-h1", exit_status=None, signal=signal)
    player = subprocess.run(replay.player_command(run, 10), stdout=subprocess.PIPE, check=False)
    assert player.returncode == -signal
    assert player.stdout == LOG


def test_a_speed_shortens_the_run(tmp_path: Path) -> None:
    run = record(tmp_path, "0001-h1", duration=30)
    began = time.monotonic()
    subprocess.run(replay.player_command(run, 60), stdout=subprocess.DEVNULL, check=True)
    assert 0.5 <= time.monotonic() - began < 15


def test_the_run_of_a_role_is_picked_by_its_number(tmp_path: Path) -> None:
    for name in ("0010-h1", "0002-baseline-workload", "0001-baseline-workload", "0003-baseline-reference"):
        record(tmp_path, name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "0011-h1").mkdir()
    picked = [replay.pick(tmp_path, "baseline-workload", ordinal).name for ordinal in range(3)]
    assert picked == ["0001-baseline-workload", "0002-baseline-workload", "0002-baseline-workload"]
    assert replay.pick(tmp_path, "h1", 0).name == "0010-h1"
    with pytest.raises(DeviceError, match="only baseline-reference, baseline-workload, h1"):
        replay.pick(tmp_path, "h2", 0)


@pytest.mark.parametrize(
    ("setting", "speed"), [("replay:{}", 1.0), ("replay:{}@10x", 10.0), ("replay:{}@0.5x", 0.5)]
)
def test_a_setting_names_folder_and_speed(tmp_path: Path, setting: str, speed: float) -> None:
    record(tmp_path / "rec@home", "0001-h1")
    found = devices.resolve(setting.format("rec@home"), {}, tmp_path)
    assert found.spec == {"kind": "replay", "folder": str(tmp_path / "rec@home"), "speed": speed}
    assert [device["uuid"] for device in found.devices] == ["GPU-0", "GPU-1"]


@pytest.mark.parametrize(
    "setting", ["replay:", "replay:nowhere", "replay:empty", "replay:empty@0x", "replay:file"]
)
def test_a_setting_that_names_no_recording(tmp_path: Path, setting: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(DeviceError) as caught:
        devices.resolve(setting, {}, tmp_path)
    assert caught.value.next


def test_without_run_json_the_rows_say_which_devices(tmp_path: Path) -> None:
    run = record(tmp_path, "0001-h1")
    (run / "run.json").unlink()
    assert [(info["index"], info["uuid"]) for info in replay.describe(run)] == [(0, "GPU-0"), (1, "GPU-1")]


def test_a_torn_last_row_is_left_out(tmp_path: Path) -> None:
    run = record(tmp_path, "0001-h1")
    whole = list(replay.read_rows(run))
    with open(run / "samples.csv", "a") as file:
        file.write("1.2,15,3,20")
    assert list(replay.read_rows(run)) == whole


@pytest.mark.parametrize("damage", ["no samples", "no rows", "broken json"])
def test_a_broken_recording_is_an_error_before_the_run(tmp_path: Path, damage: str) -> None:
    run = record(tmp_path, "0001-h1")
    if damage == "no samples":
        (run / "samples.csv").unlink()
    elif damage == "no rows":
        (run / "samples.csv").write_text(HEADER)
    else:
        (run / "run.json").write_text("{")
    with SamplerProcess(tmp_path, {"kind": "replay", "path": str(run)}) as sampler:
        assert sampler.wait() == 4
    assert sampler.answer["error"]["code"] == "device"
