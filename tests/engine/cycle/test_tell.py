"""What is told where a session and a campaign end."""

from __future__ import annotations

from typing import Any

from tests.support.campaigns import Campaign

SESSION: dict[str, Any] = {"env": {"GPUDEBUG_SESSION": "a"}}


def test_a_session_and_the_campaign_end_in_what_can_be_handed_on(recorded: Campaign) -> None:
    recorded.pin()
    recorded.propose("--set --lr=0.2", "The rate is | too low")
    assert "tell" not in recorded.json("next", **SESSION)
    told = recorded.json("next", status=7, **SESSION)["tell"]
    assert told.startswith(
        "Hypothesis 1 (The rate is | too low) is VALIDATED: with `--set --lr=0.2` utilisation"
    )
    assert "(95% CI +" in told and "train.py --lr=0.2 --work=0.2`" in told
    assert "run `gpudebug accept 1`" in told
    text = recorded.run("next", **SESSION).expect(7).out
    assert f"Tell the user:\n{told}" in text
    assert recorded.json("accept", "1")["command"].endswith("train.py --lr=0.2 --work=0.2")
    assert "From now on run: " in recorded.run("accept", "1").expect(0).out
    recorded.config.write_text(recorded.config.read_text() + "budget: {hypotheses: 1}\n")
    recorded.run("settings", "--accept").expect(0)
    recorded.json("next")
    told = recorded.json("next", status=4)["tell"]
    assert "with 1 hypothesis tested. Accepted: hypothesis 1" in told
    assert "Together, as measured: GPU util" in told and "`gpudebug export`" in told
