"""`status` and `show`: where the campaign stands, from the files alone, changing nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, contents, make_replay_campaign

UNUSUAL = """\
# by hand
## Hypothesis 2 - no bold, dashes
* description: star bullets
* Status - untested
## **Hypothesis 5:** Emoji and bold
* **Status:** ✅ VALIDATED - by an agent
* Result: it was faster
```
### Hypothesis 9: in a fence
- Status: VALIDATED
```
### Own section
Text.
"""


def test_looking_changes_nothing(told: Campaign) -> None:
    before = contents(told.folder)
    for words in (("status",), ("status", "--json"), ("show", "1"), ("show", "2", "--json")):
        told.run(*words).expect(0)
    assert contents(told.folder) == before


def test_text_and_json_say_the_same(told: Campaign) -> None:
    answer, text = told.json("status"), told.run("status").expect(0).out
    assert f"Campaign {answer['campaign']}" in text
    for hypothesis in answer["hypotheses"]:
        assert re.search(rf"^ +{hypothesis['number']}  {hypothesis['status']} ", text, flags=re.M)
    assert f"{answer['hypotheses'][0]['delta_pp']:+.1f}pp" in text
    assert answer["next"]["why"] in text
    assert f"Target   {answer['target']:.1f}%" in text
    low, high = answer["hypotheses"][0]["delta_ci"]
    assert low < answer["hypotheses"][0]["delta_pp"] < high


def test_show_names_files_that_are_there(told: Campaign) -> None:
    answer = told.json("show", "1")
    assert all(Path(f).exists() for f in answer["files"])
    assert str(told.folder / "runs" / "0002-h1") in answer["files"]
    assert answer["evidence"][0]["utilisation"] == pytest.approx(60, abs=1)
    text = told.run("show", "1").expect(0).out
    for gate in answer["gates"]:
        assert gate["name"] in text


def test_a_file_in_the_seeds_own_format_is_read(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings, progress=UNUSUAL, runs=1)
    answer = campaign.json("status")
    assert [(h["number"], h["status"]) for h in answer["hypotheses"]] == [(2, "UNTESTED"), (5, "VALIDATED")]
    assert answer["hypotheses"][1]["verified"] is False
    assert campaign.text == UNUSUAL


def test_the_target_is_the_references_less_failure(tmp_path: Path, recordings: Path) -> None:
    config = "reference: {command: 'python3 other.py'}\n"
    campaign = make_replay_campaign(tmp_path / "repo", recordings, config=config, runs=1)
    assert campaign.json("status")["target"] == 80
    campaign.json("next")
    campaign.json("next")
    assert campaign.json("status")["target"] == pytest.approx(80, abs=1)
    campaign.config.write_text(campaign.config.read_text() + "criteria: {failure: 15}\n")
    assert campaign.json("status")["target"] == pytest.approx(75, abs=1)
    campaign.config.write_text(campaign.config.read_text() + "target: 42\n")
    assert campaign.json("status")["target"] == 42
