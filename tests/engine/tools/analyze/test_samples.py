"""`gpudebug analyze` of recordings of others, and of binary files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import monitors
from tests.support.campaigns import gpudebug

FILES = {
    "smi.csv": (monitors.query(), "nvidia-smi --query-gpu"),
    "nounits.csv": (monitors.query(units=False), "nvidia-smi --query-gpu"),
    "bare.csv": (monitors.query(header=False), "nvidia-smi --query-gpu"),
    "dmon.txt": (monitors.dmon(), "nvidia-smi dmon"),
    "dcgmi.txt": (monitors.dcgmi(), "dcgmi dmon"),
}


@pytest.mark.parametrize("name", FILES)
def test_each_gpu_of_another_monitor(tmp_path: Path, name: str) -> None:
    text, source = FILES[name]
    (tmp_path / name).write_text(text)
    answer = gpudebug(tmp_path, "analyze", name, "--json").expect(0).json
    assert (answer["kind"], answer["source"]) == ("samples", source)
    means = {d["index"]: d["gpu_util"]["mean"] for d in answer["devices"]}
    assert means == {0: pytest.approx(20), 1: pytest.approx(90)}
    assert "run" not in answer


def test_each_run_of_a_file_is_analyzed(tmp_path: Path) -> None:
    at = lambda t, _: monitors.Shown(60)  # noqa: E731
    (tmp_path / "two.csv").write_text(
        monitors.query(60, 1) + monitors.query(60, 1, header=False, start=300, at=at)
    )
    answer = gpudebug(tmp_path, "analyze", "two.csv", "--json").expect(0).json
    first, second = answer["files"]
    assert [one["devices"][0]["gpu_util"]["mean"] for one in (first, second)] == [20, 60]
    assert second["run"] == {
        "number": 2, "of": 2, "start_s": 300.0, "end_s": 359.0, "begins": "a pause of 241 s",
    }  # fmt: skip
    alone = gpudebug(tmp_path, "analyze", "two.csv", "--run", "2", "--json").expect(0).json
    assert alone == second
    text = gpudebug(tmp_path, "analyze", "two.csv").expect(0).out
    assert "two.csv: run 2 of 2 by nvidia-smi --query-gpu (300.0 to 359.0 s of the file, a pause" in text
    done = gpudebug(tmp_path, "analyze", "two.csv", "--run", "3").expect(1)
    assert "has no run 3" in done.err
    done = gpudebug(tmp_path, "analyze", "two.csv", "--charts", "f.png").expect(2)
    assert "--run N" in done.err


def test_run_is_of_one_recording(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("step 1 loss 2\n")
    assert "--run names one" in gpudebug(tmp_path, "analyze", "a.log", "--run", "1").expect(2).err


def test_what_was_not_read_is_said(tmp_path: Path) -> None:
    rows = monitors.query(30, 1, (*monitors.QUERY, "clocks.sm"), header=False, start=60)
    (tmp_path / "odd.csv").write_text(monitors.query(60, 1) + rows)
    text = gpudebug(tmp_path, "analyze", "odd.csv").expect(0).out
    assert "note: at line 62 a row has 6 cells where the header names 5" in text
    assert "note: 30 rows could not be read" in text


def test_gpus_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    (tmp_path / "eight.csv").write_text(
        monitors.query(10, 8, ("timestamp", "power.draw", "utilization.gpu"), interval=0.1)
    )
    err = gpudebug(tmp_path, "analyze", "eight.csv").expect(1).err
    assert "has 8 rows a tick and no column that tells the GPUs apart" in err
    assert "add index" in err


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("model.pt", b"PK\x03\x04" + bytes(30) + b"archive/data.pkl", "a PyTorch checkpoint (zip)"),
        ("report.nsys-rep", bytes(range(256)) * 8, "an Nsight Systems report (.nsys-rep)"),
        ("train", b"\x7fELF\x02\x01\x01" + bytes(40), "an ELF program or library"),
        ("samples.csv.zst", b"\x28\xb5\x2f\xfd" + bytes(40), "a zstd archive"),
    ],
)
def test_binary_files_are_refused_by_their_format(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(data)
    (line,) = gpudebug(tmp_path, "analyze", name).expect(1).err.splitlines()
    assert f"is {kind}, not text; next: " in line
