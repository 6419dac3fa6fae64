"""One `next` after the other: exactly one thing each, and the documented exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from tests.support.campaigns import (
    Campaign,
    contents,
    killed_at_the_end,
    make_campaign,
    make_replay_campaign,
    record,
    wait_for,
)

KEYS = {"action", "campaign", "hypothesis", "verdict", "gates", "brief", "next_command", "files", "why"}
CHANGES = ("--set --lr=0.2", "--set --lr=0.3", "--set --lr=0.4", "--set --lr=0.5")


@pytest.mark.slow
def test_the_whole_story(tmp_path: Path, recordings: Path) -> None:
    reference = "reference: {command: 'python3 other.py'}\ntarget: 95\n"
    campaign = make_replay_campaign(tmp_path / "repo", recordings, config=reference)
    told = [campaign.json("next"), campaign.json("next")]
    assert [(a["action"], a["role"]) for a in told] == [
        ("recorded_baseline", "workload"),
        ("recorded_baseline", "reference"),
    ]
    for number, change in enumerate(CHANGES, start=1):
        assert campaign.propose(change, f"Cause {number}")["hypothesis"] == number
    told += [campaign.json("next") for _ in CHANGES]
    assert [(a["action"], a["hypothesis"]) for a in told[2:]] == [("tested", n) for n in (1, 2, 3, 4)]
    assert [a["verdict"] for a in told[2:]] == ["VALIDATED", "REJECTED", "REJECTED", "REJECTED"]
    told.append(campaign.json("next", status=5))
    assert told[-1]["action"] == "propose"
    assert "Cause 4" in told[-1]["brief"]
    for answer in told:
        assert set(answer) >= KEYS
        assert answer["why"]
        assert answer["next_command"].startswith("gpudebug ")
        assert all(Path(f).exists() for f in answer["files"])

    status = campaign.json("status")
    assert [h["status"] for h in status["hypotheses"]] == [a["verdict"] for a in told[2:6]]
    assert all(h["verified"] for h in status["hypotheses"])
    assert status["hypotheses"][0]["delta_pp"] == pytest.approx(40, abs=1)
    assert status["hypotheses"][0]["throughput_ratio"] == pytest.approx(3, abs=0.05)
    assert status["baselines"]["reference"]["gpu_util"] == pytest.approx(90, abs=1)
    assert status["budget"]["hypotheses_used"] == 4
    for number, answer in enumerate(told[2:6], start=1):
        shown = campaign.json("show", str(number))
        assert shown["gates"] == answer["gates"]
        assert {"name", "value", "threshold", "result"} <= set(shown["gates"][0])
        assert shown["evidence"][0]["run"] == shown["runs"][0]
    nan = {g["name"]: g for g in campaign.json("show", "4")["gates"]}
    assert (nan["loss"]["value"], nan["loss"]["result"]) == ("NAN", "fail")
    text = campaign.text
    assert text.startswith("# GPU utilization debugging: test\n")
    assert text.index("### Baseline: workload") < text.index("### Hypothesis 1: Cause 1")
    assert "- **Status**: VALIDATED" in text
    assert "ValueError: bad shape" in text


@pytest.mark.slow
def test_solved_stops_with_status_4(campaign: Campaign) -> None:
    campaign.config.write_text(campaign.config.read_text() + "target: 50\n")
    campaign.json("next")
    campaign.propose(CHANGES[0])
    campaign.propose(CHANGES[1])
    assert campaign.json("next")["verdict"] == "VALIDATED"
    before = contents(campaign.folder / "progress"), campaign.runs()
    answer = campaign.json("next", status=4)
    assert answer["action"] == "stop"
    assert "solved" in answer["why"]
    assert answer["hypothesis"] == 1
    assert "Stop: solved" in campaign.run("next").expect(4).out
    assert (contents(campaign.folder / "progress"), campaign.runs()) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "why"), [("{hypotheses: 1}", "exhausted"), ("{device_time: 0.3s}", "out of budget")]
)
def test_a_used_up_budget_stops_with_status_4(campaign: Campaign, budget: str, why: str) -> None:
    campaign.config.write_text(campaign.config.read_text() + f"target: 95\nbudget: {budget}\n")
    campaign.json("next")
    campaign.propose(CHANGES[0])
    campaign.propose(CHANGES[1])
    while (done := campaign.run("next", "--json")).status == 0:
        assert len(campaign.runs()) < 6
    assert done.status == 4
    assert why in done.json["why"]
    assert "UNTESTED" in campaign.statuses()


def test_a_second_next_is_told_who_runs_and_since_when(tmp_path: Path, recordings: Path) -> None:
    record(recordings, "0008-h1", seconds=600.0)
    campaign = make_replay_campaign(tmp_path / "repo", recordings, 20)
    campaign.json("next")
    campaign.propose(CHANGES[0])
    (recordings / "0004-h1").rename(recordings / "0004-other")
    first = campaign.start("next")
    with killed_at_the_end(first):
        wait_for((campaign.folder / "runs" / "0003-h1" / "samples.csv").exists)
        running = campaign.json("status")
        assert running["running"]
        assert running["hypotheses"][0]["status"] == "TESTING"
        for words in (("next",), ("baseline",), ("sample", "--", "true")):
            done = campaign.run(*words)
            assert done.status == (125 if words[0] == "sample" else 6), done
            assert re.search(rf"pid {first.pid}, `gpudebug next`, since \d{{4}}-\d\d-\d\dT", done.err)
            assert "; next: wait" in done.err
        error = campaign.json("next", status=6)["error"]
        assert error["code"] == "busy"
        # Whoever only reads or proposes does not wait for a run of hours.
        assert campaign.propose(CHANGES[1])["hypothesis"] == 2
        os.kill(first.pid, signal.SIGINT)
        assert first.wait(60) == 130
    assert campaign.statuses() == ["UNTESTED", "UNTESTED"]
    assert not campaign.json("status")["running"]


@pytest.mark.slow
def test_the_complete_runs_of_an_interrupted_trial_count(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    campaign.json("next")
    campaign.propose("--set --work=0.1")
    first = campaign.start("next")
    with killed_at_the_end(first):
        wait_for(lambda: list(campaign.folder.glob("runs/0004-*/samples.csv")))
        os.kill(first.pid, signal.SIGINT)
        err = first.communicate(timeout=60)[1].decode()
    begun = "begun: 1 complete run of the change counts when next goes on"
    assert first.returncode == 130
    assert begun in err
    assert f"- **Status**: UNTESTED - {begun}" in campaign.text
    assert campaign.json("next")["action"] == "tested"
    assert begun not in campaign.text
    assert "runs/0003-h1" in campaign.text


def test_baseline_records_what_is_asked_for_whether_valid_or_not(campaign: Campaign) -> None:
    first = campaign.json("baseline", "workload")
    assert [b["role"] for b in first["baselines"]] == ["workload"]
    campaign.json("baseline")
    assert campaign.runs() == [f"000{number}-baseline-workload" for number in (1, 2, 3, 4)]
    assert "runs/0003-baseline-workload, runs/0004-baseline-workload" in campaign.text
    assert "runs/0002-baseline-workload" not in campaign.text


def test_one_next_records_all_runs_of_a_baseline(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    assert campaign.runs() == [f"000{n}-baseline-workload" for n in (1, 2)]
    for name in campaign.runs():
        manifest = json.loads((campaign.folder / "runs" / name / "manifest.json").read_text())
        assert set(manifest["files"]) >= {"run.json", "samples.csv", "train.log", "evidence.json"}


def test_a_verdict_by_hand_ends_the_lease_of_whoever_wrote_it(recorded: Campaign) -> None:
    recorded.propose("--code")
    recorded.json("next", status=5, env={"GPUDEBUG_SESSION": "a"})
    leases = recorded.folder / "runs" / ".leases" / "test"
    assert [p.name for p in leases.glob("*.json")] == ["h1.json"]
    recorded.progress.write_text(re.sub(r"TESTING - .*", "VALIDATED", recorded.text))
    assert recorded.json("next", status=5)["action"] == "propose"
    assert list(leases.glob("*.json")) == []
