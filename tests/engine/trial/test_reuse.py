"""Which sealed runs count again: those of a cut-off recording or trial, and no older ones."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.campaigns import Campaign

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


def used_by(campaign: Campaign, name: str) -> list[dict[str, Any]]:
    """The runs that the verdict in this run's folder was judged by."""
    found: list[dict[str, Any]] = json.loads((campaign.folder / "runs" / name / "verdict.json").read_text())[
        "runs"
    ]
    return found


def parts(campaign: Campaign, name: str, part: str) -> list[str]:
    return [r["name"] for r in used_by(campaign, name) if r["part"] == part]


def test_the_newest_of_no_runs_is_0() -> None:
    assert newest([]) == 0
    assert newest(["0009-h1", "10000-h1"]) == 10000


def test_asking_for_a_baseline_again_measures_again(recorded: Campaign) -> None:
    seen = [baseline_runs(recorded)]
    for _ in range(3):
        recorded.run("baseline", "workload").expect(0)
        seen.append(baseline_runs(recorded))
    assert seen == [[f"000{n}-baseline-workload", f"000{n + 1}-baseline-workload"] for n in (1, 3, 5, 7)]


def test_a_change_that_is_tested_again_goes_on_from_all_its_runs(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    used = recorded.json("show", "1")["runs"]
    assert used == ["0003-h1", "0004-h1", "0005-baseline-workload"]
    untest(recorded)
    recorded.json("next")
    assert parts(recorded, "0007-baseline-workload", "trial") == ["0003-h1", "0004-h1", "0006-h1"]


def test_a_cut_off_trial_goes_on_from_its_sealed_runs(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    untest(recorded)
    forget_verdict(recorded, "0005-baseline-workload")
    recorded.json("next")
    # What is sealed takes no verdict, so the trial goes on until the next run that may decide.
    last = "0007-baseline-workload"
    assert recorded.runs()[-1] == last
    assert parts(recorded, last, "trial") == ["0003-h1", "0004-h1", "0006-h1"]
    assert parts(recorded, last, "baseline")[2:] == ["0005-baseline-workload", last]


def test_runs_from_other_surroundings_are_left_out(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    untest(recorded)
    forget_verdict(recorded, "0005-baseline-workload")
    for name in ("0003-h1", "0005-baseline-workload"):
        path = recorded.folder / "runs" / name / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "host": "another"}))
    recorded.json("next")
    last = recorded.runs()[-1]
    assert parts(recorded, last, "trial")[0] == "0004-h1"
    assert parts(recorded, last, "baseline") == ["0001-baseline-workload", "0002-baseline-workload", last]


def test_a_baselines_run_beside_a_trial_serves_the_next_trials(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.propose("--set --lr=0.3", "Another")
    recorded.json("next")
    recorded.json("next")
    assert recorded.json("show", "2")["runs"] == ["0006-h2"]
    used = used_by(recorded, "0006-h2")
    assert [(r["name"][:4], r["fresh"]) for r in used if r["part"] == "baseline"] == [
        ("0001", False),
        ("0002", False),
        ("0005", False),
    ]
    used = used_by(recorded, "0005-baseline-workload")
    assert [r["name"] for r in used if r["fresh"]] == ["0005-baseline-workload"]


def test_a_baseline_recorded_anew_leaves_earlier_runs_of_it_behind(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    recorded.run("baseline", "workload").expect(0)
    recorded.propose("--set --lr=0.3", "Another")
    recorded.json("next")
    anew = ["0006-baseline-workload", "0007-baseline-workload"]
    assert recorded.runs()[5:] == [*anew, "0008-h2"]
    assert parts(recorded, "0008-h2", "baseline") == anew


def test_a_run_that_was_set_aside_serves_nobody(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.json("next")
    for name in ("0003-h1", "0004-h1", "0005-baseline-workload"):
        path = recorded.folder / "runs" / name / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "set_aside": "the device was shared"}))
    forget_verdict(recorded, "0005-baseline-workload")
    untest(recorded)
    recorded.json("next")
    used = [r["name"] for r in used_by(recorded, recorded.runs()[-1])]
    assert len(used) > 2
    assert not {"0003-h1", "0004-h1", "0005-baseline-workload"} & set(used)


def test_a_baselines_run_whose_figures_cannot_be_read_serves_no_later_trial(recorded: Campaign) -> None:
    recorded.propose("--set --lr=0.2")
    recorded.propose("--set --lr=0.3", "Another")
    recorded.json("next")
    path = recorded.folder / "runs" / "0005-baseline-workload" / "evidence.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "utilisation": None}))
    recorded.json("next")
    used = [r["name"] for r in used_by(recorded, recorded.runs()[-1])]
    assert "0005-baseline-workload" not in used
    assert used[:2] == ["0001-baseline-workload", "0002-baseline-workload"]
