"""What is told where a session and a campaign end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.campaigns import Campaign, record

SESSION: dict[str, Any] = {"env": {"GPUDEBUG_SESSION": "a"}}


def test_a_session_and_the_campaign_end_in_what_can_be_handed_on(
    campaign: Campaign, recordings: Path
) -> None:
    record(recordings, "0005-original")
    campaign.pin()
    campaign.json("next")
    campaign.propose("--set --lr=0.2", "The rate is | too low")
    assert "tell" not in campaign.json("next", **SESSION)
    told = campaign.json("next", status=7, **SESSION)["tell"]
    assert told.startswith(
        "Hypothesis 1 (The rate is | too low) is VALIDATED: with `--set --lr=0.2` utilisation"
    )
    assert "(95% CI +" in told and "train.py --lr=0.2 --work=0.2`" in told
    assert "run `gpudebug accept 1`" in told
    text = campaign.run("next", **SESSION).expect(7).out
    assert f"Tell the user:\n{told}" in text
    assert campaign.json("accept", "1")["command"].endswith("train.py --lr=0.2 --work=0.2")
    assert "From now on run: " in campaign.run("accept", "1").expect(0).out
    campaign.config.write_text(campaign.config.read_text() + "budget: {hypotheses: 1}\n")
    campaign.run("settings", "--accept").expect(0)
    told = campaign.json("next", status=4)["tell"]
    assert "with 1 hypothesis tested. Accepted: hypothesis 1" in told
    assert "Together, as measured: GPU util" in told and "`gpudebug export`" in told
