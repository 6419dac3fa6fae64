"""What a stranger stumbled over once: each told as a story with the real command."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
from tests.support import nvml
from tests.support.campaigns import (
    Campaign,
    commit_all,
    git,
    gpudebug,
    killed_at_the_end,
    make_campaign,
    make_replay_campaign,
    make_repository,
    record,
    wait_for,
)
from tests.support.places import DATA

LOGS = DATA / "logs"


@pytest.mark.parametrize(
    "first", ["[0]\ttrain-logloss:0.6", "[2024-01-01 10:00:00] step 1 loss 2.0", "{'loss': 2.0}"]
)
def test_brackets_in_front_make_no_trace_of_a_log(tmp_path: Path, first: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{first}\n" * 5)
    assert gpudebug(tmp_path, "analyze", "train.log", "--json").expect(0).json["kind"] == "training_log"


@pytest.mark.parametrize("text", ['{\n "traceEvents": []}', '[\n {"ph": "X"}]', '{"traceEvents": []}'])
def test_a_trace_is_told_from_a_log(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace.json").write_text(text)
    assert "trace" in gpudebug(tmp_path, "analyze", "trace.json").expect(1).err


def test_every_recorded_log_is_taken_for_one(tmp_path: Path) -> None:
    logs = sorted(str(p) for p in LOGS.glob("*.log"))
    answers = gpudebug(tmp_path, "analyze", "--json", *logs).expect(0).json["files"]
    assert {a["kind"] for a in answers} == {"training_log"}
    assert len(answers) == len(logs) > 50


def test_analyze_uses_what_lies_beside(recorded: Campaign) -> None:
    run = recorded.folder / "runs" / "0001-baseline-workload"
    log = recorded.json("analyze", str(run / "train.log"))
    evidence = json.loads((run / "evidence.json").read_text())
    assert log["steps_per_s"] == pytest.approx(evidence["steps_per_s"], rel=0.1)
    samples = recorded.json("analyze", str(run / "samples.csv"))
    assert samples["window"]["start_s"] == evidence["window"]["start_s"]


def test_an_imported_gpu_is_not_compared_with_the_stand_in(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    rows = "".join(f"{i / 2},{30 + i % 2},10,2048,81920\n" for i in range(1, 60))
    (tmp_path / "gpu.csv").write_text("elapsed,gpu_util,mem_util,mem_used_mb,mem_total_mb\n" + rows)
    campaign.json("baseline", "--import", str(tmp_path / "gpu.csv"))
    campaign.propose("--set --lr=0.2")
    answer = campaign.json("next")
    assert answer["action"] == "recorded_baseline"
    assert "the CPU used here" in answer["why"]


def test_a_device_that_cannot_tell_is_refused_before_the_first_run(tmp_path: Path) -> None:
    env = nvml.standin(tmp_path, "count=1\ngpu 0 mig=2")
    campaign = make_campaign(tmp_path / "repo", device="nvml")
    done = campaign.run("next", env=env).expect(1)
    assert "does not report its utilisation" in done.err
    assert campaign.runs() == []


def test_a_lost_gpu_is_not_the_commands_fault(tmp_path: Path) -> None:
    env = nvml.standin(tmp_path, "count=1 lost_at=1.5\ngpu 0 util=40")
    campaign = make_campaign(tmp_path / "repo", device="nvml")
    done = campaign.run("next", env=env).expect(1)
    assert "DEVICE_LOST" in done.err
    assert "failed for reasons outside the training" in done.err
    assert "KeyboardInterrupt" not in done.err


def test_a_trial_is_not_started_against_a_baseline_without_a_figure(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", seconds=1.0)
    record(recordings, "0002-h1")
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    done = campaign.run("next").expect(1)
    assert "no figure to compare with" in done.err
    assert campaign.runs() == ["0001-baseline-workload", "0002-baseline-workload"]
    assert campaign.statuses() == ["UNTESTED"]


def test_hand_written_figures_are_marked_in_the_brief(campaign: Campaign) -> None:
    campaign.json("next")
    campaign.add(
        "\n### Hypothesis 1: Images are loaded twice\n- **Status**: VALIDATED\n- **Result**:\n"
        "  - Improvement: +34pp\n"
    )
    brief = campaign.json("next", status=5)["brief"]
    said = next(line for line in brief.splitlines() if "Images are loaded twice" in line)
    assert "VALIDATED UNVERIFIED" in said
    assert "+34pp" in said
    assert "- `train.py`" in brief and "--lr=0.1" in brief


def test_status_says_what_is_under_way(tmp_path: Path, recordings: Path) -> None:
    shutil.rmtree(recordings / "0001-baseline-workload")
    record(recordings, "0001-baseline-workload", seconds=800.0)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    process = campaign.start("next")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0001-baseline-workload" / "samples.csv").exists)
        status = campaign.json("status")
        assert status["running"] is True
        assert status["next"]["action"] == "record_baseline"
        assert status["next"]["why"] == "run 0001-baseline-workload is under way"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_agents_time_out_ends_it_as_ctrl_c_does(
    tmp_path: Path, recordings: Path, number: signal.Signals
) -> None:
    shutil.rmtree(recordings / "0004-h1")
    record(recordings, "0004-h1", seconds=4000.0)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    process = campaign.start("next")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0003-h1" / "samples.csv").exists)
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert campaign.statuses() == ["UNTESTED"]


@pytest.mark.parametrize(
    "change", ["--env=API_TOKEN=sk-abcdefghijklmnopqrstuvwx", "--set=--hub_token=hf_abcdefghijklmnopqrst"]
)
def test_a_secret_is_not_proposed(recorded: Campaign, change: str) -> None:
    before = recorded.text
    assert "secret" in recorded.run("propose", "--title", "Token", change).expect(1).err
    assert recorded.text == before


def test_the_next_command_works_from_where_the_caller_is(tmp_path: Path, recorded: Campaign) -> None:
    answer = gpudebug(tmp_path, "-C", str(recorded.folder), "next", "--json").expect(5).json
    assert answer["next_command"].startswith(f"gpudebug -C {recorded.folder} propose")


def test_unknown_is_null_in_json(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.propose("--set --lr=0.3", "Waiting")
    recorded.propose("--set --lr=0.4", "Crashing")
    answers = [recorded.json("next") for _ in range(3)]
    gates = {g["name"]: g["value"] for g in answers[2]["gates"]}
    assert gates["delta"] is None
    assert "unknown" not in {g["value"] for a in answers for g in a["gates"]}


def test_code_in_a_submodule_counts(tmp_path: Path, recordings: Path) -> None:
    make_repository(tmp_path / "lib", {"m.py": "x = 1\n"})
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    git(
        campaign.folder,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(tmp_path / "lib"),
        "lib",
    )
    commit_all(campaign.folder)
    campaign.json("next")
    (campaign.folder / "lib" / "m.py").write_text("x = 2\n")
    assert "tree changed" in campaign.json("status")["next"]["why"]


def test_committing_what_init_wrote_changes_nothing(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    (campaign.folder / ".gitignore").write_text("runs/\nnotes/\n")
    commit_all(campaign.folder)
    assert campaign.json("status")["next"]["action"] == "propose"


def test_a_training_may_write_folders_into_its_run_folder(tmp_path: Path, recordings: Path) -> None:
    campaign = make_campaign(
        tmp_path / "repo",
        command="sh -c 'mkdir -p {run_dir}/ckpt && echo x > {run_dir}/ckpt/w.pt && sleep 0.2'",
    )
    campaign.json("next")
    manifest = json.loads((campaign.folder / "runs" / "0001-baseline-workload" / "manifest.json").read_text())
    run = campaign.folder / "runs" / "0001-baseline-workload"
    assert (run / "job" / "ckpt" / "w.pt").read_text() == "x\n"
    # However large it is, a checkpoint is no evidence: neither sealing nor checking reads it.
    assert not [name for name in manifest["files"] if "ckpt" in name]
