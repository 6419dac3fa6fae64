"""What shakes a verdict afterwards, and lets it be tested again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, record

from gpudebug.core.samples.row import COLUMNS

NEIGHBOUR = {"foreign_cpu": "60", "foreign_demand": "75", "cpu_stolen": "30", "cpu_wait": "35"}


def beside(run: Path, neighbour: dict[str, str]) -> None:
    """The recording as it would be beside somebody who wants the same cores."""
    with open(run / "samples.csv", newline="") as file:
        rows = [{**dict.fromkeys(COLUMNS, ""), **row, "cpu_util": "40"} for row in csv.DictReader(file)]
    with open(run / "samples.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, **neighbour} for row in rows)


def rejected(folder: Path, neighbour: dict[str, str], *, later: float = 20.0) -> Campaign:
    """A campaign whose first hypothesis does harm; `later` is the utilisation of later baseline runs."""
    recordings = folder / "recordings"
    for name, util in (
        ("0001-baseline-workload", 20.0),
        ("0002-h1", 8.0),
        ("0003-baseline-workload", later),
        ("0004-h2", 60.0),
    ):
        run = record(recordings, name, util=util, rate=util / 2)
        if neighbour:
            beside(run, neighbour)
    campaign = make_replay_campaign(folder / "repo", recordings, runs=1)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    assert campaign.json("next")["verdict"] == "REJECTED"
    return campaign


@pytest.fixture(scope="module")
def quiet_once(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return rejected(tmp_path_factory.mktemp("quiet"), {})


@pytest.fixture
def quiet(quiet_once: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with a rejection that nobody disturbed."""
    return copied(quiet_once, tmp_path / "quiet")


@pytest.fixture(scope="module")
def drifted_once(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    campaign = rejected(tmp_path_factory.mktemp("drifted"), {}, later=45.0)
    campaign.propose("--set --lr=0.3", "Another")
    campaign.json("next")
    return campaign


@pytest.fixture
def drifted(drifted_once: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with a rejection, whose baseline later went up."""
    return copied(drifted_once, tmp_path / "drifted")


def test_a_rejection_beside_a_neighbour_costs_a_fresh_baseline_and_may_be_tested_again(
    tmp_path: Path,
) -> None:
    campaign = rejected(tmp_path, NEIGHBOUR)
    assert campaign.runs()[:3] == ["0001-baseline-workload", "0002-h1", "0003-baseline-workload"]
    answer = campaign.json("reopen", "1")
    assert answer["why"].startswith(
        "others disturbed 0001-baseline-workload, 0003-baseline-workload, 0002-h1"
    )
    assert "Earlier result (REJECTED)" in campaign.text
    assert campaign.statuses() == ["UNTESTED"]


def test_a_rejection_on_a_quiet_machine_stays(quiet: Campaign) -> None:
    assert quiet.runs() == ["0001-baseline-workload", "0002-h1"]
    assert "nothing has changed since it was measured" in quiet.run("reopen", "1").expect(1).err
    assert quiet.json("reopen", "1", "--because", "the disk was full")["was"] == "REJECTED"


def test_a_session_has_no_word(quiet: Campaign) -> None:
    done = quiet.pin().run("reopen", "1", "--because", "mine", env={"GPUDEBUG_SESSION": "a"}).expect(1)
    assert "that is a person's word" in done.err


def test_a_rejection_whose_baseline_was_recorded_again_may_be_tested_again(quiet: Campaign) -> None:
    quiet.json("baseline")
    why = quiet.json("reopen", "1")["why"]
    assert why.startswith("the baseline was recorded again since it was measured")


def test_a_rejection_whose_baseline_drifted_may_be_tested_again(drifted: Campaign) -> None:
    assert drifted.json("reopen", "1")["why"].startswith("the baseline drifted since: ")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ({"outcome": "ENDED_BY_PLAN"}, True),
        ({"outcome": "TIMED_OUT"}, False),
        ({"lengthened": {"flag": "--steps", "value": 100, "factor": 2}}, False),
    ],
)
def test_only_good_baseline_runs_of_the_same_length_show_a_drift(
    drifted: Campaign, written: dict[str, object], shown: bool
) -> None:
    """Most runs of a long training are ended by gpudebug; a longer one may have another level."""
    for name in drifted.runs()[2:]:
        path = drifted.folder / "runs" / name / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **written}))
    done = drifted.run("reopen", "1")
    assert ("the baseline drifted since: " in done.out, done.status == 0) == (shown, shown)


def test_runs_under_another_load_are_left_out_and_verify_derives_it(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    quiet = {"foreign_cpu": "3", "foreign_demand": "4", "cpu_stolen": "0", "cpu_wait": "0"}
    for name, util, neighbour in (
        ("0001-baseline-workload", 20.0, quiet),
        ("0002-h1", 60.0, NEIGHBOUR),
        ("0003-baseline-workload", 15.0, NEIGHBOUR),
        ("0004-h1", 60.0, NEIGHBOUR),
        ("0005-baseline-workload", 15.0, NEIGHBOUR),
    ):
        beside(record(recordings, name, util=util, rate=util / 2), neighbour)
    campaign = make_replay_campaign(tmp_path / "repo", recordings, runs=1)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    answer = campaign.json("next")
    assert answer["verdict"] == "VALIDATED"
    (note,) = [n for n in answer["notes"] if n.startswith("left out: ")]
    assert note.startswith(
        "left out: 0001-baseline-workload, under another load (others wanted 4% of the cores"
    )
    gate = next(g for g in answer["gates"] if g["name"] == "device_to_itself")
    assert gate["result"] == "pass"
    assert gate["value"].endswith("equal, but noisy")
    assert campaign.json("verify")["ok"] is True
