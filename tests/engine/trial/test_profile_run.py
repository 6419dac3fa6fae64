"""`baseline --torch-profile`: one run more, for its trace, of which nothing else takes notice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import (
    Campaign,
    copied,
    killed_at_the_end,
    make_campaign,
    make_replay_campaign,
    record,
    wait_for,
)

from gpudebug.edges import store
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.case import facts
from gpudebug.engine.run.traces import newest_profile

TRAINING = """
import time, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(400, 16), torch.randint(2, (400,)))
for step, (x, y) in enumerate(DataLoader(data, batch_size=10)):
    time.sleep(0.005)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"step {step + 1}/40 loss {2 - step / 40:.4f}", flush=True)
"""
LONG = 2400.0
"""Seconds of a recording that does not end by itself while a test lasts."""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Any]:
    """A campaign that was new before its profile, and the answer."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("profiled") / "repo"
    campaign = make_campaign(folder, command=f"{sys.executable} fit.py", files={"fit.py": TRAINING})
    return campaign, campaign.json("baseline", "--torch-profile", "wait=1,warmup=1,active=3")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with its baseline whose next runs are no trainings of PyTorch's; the second takes `LONG`."""
    folder = tmp_path_factory.mktemp("replayed")
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-profile-workload", util=20, rate=10)
    record(recordings, "0003-profile-workload", util=20, rate=10, seconds=LONG)
    campaign = make_replay_campaign(folder / "repo", recordings)
    campaign.json("baseline")
    return campaign


@pytest.fixture
def replayed(original: Campaign, tmp_path: Path) -> Campaign:
    return copied(original, tmp_path / "repo")


def run_json(campaign: Campaign, name: str, file: str = "run.json") -> Any:
    return json.loads((campaign.folder / "runs" / name / file).read_text())


def test_the_trace_is_in_a_sealed_run_of_its_own(profiled: tuple[Campaign, Any]) -> None:
    campaign, answer = profiled
    assert campaign.runs() == ["0001-profile-workload"]
    assert (answer["action"], answer["role"]) == ("recorded_profile", "profile-workload")
    trace = campaign.folder / "runs" / "0001-profile-workload" / "trace.json.gz"
    assert answer["trace"]["path"] == answer["files"][0] == str(trace)
    assert answer["trace"]["steps"] == 3
    record = run_json(campaign, "0001-profile-workload")
    assert (record["role"], record["outcome"], record["hypothesis"]) == (
        "profile-workload",
        "COMPLETED",
        None,
    )
    kept = run_json(campaign, "0001-profile-workload", "evidence.json")["trace"]
    assert (kept["file"], kept["analysis"]["steps"]["count"]) == ("trace.json.gz", 3)
    assert {"trace.json.gz", "probe.jsonl"} <= run_json(campaign, "0001-profile-workload", "manifest.json")[
        "files"
    ].keys()


def test_it_is_no_baseline_and_its_time_counts(profiled: tuple[Campaign, Any]) -> None:
    campaign, _ = profiled
    status = campaign.json("status")
    assert status["next"]["action"] == "record_baseline"
    assert status["baselines"]["workload"]["runs"] == []
    assert not campaign.progress.exists()
    held = run_json(campaign, "0001-profile-workload")["duration_s"]
    assert status["budget"]["device_time_used_s"] == pytest.approx(held, abs=0.1)


def test_show_tells_of_the_newest(profiled: tuple[Campaign, Any], tmp_path: Path) -> None:
    campaign = copied(profiled[0], tmp_path / "repo")
    campaign.propose("--set --lr=0.2")
    assert campaign.json("show", "1")["profile"]["run"] == "0001-profile-workload"
    said = campaign.run("show", "1").expect(0).out
    assert "Profile of the workload, run 0001-profile-workload:\n  trace   " in said


def test_without_a_training_there_is_no_trace_and_a_cut_off_run_is_none(replayed: Campaign) -> None:
    before = replayed.text
    failed = replayed.run("baseline", "--torch-profile", "default").expect(1)
    assert "run 0003-profile-workload completed and has no trace" in failed.err
    process = replayed.start("baseline", "--torch-profile", "default")
    with killed_at_the_end(process):
        wait_for((replayed.folder / "runs" / "0004-profile-workload" / "samples.csv").exists)
        assert "run 0004-profile-workload is under way" in replayed.json("status")["next"]["why"]
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    recovered = replayed.json("next")
    assert (recovered["action"], recovered["run"]) == ("recovered", "0004-profile-workload")
    assert run_json(replayed, "0004-profile-workload")["outcome"] == "INTERRUPTED"

    status = replayed.json("status")
    assert status["baselines"]["workload"]["valid"]
    assert status["next"]["action"] == "propose"
    assert status["resolution"]["figures"][0]["runs"] == 2
    assert replayed.text == before
    replayed.run("verify").expect(0)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--torch-profile", "active=0"), 2, "active=0: expected a whole number"),
        (("reference", "--torch-profile", "default"), 2, "this campaign has no reference"),
        (("--aa", "--torch-profile", "default"), 2, "--torch-profile is a run of its own"),
        (("--import", "x.csv", "--torch-profile", "default"), 2, "--torch-profile is a run of its own"),
    ],
)
def test_what_cannot_be_profiled(replayed: Campaign, words: tuple[str, ...], status: int, said: str) -> None:
    assert said in replayed.run("baseline", *words).expect(status).err
    assert replayed.runs() == ["0001-baseline-workload", "0002-baseline-workload"]


def test_a_training_that_is_to_be_left_alone_is(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo", config="probe: false\n")
    failed = campaign.run("baseline", "--torch-profile", "default").expect(1)
    assert "probe is false" in failed.err
    assert "set probe: true" in failed.err
    assert campaign.runs() == []


def profiled_as_the_baseline(campaign: Campaign, **otherwise: Any) -> Path:
    """A profiled run of what the baseline was recorded on, but for this in its record."""
    runs = campaign.folder / "runs"
    run = Path(shutil.copytree(runs / "0001-baseline-workload", runs / "0002-profile-workload"))
    trace = {"file": "trace.json.gz", "analysis": {"busy_share": 0.4}}
    changes: dict[str, dict[str, Any]] = {
        "run.json": {"name": run.name, "role": "profile-workload", **otherwise},
        "evidence.json": {"run": run.name, "role": "profile-workload", "trace": trace},
    }
    for name, changed in changes.items():
        (run / name).write_text(json.dumps({**json.loads((run / name).read_text()), **changed}))
    (run / "manifest.json").unlink()
    store.RunFolder(run, str).seal()
    return run


@pytest.mark.parametrize(
    ("otherwise", "told"),
    [
        ({}, 0.4),
        ({"identity": {"command": "of another command"}}, None),
        ({"set_aside": "the driver was changed"}, None),
        ({"host": "another", "cpu_quota": 77.0}, None),
    ],
    ids=["what stands", "another command", "set aside", "elsewhere"],
)
def test_a_diagnosis_reads_the_trace_of_what_stands_alone(
    replayed: Campaign, otherwise: dict[str, Any], told: float | None
) -> None:
    profiled_as_the_baseline(replayed, **otherwise)
    loaded = load(replayed.folder)
    assert facts(loaded.setup, loaded.history).signals.get("trace_busy_share") == told
    # Who asks for a hypothesis is shown an older one, too.
    shown = newest_profile(loaded.setup, loaded.history.records)
    assert shown is not None
    assert shown["run"] == "0002-profile-workload"


def test_a_trace_that_was_changed_after_its_run_is_not_diagnosed(replayed: Campaign) -> None:
    run = profiled_as_the_baseline(replayed)
    text = (run / "evidence.json").read_text()
    (run / "evidence.json").write_text(text.replace('"busy_share": 0.4', '"busy_share": 0.9'))
    loaded = load(replayed.folder)
    assert "trace_busy_share" not in facts(loaded.setup, loaded.history).signals
