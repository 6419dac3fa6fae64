"""One trial: what happens to the file and the runs while it is under way, and how many runs it takes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import psutil
import pytest
from tests.support.campaigns import (
    Campaign,
    copied,
    killed_at_the_end,
    make_replay_campaign,
    record,
    wait_for,
)

CHANGE = "--set --lr=0.2"


@pytest.fixture(scope="module")
def ready_once(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("ready")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0003-h1", util=60, rate=30, seconds=400.0)
    campaign = make_replay_campaign(folder / "repo", folder / "recordings")
    campaign.json("next")
    campaign.propose(CHANGE)
    return campaign


@pytest.fixture
def ready(ready_once: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with a baseline and an untested hypothesis whose run takes two seconds."""
    return copied(ready_once, tmp_path / "repo")


def running(campaign: Campaign, name: str = "0003-h1") -> bool:
    return (campaign.folder / "runs" / name / "samples.csv").exists()


def test_a_save_during_the_run_is_kept(ready: Campaign) -> None:
    process = ready.start("next", "--json")
    with killed_at_the_end(process):
        wait_for(lambda: running(ready))
        text = ready.text
        assert "**Status**: TESTING" in text
        text = text.replace("The loader waits", "The loader waits (edited)")
        ready.progress.write_text("Above.\n" + text + "\n## Mine\n\nBelow.\n")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["verdict"] == "VALIDATED"
    assert ready.text.startswith("Above.\n")
    assert ready.text.endswith("\n## Mine\n\nBelow.\n")
    assert "### Hypothesis 1: The loader waits (edited)" in ready.text
    assert ready.statuses() == ["VALIDATED"]


def test_a_hypothesis_deleted_during_the_run_is_said_and_nothing_is_lost(ready: Campaign) -> None:
    process = ready.start("next")
    with killed_at_the_end(process):
        wait_for(lambda: running(ready))
        kept = ready.text.partition("### Hypothesis 1")[0]
        ready.progress.write_text(kept)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == b""
    assert b"Traceback" not in err
    last = err.decode().splitlines()[-1]
    assert "no hypothesis 1" in last
    assert "; next: " in last
    assert ready.text == kept
    assert (ready.folder / "runs" / ready.runs()[-1] / "verdict.json").exists()
    assert ready.json("next", status=5)["action"] == "propose"


def test_a_file_broken_during_the_run_is_said_and_adopted_when_it_is_mended(ready: Campaign) -> None:
    process = ready.start("next")
    with killed_at_the_end(process):
        wait_for(lambda: running(ready))
        good = ready.text
        ready.progress.write_text(good + "\n<<<<<<< HEAD\n")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "merge-conflict" in err.decode().splitlines()[-1]
    ready.progress.write_text(good)
    assert ready.json("next")["action"] == "recovered"
    assert ready.statuses() == ["VALIDATED"]


def kill_the_training(campaign: Campaign, pid: int, name: str) -> None:
    log = campaign.folder / "runs" / name / "train.log"
    wait_for(lambda: log.exists() and log.stat().st_size > 0)
    players = [
        p for p in psutil.Process(pid).children(recursive=True) if "replay.play" in " ".join(p.cmdline())
    ]
    assert len(players) == 1
    players[0].kill()


def test_a_training_that_is_killed_from_outside_is_invalid_and_tried_once_more(ready: Campaign) -> None:
    process = ready.start("next", "--json")
    with killed_at_the_end(process):
        kill_the_training(ready, process.pid, "0003-h1")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    answer = json.loads(out)
    assert answer["verdict"] == "VALIDATED"
    assert ready.runs()[2:] == ["0003-h1", "0004-h1", "0005-h1", "0006-baseline-workload"]
    assert "runs/0003-h1" not in ready.text
    # It is named wherever the verdict is.
    (named,) = [
        note for note in answer["notes"] if note.startswith("run 0003-h1 is set aside: CRASHED (signal)")
    ]
    assert named in ready.text and named in ready.json("show", "1")["notes"]
    assert ready.json("verify")["ok"] is True


def test_killed_twice_it_is_invalid(ready: Campaign) -> None:
    process = ready.start("next", "--json")
    with killed_at_the_end(process):
        kill_the_training(ready, process.pid, "0003-h1")
        kill_the_training(ready, process.pid, "0004-h1")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["verdict"] == "INVALID"
    assert ready.statuses() == ["INVALID"]
    assert ready.json("next", status=5)["action"] == "propose"


def test_too_short_a_window_is_inconclusive_and_says_what_would_suffice(
    tmp_path: Path, recordings: Path
) -> None:
    campaign = make_replay_campaign(
        tmp_path / "repo", recordings, max_runs=2, command="python3 train.py --lr=0.1 --steps=400"
    )
    shutil.rmtree(recordings / "0004-h1")
    record(recordings, "0004-h1", util=60, rate=400, seconds=1.0)
    campaign.json("next")
    campaign.propose(CHANGE)
    answer = campaign.json("next")
    assert answer["verdict"] == "INCONCLUSIVE"
    assert "the window is too short" in answer["why"]
    assert "--steps=" in answer["why"]
    assert "unknown" in {g["result"] for g in answer["gates"] if g["name"] == "delta"}


def test_the_result_of_a_run_that_crashes_names_the_error(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    log = "step 1/10 loss 2.0\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory. Tried\n"
    record(recordings, "0003-h1", log=log, seconds=3, exit_status=1)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    campaign.propose(CHANGE)
    answer = campaign.json("next")
    assert answer["verdict"] == "REJECTED"
    assert "oom_gpu" in answer["why"]
    assert "FAILED - CRASHED (oom_gpu)" in campaign.text


def test_an_intervention_in_force_reaches_the_command(ready: Campaign) -> None:
    ready.json("next")
    run = json.loads((ready.folder / "runs" / "0003-h1" / "run.json").read_text())
    baseline = json.loads((ready.folder / "runs" / "0001-baseline-workload" / "run.json").read_text())
    assert "--lr=0.1" in baseline["argv"]
    assert "--lr=0.2" in run["argv"]
    assert "--lr=0.1" not in run["argv"]
    assert (run["change"], run["hypothesis"], run["role"]) == (CHANGE, 1, "h1")
    assert run["outcome"] == "COMPLETED"
    assert os.path.isdir(run["cwd"])


def test_a_change_edited_during_the_run_does_not_get_its_result(ready: Campaign) -> None:
    process = ready.start("next")
    with killed_at_the_end(process):
        wait_for(lambda: running(ready))
        ready.progress.write_text(ready.text.replace("--lr=0.2", "--lr=0.9"))
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "another change now" in err.decode().splitlines()[-1]
    assert ready.json("next")["action"] == "recovered"
    assert ready.statuses() == ["UNTESTED"]
    assert "VALIDATED" not in ready.text


def test_a_verdict_is_not_adopted_by_another_hypothesis_of_its_number(ready: Campaign) -> None:
    ready.json("next")
    ready.progress.write_text(ready.text.partition("### Hypothesis 1")[0])
    ready.propose("--set --lr=0.777", "Something else")
    answer = ready.json("next")
    assert (answer["action"], answer["verdict"]) == ("tested", "VALIDATED")
    assert ready.json("show", "1")["runs"] == ["0006-h1", "0007-h1", "0008-baseline-workload"]


def test_code_that_changes_under_a_run_spoils_it(ready: Campaign) -> None:
    process = ready.start("next")
    with killed_at_the_end(process):
        wait_for(lambda: running(ready))
        with (ready.folder / "train.py").open("a") as f:
            f.write("# edited\n")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "train.py changed while run 0003-h1 was under way" in err.decode().splitlines()[-1]
    assert ready.statuses() == ["UNTESTED"]
    assert ready.json("next")["action"] == "recorded_baseline"


def test_a_secret_taken_away_is_not_printed(tmp_path: Path, recordings: Path) -> None:
    command = "python3 train.py --lr=0.1 --auth_token s3cretValue99"
    campaign = make_replay_campaign(tmp_path / "repo", recordings, command=command)
    campaign.json("next")
    campaign.propose("--unset --auth_token")
    done = campaign.run("next", "--json").expect(0)
    assert "s3cretValue99" not in done.out + done.err + campaign.text
    for path in (campaign.folder / "runs").rglob("*.json"):
        assert "s3cretValue99" not in path.read_text(), path
