"""Real trainings that print nothing: what gpudebug knows of them comes from inside."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import gpudebug, make_replay_campaign, record
from tests.support.places import SUPPORT

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")

PROGRAM = SUPPORT / "probe_train.py"
TRAIN = [sys.executable, str(PROGRAM)]


def sampled(folder: Path, *command: str, status: int = 0) -> Any:
    words = ("sample", "--device=cpu:1", "--json", "--", *command)
    return gpudebug(folder, *words, env={"OMP_NUM_THREADS": "1"}).expect(status).json


def test_a_loader_that_takes_three_fifths_of_a_step(tmp_path: Path) -> None:
    answer = sampled(tmp_path, *TRAIN, "--steps=60", "--truth=truth.json")
    told, truth = answer["probe"], json.loads((tmp_path / "truth.json").read_text())
    assert told["data_wait_share"] == pytest.approx(0.6, abs=0.03)
    assert told["data_wait_share"] == pytest.approx(truth["waited"], abs=0.02)
    assert (told["steps"], answer["probe_reason"], told["notes"]) == (60, None, [])
    assert told["steps_per_s"] == pytest.approx(20, rel=0.1)
    assert told["step_time_p50_s"] == pytest.approx(0.05, rel=0.1)
    assert told["blocking_reads_per_step"] == pytest.approx(1, abs=0.05)
    assert told["sites"][0]["site"].startswith(f"{PROGRAM}:")
    assert answer["throughput"]["steps_per_s"] == told["steps_per_s"]
    # What the process told lay in a folder of its own.
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sample-1.csv", "sample-1.log", "truth.json"]


def test_a_training_that_is_killed_has_told(tmp_path: Path) -> None:
    answer = sampled(tmp_path, *TRAIN, "--steps=400", "--kill=40", status=128 + signal.SIGKILL)
    assert answer["outcome"] == "CRASHED"
    assert 20 <= answer["probe"]["steps"] <= 40
    assert answer["probe"]["data_wait_share"] == pytest.approx(0.6, abs=0.03)


LASTS = "import time; time.sleep(3)"
"""A program is read from its process: one that ends at once is not seen."""
SILENT = {
    "no torch": (
        [sys.executable, "-c", "print('step 1 loss 2')"],
        "the command ran no PyTorch training step",
    ),
    "no Python": (["true"], "the command ran no PyTorch training step"),
    "isolated": ([sys.executable, "-I", "-c", LASTS], "-I` keeps the probe out: it ignores PYTHONPATH"),
    "no site": (
        [sys.executable, "-S", "-c", LASTS],
        "-S` keeps the probe out: it does not run sitecustomize",
    ),
}


@pytest.mark.parametrize(("command", "why"), SILENT.values(), ids=SILENT)
def test_why_there_is_nothing_from_inside(tmp_path: Path, command: list[str], why: str) -> None:
    answer = sampled(tmp_path, *command)
    assert (answer["outcome"], answer["probe"]) == ("COMPLETED", None)
    assert why in answer["probe_reason"]


def test_a_folder_that_the_training_cannot_write_costs_it_nothing(tmp_path: Path) -> None:
    command = shlex.join([*TRAIN, "--steps=15", "--truth=truth.json"])
    answer = sampled(tmp_path, "sh", "-c", f"GPUDEBUG_RECORDS_DIR=/proc/1 exec {command}")
    assert (answer["outcome"], answer["probe"]) == ("COMPLETED", None)
    assert json.loads((tmp_path / "truth.json").read_text())["steps"] == 15
    assert (tmp_path / "sample-1.log").read_text() == ""


def test_probe_false_is_said(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", seconds=12)
    made = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings", config="probe: false\n")
    answer = made.json("next")
    assert answer["probe"][0]["reason"] == "`probe: false` in gpudebug.yaml"
