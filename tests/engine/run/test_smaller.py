"""A change that makes the training smaller by its own words is asked about before it costs a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, record

SESSION = {"GPUDEBUG_SESSION": "a"}


@pytest.fixture(scope="module")
def original_larger(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("larger")
    recordings = folder / "recordings"
    for number in (1, 2, 5, 6):
        record(recordings, f"{number:04d}-baseline-workload", util=30, seed=number)
    for number in (3, 4):
        for label in ("h1", "h2"):
            record(recordings, f"{number:04d}-{label}", util=75, rate=25, seed=number)
    command = "python train.py --image_size=224 --hidden_size=512 --lr=0.1"
    files = {"train.py": "pass\n"}
    found = make_replay_campaign(folder / "repo", recordings, files=files, command=command)
    found.json("next")
    return found


@pytest.fixture
def campaign(original_larger: Campaign, tmp_path: Path) -> Campaign:
    return copied(original_larger, tmp_path / "repo")


def test_next_asks_before_the_first_run_and_spends_nothing(campaign: Campaign) -> None:
    proposed = campaign.json(
        "propose", "--title", "Small", "--method", "It.", "--set", "--image_size=112", env=SESSION
    )
    assert any("--image_size goes from 224 to 112" in note for note in proposed["notes"])
    runs = campaign.runs()
    for env in (SESSION, {}):
        said = campaign.run("next", env=env).expect(1).err
        assert "hypothesis 1: --image_size goes from 224 to 112: a faster step with less work" in said
        assert "- **Cause**: dl-redundant-frames" in said and 'reopen 1 --because "WHY"' in said
    assert (campaign.runs(), campaign.statuses()) == (runs, ["UNTESTED"])
    # The session has its hypothesis still, and what it proposes instead is not kept waiting.
    campaign.json("propose", "--title", "Other", "--method", "It.", "--set", "--lr=0.2", env=SESSION)
    tested = campaign.json("next", env=SESSION)
    assert (tested["action"], tested["hypothesis"]) == ("tested", 2)


def name_the_cause(campaign: Campaign) -> None:
    text = campaign.text
    campaign.progress.write_text(
        text.replace("- **Status**: UNTESTED", "- **Cause**: dl-redundant-frames\n- **Status**: UNTESTED")
    )


def test_a_cause_that_is_named_answers_it_and_the_losses_have_to_show_it(campaign: Campaign) -> None:
    campaign.propose("--set --image_size=112")
    name_the_cause(campaign)
    tested = campaign.json("next")
    assert (tested["action"], tested["verdict"]) == ("tested", "INCONCLUSIVE")
    assert "the losses do not show that what is dropped is never read" in tested["why"]
    run = json.loads((campaign.folder / "runs" / "0003-h1" / "run.json").read_text())
    assert run["redundant"] == "dl-redundant-frames"


def test_a_smaller_model_is_no_input(campaign: Campaign) -> None:
    runs = campaign.runs()
    campaign.propose("--set --hidden_size=128")
    name_the_cause(campaign)
    said = campaign.run("next").expect(1).err
    assert "--hidden_size goes from 512 to 128" in said and "Cause" not in said
    assert campaign.runs() == runs


def test_so_does_a_person_and_no_session(campaign: Campaign) -> None:
    campaign.propose("--set --image_size=112")
    words = ("reopen", "1", "--because", "the model resizes to 96")
    assert "that is a person's word" in campaign.run(*words, env=SESSION).expect(1).err
    answer = campaign.json(*words)
    assert (answer["already"], answer["why"]) == (True, "confirmed by a person: the model resizes to 96")
    tested = campaign.json("next")
    assert tested["action"] == "tested"
    assert "confirmed by a person: the model resizes to 96" in tested["notes"]
    assert campaign.json("verify")["ok"] is not False


def test_other_flags_and_larger_ones_are_not_asked_about(campaign: Campaign) -> None:
    campaign.propose("--set --image_size=448")
    assert campaign.json("next")["action"] == "tested"
