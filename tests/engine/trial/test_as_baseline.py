"""Accepting what was just measured: the runs of its trial are the baseline, and nothing runs again."""

from __future__ import annotations

import json

import pytest
from tests.engine.conftest import PATCHES
from tests.support.campaigns import Campaign, commit_all, git

from gpudebug.engine.campaign.load import load
from gpudebug.engine.hypotheses.accept import accept
from gpudebug.engine.run.prepare import claim_of, find


def runs(campaign: Campaign) -> list[str]:
    return sorted(path.name for path in (campaign.folder / "runs").glob("0*"))


@pytest.mark.parametrize("number", ["1", "2"])
def test_the_trials_runs_are_the_baseline_and_follow_from_their_samples(
    judged: Campaign, number: str
) -> None:
    before, spent = runs(judged), judged.json("status")["budget"]["device_time_used_s"]
    trial = [name for name in judged.json("show", number)["runs"] if name.endswith(f"-h{number}")]
    judged.json("accept", number)
    status = judged.json("status")
    baseline = status["baselines"]["workload"]
    assert (baseline["valid"], baseline["verified"]) == (True, True)
    assert baseline["runs"] == runs(judged)[len(before) :]
    records = [
        json.loads((judged.folder / "runs" / name / "run.json").read_text()) for name in baseline["runs"]
    ]
    assert [record["measured_as"] for record in records] == trial
    assert not (judged.folder / "runs" / baseline["runs"][0] / "change.patch").exists()
    assert status["budget"]["device_time_used_s"] == spent
    assert judged.json("verify")["ok"]


def test_its_worth_together_is_its_verdict(judged: Campaign) -> None:
    judged.json("accept", "2")
    verdict = load(judged.folder).entries.trials[2].verdict or {}
    answer = judged.json("export")
    assert answer["combined"]["delta"] == verdict["delta"]
    assert answer["combined"]["runs_after"] == [r["name"] for r in verdict["runs"] if r["part"] == "trial"]
    assert answer["combined"]["text"].startswith("GPU util 20.")


def test_after_the_exported_patch_is_committed_the_baseline_is_this_code(judged: Campaign) -> None:
    judged.json("accept", "2")
    git(judged.folder, "apply", f"{PATCHES}/workers.patch")
    commit_all(judged.folder)
    for session in (None, "a"):
        assert load(judged.folder, session).history.baselines["workload"].why is None
    assert judged.json("export")["hypotheses"][0]["in_checkout"]
    assert judged.json("verify")["ok"]
    (judged.folder / "loader.py").write_text((judged.folder / "loader.py").read_text() + "\nmore = 1\n")
    why = load(judged.folder).history.baselines["workload"].why
    assert why is not None and why.startswith("tree changed")


def test_what_was_cut_off_between_its_writes_is_made_good_by_the_next_call(judged: Campaign) -> None:
    text = judged.text
    accept(judged.folder, 1)
    made, kept = runs(judged), judged.text
    judged.progress.write_text(text)
    next(judged.folder.glob(".git/gpudebug/**/accepted.json")).unlink()
    assert judged.json("next", status=5)["action"] == "propose"
    assert accept(judged.folder, 1).notes[0].endswith("nothing is measured again")
    assert (runs(judged), judged.text) == (made, kept)


def test_while_something_is_measured_the_baseline_is_left_to_next(judged: Campaign) -> None:
    with claim_of(find(judged.folder), "gpudebug next"):
        answer = judged.json("accept", "1")
    assert "`gpudebug next` records the baseline again" in answer["notes"][0]
    assert answer["why"].endswith("record the baseline with its change")
    assert judged.json("status")["next"]["action"] == "record_baseline"
