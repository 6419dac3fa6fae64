"""`gpudebug analyze`: files recognised by their content, and everything that is neither log nor samples."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.support import monitors
from tests.support.campaigns import gpudebug, record
from tests.support.collectives import checkpoints, written
from tests.support.commands import command

SEED_CSV = "elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n" + "".join(
    f"{i * 0.5:.1f},{40 + i % 3},10,1000,16000\n" for i in range(1, 60)
)
REFUSED = {
    "missing": ("nothing.log", "No such file"),
    "a folder": ("folder", "not a regular file"),
    "a FIFO": ("fifo", "not a regular file"),
    "a device": ("/dev/zero", "not a regular file"),
    "empty": ("empty.log", "is empty"),
    "a trace of nothing": ("report.json", "has no events"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = record(tmp_path, "0001-run")
    (run / "train.log").rename(tmp_path / "odd name.txt")
    (run / "samples.csv").rename(tmp_path / "samples.dat")
    (tmp_path / "seed.csv").write_text(SEED_CSV)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty.log").touch()
    (tmp_path / "report.json").write_text(json.dumps({"traceEvents": []}, indent=1))
    return tmp_path


def test_a_training_log(folder: Path) -> None:
    answer = gpudebug(folder, "analyze", "odd name.txt", "--json").expect(0).json
    assert set(answer) >= {
        *("kind", "framework", "loss", "steps", "steps_per_s", "data_s", "update_s", "failure")
    }
    assert answer["kind"] == "training_log"
    assert set(answer["loss"]) >= {"name", "trend", "points", "first", "last"}
    assert (answer["loss"]["trend"], answer["steps"]) == ("CONVERGING", 400)
    assert answer["failure"] is None
    assert "CONVERGING" in gpudebug(folder, "analyze", "odd name.txt").expect(0).out


@pytest.mark.parametrize("name", ["samples.dat", "seed.csv"])
def test_samples(folder: Path, name: str) -> None:
    answer = gpudebug(folder, "analyze", name, "--json").expect(0).json
    assert answer["kind"] == "samples"
    assert answer["window"]["end_s"] > answer["window"]["start_s"]
    (device,) = answer["devices"]
    assert device["gpu_util"]["mean"] == pytest.approx(41 if name == "seed.csv" else 20, abs=1)


def test_samples_of_devices_that_wait_for_one(tmp_path: Path) -> None:
    written(checkpoints(50, devices=4, seconds=60.0), tmp_path / "ranks.csv")
    answer = gpudebug(tmp_path, "analyze", "ranks.csv", "--json").expect(0).json
    assert (answer["awaited"]["index"], answer["awaited"]["every_s"]) == (0, pytest.approx(3.5, rel=0.02))
    assert [d["working"] for d in answer["devices"]] == pytest.approx([0.71] * 4, abs=0.03)
    shown = gpudebug(tmp_path, "analyze", "ranks.csv").expect(0).out
    assert "note: GPU 0 is idle every 3.5 s for " in shown
    assert "note: the mean gpu_util of " in shown


def test_a_runs_folder_is_its_samples_and_its_log(tmp_path: Path) -> None:
    run = record(tmp_path, "0001-run")
    (run / "run.json").write_text("{}")
    answer = gpudebug(tmp_path, "analyze", "0001-run", "--json").expect(0).json
    assert [one["kind"] for one in answer["files"]] == ["samples", "training_log"]


def test_a_trackers_folder_is_the_one_store_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "offline-run-1"
    folder.mkdir()
    (folder / "run-1.wandb").write_bytes(
        monitors.wandb([monitors.history(n, loss=2.0 / n) for n in range(1, 9)])
    )
    (folder / "config.yaml").touch()
    assert command(tmp_path, "analyze", "offline-run-1", "--json").expect(0).json["loss"]["points"] == 8
    (folder / "run-2.wandb").touch()
    done = command(tmp_path, "analyze", "offline-run-1").expect(1)
    assert "is a folder with 2 stores of runs; next: give one of them: gpudebug analyze " in done.err


def test_several_files_are_one_document(folder: Path) -> None:
    answer = command(folder, "analyze", "seed.csv", "odd name.txt", "--json").expect(0).json
    assert [a["kind"] for a in answer["files"]] == ["samples", "training_log"]


@pytest.mark.parametrize(("name", "said"), REFUSED.values(), ids=REFUSED)
def test_what_it_cannot_read_is_one_clear_line(folder: Path, name: str, said: str) -> None:
    done = command(folder, "analyze", name).expect(1)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert said in line
    assert name in line
    assert "; next: " in line


@pytest.mark.parametrize("data", [b"\x00" * 5000, b"\xe9t\xe9 " * 4000, b"x" * 3_000_000])
def test_rubbish_is_a_log_without_anything_in_it(folder: Path, data: bytes) -> None:
    (folder / "rubbish").write_bytes(data)
    answer = command(folder, "analyze", "rubbish", "--json").expect(0).json
    assert (answer["steps"], answer["loss"]["points"]) == (None, 0)


@pytest.mark.parametrize("data", [bytes(range(256)) * 40, b"\xff\xfe" * 100])
def test_binary_rubbish_is_no_log(folder: Path, data: bytes) -> None:
    (folder / "rubbish").write_bytes(data)
    (line,) = gpudebug(folder, "analyze", "rubbish").expect(1).err.splitlines()
    assert ("not text; next: gpudebug analyze " in line and "odd name.txt" in line) or "iconv" in line


def test_infinite_and_missing_losses_are_still_json(folder: Path) -> None:
    (folder / "nan.log").write_text("".join(f"step {i} loss {'inf' if i > 5 else 1}\n" for i in range(1, 20)))
    answer = command(folder, "analyze", "nan.log", "--json").expect(0).json
    assert answer["loss"]["trend"] == "NAN"
    (folder / "all-nan.log").write_text("".join(f"step {i} loss nan\n" for i in range(1, 20)))
    assert command(folder, "analyze", "all-nan.log", "--json").expect(0).json["loss"]["trend"] == "NAN"


def test_a_failed_run_says_why(folder: Path) -> None:
    (folder / "oom.log").write_text(
        "step 1 loss 1\nTraceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    )
    answer = command(folder, "analyze", "oom.log", "--json").expect(0).json
    assert answer["failure"]["class"] == "oom_gpu"
    assert answer["failure"]["lines"]
