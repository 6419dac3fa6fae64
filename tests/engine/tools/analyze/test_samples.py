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


def test_the_whole_recording_stands_beside_its_window(tmp_path: Path) -> None:
    (tmp_path / "smi.csv").write_text(monitors.query(20, 1))
    answer = gpudebug(tmp_path, "analyze", "smi.csv", "--json").expect(0).json
    assert (answer["recorded"]["period_s"], answer["recorded"]["devices"][0]["gpu_util"]) == (1, 20)
    text = gpudebug(tmp_path, "analyze", "smi.csv").expect(0).out
    assert "recorded  20 rows of 1 device over 19.0 s, one every 1 s, from 2025-07-27 01:48:27" in text
    assert "  GPU 0: utilisation 20.0% (mean of all 20 readings), memory 20000 MB, power 150 W" in text


@pytest.mark.parametrize(
    ("text", "why", "util"),
    [
        (monitors.query(1, 1), "one reading", 20),
        (monitors.query(3, 1), "the window is too short: 2.0 s after warm-up, at least 5 s needed", 20),
        ("index, utilization.gpu [%]\n" + "0, 20 %\n1, 20 %\n" * 20, "its rows have no time", 20),
        ("timestamp, power.draw [W]\n2026/03/09 14:05:07.1, 60.71 W\n", "no utilisation in the file", None),
    ],
)
def test_without_a_window_the_mean_of_what_is_there_is_known(
    tmp_path: Path, text: str, why: str, util: float | None
) -> None:
    (tmp_path / "f.csv").write_bytes(text.encode("utf-16"))
    answer = gpudebug(tmp_path, "analyze", "f.csv", "--json").expect(0).json
    assert (answer["kind"], answer["window"], answer["reason"]) == ("samples", None, why)
    assert {d["gpu_util"] for d in answer["recorded"]["devices"]} == {util}
    assert f"no window: {why}" in gpudebug(tmp_path, "analyze", "f.csv").expect(0).out


def test_a_page_of_the_web_is_named(tmp_path: Path) -> None:
    (tmp_path / "smi.csv").write_text("<!DOCTYPE html>\n<html>404</html>\n")
    assert "is an HTML page" in gpudebug(tmp_path, "analyze", "smi.csv").expect(1).err


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
