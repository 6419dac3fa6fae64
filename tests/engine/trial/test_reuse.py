"""Which sealed runs count again: those of a cut-off recording or trial, and no older ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign

from gpudebug.engine.trial.reuse import newest


def baseline_runs(campaign: Campaign) -> list[str]:
    return campaign.json("status")["baselines"]["workload"]["runs"]


def untest(campaign: Campaign) -> None:
    """Reset the first hypothesis by hand, its result thrown away."""
    text = re.sub(
        r"\*\*Status\*\*: \w+\n- \*\*Result\*\*:\n(  - .*\n)+", "**Status**: UNTESTED\n", campaign.text
    )
    campaign.progress.write_text(text)
    assert campaign.statuses() == ["UNTESTED"]


def forget_verdict(campaign: Campaign, name: str) -> None:
    """Make a sealed run of a trial one whose judgement was cut off, as a kill between two runs leaves it."""
    (campaign.folder / "runs" / name / "verdict.json").unlink()


def test_the_newest_of_no_runs_is_0() -> None:
    assert newest([]) == 0
    assert newest(["0009-h1", "10000-h1"]) == 10000


def test_asking_for_a_baseline_again_measures_again(recorded: Campaign) -> None:
    seen = [baseline_runs(recorded)]
    for _ in range(3):
        recorded.run("baseline", "workload").expect(0)
        seen.append(baseline_runs(recorded))
    assert seen == [[f"000{n}-baseline-workload"] for n in (1, 2, 3, 4)]


@pytest.mark.slow
def test_a_judged_trial_lends_no_run_to_a_later_one(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings, config="criteria: {success: 20}\n")
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    for _ in range(2):
        campaign.json("next")
        used = campaign.json("show", "1")["runs"]
        untest(campaign)
    campaign.json("next")
    again = campaign.json("show", "1")["runs"]
    assert len(used) > 1
    assert not set(used) & set(again)


def test_a_cut_off_trial_goes_on_from_its_sealed_run(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    untest(recorded)
    forget_verdict(recorded, "0003-baseline-workload")
    recorded.json("next")
    # Both runs of the trial that was cut off count; what is sealed takes no verdict, so one more run does.
    assert recorded.json("show", "1")["runs"] == ["0002-h1", "0003-baseline-workload", "0004-h1"]


def test_runs_from_other_surroundings_are_left_out(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    untest(recorded)
    forget_verdict(recorded, "0003-baseline-workload")
    path = recorded.folder / "runs" / "0002-h1" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "host": "another"}))
    recorded.json("next")
    assert recorded.json("show", "1")["runs"] == ["0004-h1", "0005-baseline-workload"]


def test_a_fresh_baseline_serves_the_next_trials(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.propose("--set --lr=0.3", "Another")
    recorded.json("next")
    recorded.json("next")
    assert recorded.json("show", "2")["runs"] == ["0004-h2"]
    folder = recorded.folder / "runs" / "0004-h2"
    used = json.loads((folder / "verdict.json").read_text())["runs"]
    assert [(r["name"], r["fresh"]) for r in used if r["part"] == "baseline"] == [
        ("0001-baseline-workload", False),
        ("0003-baseline-workload", False),
    ]
    folder = recorded.folder / "runs" / "0003-baseline-workload"
    used = json.loads((folder / "verdict.json").read_text())["runs"]
    assert [r["name"] for r in used if r["fresh"]] == ["0003-baseline-workload"]


def test_a_baseline_recorded_anew_leaves_earlier_fresh_runs_behind(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    recorded.run("baseline", "workload").expect(0)
    recorded.propose("--set --lr=0.3", "Another")
    recorded.json("next")
    folder = recorded.folder / "runs" / recorded.runs()[-1]
    used = [r["name"] for r in json.loads((folder / "verdict.json").read_text())["runs"]]
    assert "0003-baseline-workload" not in used
    assert "0004-baseline-workload" in used


def test_a_run_that_was_set_aside_serves_nobody(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    for name in ("0002-h1", "0003-baseline-workload"):
        path = recorded.folder / "runs" / name / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "set_aside": "the device was shared"}))
    forget_verdict(recorded, "0003-baseline-workload")
    untest(recorded)
    recorded.json("next")
    assert recorded.json("show", "1")["runs"] == ["0004-h1", "0005-baseline-workload"]
    folder = recorded.folder / "runs" / "0005-baseline-workload"
    used = [r["name"] for r in json.loads((folder / "verdict.json").read_text())["runs"]]
    assert "0003-baseline-workload" not in used


def test_a_fresh_baseline_whose_figures_cannot_be_read_serves_no_later_trial(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.propose("--set --lr=0.3", "Another")
    recorded.json("next")
    path = recorded.folder / "runs" / "0003-baseline-workload" / "evidence.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "utilisation": None}))
    recorded.json("next")
    folder = recorded.folder / "runs" / recorded.runs()[-1]
    used = [r["name"] for r in json.loads((folder / "verdict.json").read_text())["runs"]]
    assert "0003-baseline-workload" not in used
    assert len(used) > 1
