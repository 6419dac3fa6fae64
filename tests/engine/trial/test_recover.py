"""`kill -9` in each phase of a trial: the next `next` recovers, and no result is lost or doubled."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, killed_at_the_end, make_replay_campaign, record, wait_for

from gpudebug.edges import store
from gpudebug.engine.trial import recover

CHANGE = "--set --lr=0.2"


def kill_when(campaign: Campaign, condition: object) -> None:
    """Start `next` and kill it, alone and at once, as soon as the condition holds."""
    process = campaign.start("next")
    with killed_at_the_end(process):
        wait_for(condition)  # type: ignore[arg-type]
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)


@pytest.fixture
def slow(tmp_path: Path, recordings: Path) -> Campaign:
    """A campaign with a baseline and an untested hypothesis; only its first run takes long."""
    shutil.rmtree(recordings / "0004-h1")
    record(recordings, "0004-h1", seconds=6000.0)
    record(recordings, "0005-h1", util=60, rate=30)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    campaign.propose(CHANGE)
    return campaign


def test_killed_between_testing_and_the_run_folder(recorded: Campaign) -> None:
    recorded.propose(CHANGE)
    recorded.progress.write_text(recorded.text.replace("UNTESTED", "TESTING"))
    assert recorded.json("status")["next"]["action"] == "recover"
    answer = recorded.json("next")
    assert (answer["action"], answer["hypothesis"]) == ("recovered", 1)
    assert "TESTING" in answer["why"]
    assert recorded.statuses() == ["UNTESTED"]
    assert recorded.json("next")["verdict"] == "VALIDATED"


def test_killed_while_the_training_runs(slow: Campaign) -> None:
    run = slow.folder / "runs" / "0003-h1"
    kill_when(slow, lambda: (run / "train.log").exists() and (run / "train.log").stat().st_size > 0)
    assert slow.statuses() == ["TESTING"]
    assert slow.json("status")["next"]["action"] == "recover"
    answer = slow.json("next")
    assert (answer["action"], answer["run"], answer["hypothesis"]) == ("recovered", "0003-h1", 1)
    assert json.loads((run / "run.json").read_text())["outcome"] == "INTERRUPTED"
    assert (run / "manifest.json").exists()
    assert slow.statuses() == ["UNTESTED"]
    tested = slow.json("next")
    assert (tested["action"], tested["verdict"]) == ("tested", "VALIDATED")
    assert slow.runs()[2:] == ["0003-h1", "0004-h1", "0005-h1", "0006-baseline-workload"]
    assert "runs/0003-h1" not in slow.text


def test_the_file_may_be_edited_between_the_kill_and_the_recovery(slow: Campaign) -> None:
    kill_when(slow, (slow.folder / "runs" / "0003-h1" / "samples.csv").exists)
    text = slow.text.replace("The loader waits", "The loader waits, I think").replace(
        "TESTING", "testing now"
    )
    slow.progress.write_text("My own words first.\n\n" + text + "\n## Notes\n\nMine.\n")
    assert slow.json("next")["action"] == "recovered"
    assert slow.statuses() == ["UNTESTED"]
    assert slow.text.startswith("My own words first.\n\n")
    assert slow.text.endswith("\n## Notes\n\nMine.\n")
    assert "The loader waits, I think" in slow.text


def test_a_hypothesis_deleted_between_the_kill_and_the_recovery_does_not_stop_it(slow: Campaign) -> None:
    kill_when(slow, (slow.folder / "runs" / "0003-h1" / "samples.csv").exists)
    slow.progress.write_text(slow.text.partition("### Hypothesis 1")[0])
    assert slow.json("next")["action"] == "recovered"
    assert slow.json("next", status=5)["action"] == "propose"


@pytest.fixture
def judged(told: Campaign) -> Campaign:
    """Killed after the seal and before the second splice: a verdict that the progress file lacks."""
    told.after = told.text  # type: ignore[attr-defined]
    text = told.text.replace("VALIDATED", "TESTING", 1)
    told.progress.write_text(re.sub(r"- \*\*Result\*\*:\n(  - .*\n)+", "", text))
    return told


def test_a_judged_run_without_its_entry_is_adopted_exactly_once(judged: Campaign) -> None:
    assert judged.json("status")["next"]["action"] == "recover"
    answer = judged.json("next")
    assert (answer["action"], answer["run"]) == ("recovered", "0005-baseline-workload")
    assert judged.text == judged.after  # type: ignore[attr-defined]
    assert judged.json("status")["hypotheses"][0]["verified"] is True
    assert judged.json("next")["hypothesis"] == 2
    assert judged.runs()[2:] == ["0003-h1", "0004-h1", "0005-baseline-workload", "0006-h2"]
    assert judged.text.count("runs/0003-h1") == 1


def test_an_adopted_result_enters_a_file_that_was_edited(judged: Campaign) -> None:
    text = judged.text.replace("- **Test Method**: ", "- **Test Method**: mine, ", 1)
    judged.progress.write_bytes(text.replace("\n", "\r\n").encode())
    assert judged.json("next")["action"] == "recovered"
    raw = judged.progress.read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert b"mine, " in raw
    assert judged.statuses() == ["VALIDATED", "UNTESTED"]


def test_a_judged_run_of_a_deleted_hypothesis_is_left_alone(judged: Campaign) -> None:
    judged.progress.write_text(
        re.sub(r"### Hypothesis 1.*?(?=### Hypothesis 2)", "", judged.text, flags=re.S)
    )
    assert judged.json("next")["hypothesis"] == 2


def test_killed_before_run_json_was_written(recorded: Campaign) -> None:
    """Nothing was launched then; the folder is none of a run, and its number is not used again."""
    (recorded.folder / "runs" / "0003-h1").mkdir()
    assert recorded.json("next", status=5)["action"] == "propose"
    recorded.propose("--set --lr=0.2")
    assert recorded.json("next")["action"] == "tested"
    assert "0004-h1" in recorded.runs()


@pytest.mark.parametrize("torn", [b"", b'{"name": "0003-h1", ', b"\xff\xfe", b"[]", b'{"name": 3}'])
def test_a_torn_run_json_is_no_obstacle(recorded: Campaign, torn: bytes) -> None:
    run = recorded.folder / "runs" / "0003-h1"
    run.mkdir()
    (run / "run.json").write_bytes(torn)
    for _ in range(3):
        if recorded.json("status")["next"]["action"] == "propose":
            break
        recorded.json("next")
    assert recorded.json("next", status=5)["action"] == "propose"


@pytest.mark.parametrize("name", ["2024-05-01_tb", "0007-Notes", "0008-logs"])
def test_somebody_elses_folder_is_left_alone(recorded: Campaign, name: str) -> None:
    own = recorded.folder / "runs" / name / "events"
    own.mkdir(parents=True)
    before = recorded.runs()
    assert recorded.json("next", status=5)["action"] == "propose"
    assert recorded.runs() == before
    assert [p.name for p in own.parent.iterdir()] == ["events"]


def test_a_killed_baseline_keeps_its_finished_runs(tmp_path: Path, recordings: Path) -> None:
    shutil.rmtree(recordings / "0002-baseline-workload")
    record(recordings, "0002-baseline-workload", seconds=6000.0)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    kill_when(campaign, (campaign.folder / "runs" / "0002-baseline-workload" / "samples.csv").exists)
    assert campaign.json("next")["run"] == "0002-baseline-workload"
    record(recordings, "0008-baseline-workload")
    assert campaign.json("next")["action"] == "recorded_baseline"
    assert "runs/0001-baseline-workload, runs/0003-baseline-workload" in campaign.text
    assert campaign.json("status")["next"]["action"] == "propose"


def test_a_killed_sample_is_recovered_too(campaign: Campaign) -> None:
    process = campaign.start("sample", "--", "sleep", "600")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0001-sample" / "samples.csv").exists)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    assert campaign.json("next")["run"] == "0001-sample"
    assert campaign.json("next")["action"] == "recorded_baseline"


def test_what_a_killed_gpudebug_and_its_warden_left_is_ended(slow: Campaign) -> None:
    run = slow.folder / "runs" / "0003-h1"
    process = slow.start("next")
    with killed_at_the_end(process):
        wait_for(lambda: (run / "train.log").exists() and (run / "train.log").stat().st_size > 0)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(process.pid, signal.SIGSTOP)
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    assert slow.json("next")["action"] == "recovered"
    assert slow.statuses() == ["UNTESTED"]


def test_a_file_in_runs_is_no_run(campaign: Campaign) -> None:
    (campaign.folder / "runs").mkdir()
    (campaign.folder / "runs" / "0007-notes.md").write_text("mine\n")
    assert campaign.json("next")["action"] == "recorded_baseline"
    assert (campaign.folder / "runs" / "0007-notes.md").read_text() == "mine\n"


JOB = store.AllocationNote(job="12", since="2026-11-26T06:00:00+00:00")


@pytest.mark.parametrize(
    ("node", "note", "why"),
    [
        (None, {"ended": "Slurm ended job 12: NODE_FAIL", "lost": True}, "gpudebug was killed"),
        ("12", {}, "gpudebug was killed"),
        ("12", {"ended": "gpudebug stop"}, "gpudebug was killed"),
        ("11", {"ended": "Slurm ended job 12: NODE_FAIL", "lost": True}, "gpudebug was killed"),
        ("12.1", {"ended": "Slurm ended job 12: TIMEOUT", "lost": True}, "Slurm ended job 12: TIMEOUT"),
        ("12", {"left": "job 12 is near its end"}, "job 12 is near its end"),
        ("12", {"waits": "BeginTime"}, "job 12 was put into the queue again"),
    ],
)
def test_a_run_that_the_cluster_cut_off_says_so(
    tmp_path: Path, node: str | None, note: dict[str, Any], why: str
) -> None:
    files = store.Allocations(store.private_folder(tmp_path))
    files.make()
    files.put_note(store.AllocationNote(**{"job": JOB.job, "since": JOB.since, **note}))
    known = {"node": {"name": "n0", "allocation": node}} if node else {}
    found = recover._reason(store.Workspace(tmp_path), known)
    assert found == (why if why == "gpudebug was killed" else f"by the cluster: {why}")
