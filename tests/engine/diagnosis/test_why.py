"""`gpudebug why`: one run, one folder of evidence, one answer."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, git, gpudebug, killed_at_the_end, wait_for

from gpudebug.core.verdict.run_plan import RunPlan
from gpudebug.engine.diagnosis.why import TO_THE_END, plan_for

# Waits for its data, and would train for ever.
PROGRAM = """\
import time
def load():
    time.sleep(0.05)
def train():
    end = time.perf_counter() + 0.01
    while time.perf_counter() < end:
        pass
step = 0
while True:
    load()
    train()
    step += 1
    print(f"step {step} loss {1 / step:.4f}", flush=True)
"""


@pytest.mark.slow
def test_a_training_is_ended_and_diagnosed_and_leaves_one_folder(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    git(tmp_path, "init", "-q")
    words = ("why", "--for", "8s", "--device=cpu:1", "--json", "--", "python", "train.py")
    answer = gpudebug(tmp_path, *words).expect(0).json
    assert answer["outcome"] == "ENDED_BY_PLAN"
    assert answer["throughput"]["steps_per_s"] > 0
    assert answer["next_command"] == "gpudebug init --from gpudebug-why-1"
    assert sorted(p.name for p in tmp_path.iterdir()) == [".git", "gpudebug-why-1", "train.py"]
    assert git(tmp_path, "status", "--porcelain").split() == ["??", "train.py"]
    again = gpudebug(tmp_path, "--json", "diagnose", "gpudebug-why-1").expect(0).json
    likely = [cause["id"] for cause in answer["causes"]]
    assert likely
    # diagnose shows less likely ones between them, too.
    assert [c["id"] for c in again["causes"] if c["id"] in likely] == likely
    record = json.loads((tmp_path / "gpudebug-why-1" / "run.json").read_text())
    assert (record["role"], record["argv"]) == ("why", ["python", "train.py"])


EVEN = """
import time
step = 0
while True:
    time.sleep(0.05)
    step += 1
    print(f"step {step} loss {1 / step:.4f}", flush=True)
"""


@pytest.mark.slow
def test_a_look_that_shows_the_same_ends_soon_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVEN)
    answer = gpudebug(tmp_path, "why", "--device=cpu:1", "--json", "--", "python", "train.py").expect(0).json
    assert answer["window"]["end_s"] - answer["window"]["start_s"] < 28
    assert "what begins later shows with --for 2m" in answer["notes"][-1]


def test_no_command_is_one_line(tmp_path: Path) -> None:
    assert "no command to look at" in gpudebug(tmp_path, "why").expect(2).err
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    gpudebug(tmp_path, "why", "--", "no-such-program").expect(1)
    assert list(tmp_path.iterdir()) == []


def test_no_campaign_begins_with_a_command_that_failed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise ValueError('no')")
    answer = gpudebug(tmp_path, "--json", "why", "--", "python", "train.py").expect(1).json
    assert answer["next_command"] == f"gpudebug analyze {tmp_path}/gpudebug-why-1/train.log"
    again = gpudebug(tmp_path, "--json", "diagnose", answer["folder"]).json
    assert "--from" not in again["next_command"]


def test_how_long_a_look_goes_on() -> None:
    assert plan_for(TO_THE_END) is None
    assert plan_for(20.0) == RunPlan(20.0, learns=False, most_s=20.0)
    usual = plan_for(None)
    assert usual is not None
    assert (usual.window_s, usual.most_s) == (30.0, 90.0)


@pytest.mark.slow
def test_a_program_whose_output_goes_to_a_file_is_told_what_was_seen_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVEN)
    words = ("why", "--for", "9s", "--json", "--", "bash", "-c", "python -u train.py > out.txt")
    answer = gpudebug(tmp_path, *words).expect(0).json
    assert "its output goes to a file, which is not read" in answer["problem"]
    assert answer["next_command"] == "gpudebug diagnose gpudebug-why-1"


def test_ctrl_c_ends_it_and_what_was_seen_is_kept(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    process = Campaign(tmp_path).start("why", "--device=cpu:1", "--", "python", "train.py")
    samples = tmp_path / "gpudebug-why-1" / "samples.csv"
    with killed_at_the_end(process):
        wait_for(lambda: samples.exists() and samples.stat().st_size > 300)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert (tmp_path / "gpudebug-why-1" / "manifest.json").exists()


# Computes before its first step, as a slow start does, and ends soon after it.
LATE = """\
import time
begun = time.monotonic()
while time.monotonic() < begun + 7:
    sum(range(2000))
for step in range(1, 5):
    time.sleep(0.2)
    print(f"step {step} loss {1 / step:.4f}", flush=True)
"""


@pytest.mark.slow
def test_a_slow_start_is_not_taken_for_the_training(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LATE)
    found = gpudebug(tmp_path, "why", "--device=cpu:1", "--json", "--", "python", "train.py").json
    assert (found["window"], found["causes"]) == (None, [])
    assert found["abstains"].startswith("too short: 4 steps were seen, the first at ")
    assert found["abstains"].endswith("give it more steps")
    again = gpudebug(tmp_path, "diagnose", found["folder"]).out
    assert "No cause is named: too short: 4 steps were seen" in again.replace("\n", " ")


# Makes all of its steps at once, and then waits for something else.
BURST = """\
import time
for step in range(1, 31):
    end = time.process_time() + 0.005
    while time.process_time() < end:
        pass
    print(f"step {step} loss {1 / step:.4f}", flush=True)
time.sleep(12)
"""


@pytest.mark.slow
def test_a_device_that_idles_after_a_burst_has_a_figure(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BURST)
    words = ("sample", "-o", "seen.csv", "--device=cpu:1", "--json", "--", "python", "train.py")
    found = gpudebug(tmp_path, *words).expect(0).json
    (device,) = found["devices"]
    assert device["gpu_util"] is not None, found["reason"]
    assert device["gpu_util"]["mean"] < 15
