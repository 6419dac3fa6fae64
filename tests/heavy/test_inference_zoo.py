"""Programs that infer, with the settings that a user begins with: judged by latencies from runs of seconds.

The two inference programs of the zoo need PyTorch, one of them pyzmq.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support import zoo
from tests.support.judged import judged

FIXES = [("rtc_inference", 5), ("policy_server", 6)]
NOTHING = [("rtc_inference", 3), ("policy_server", 1)]
SECONDS = 4


def short_campaign(name: str, folder: Path, hypothesis: int) -> zoo.ZooCampaign:
    """The program's campaign with runs too short for any window, and no word on the loss."""
    pytest.importorskip("torch")
    pytest.importorskip("zmq")
    campaign = zoo.make_zoo_campaign(folder / name, name)
    config = re.sub(r"--duration=\d+", f"--duration={SECONDS}", campaign.config.read_text())
    config = config.replace(", loss: any", "")
    campaign.config.write_text(config)
    campaign.keep_candidates(hypothesis)
    return campaign


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "fix"), FIXES, ids=[name for name, _ in FIXES])
def test_the_right_fix_is_validated_by_its_latencies(tmp_path: Path, name: str, fix: int) -> None:
    campaign = short_campaign(name, tmp_path, fix)
    recorded = campaign.json("next")
    assert "no loss is printed: judged by latency alone" in recorded["advice"]
    answer = judged(campaign, fix)
    assert answer["verdict"] == "VALIDATED", answer
    assert campaign.json("verify")["ok"] is True


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "number"), NOTHING, ids=[name for name, _ in NOTHING])
def test_a_change_that_does_nothing_is_not(tmp_path: Path, name: str, number: int) -> None:
    campaign = short_campaign(name, tmp_path, number)
    campaign.json("next")
    assert campaign.json("next")["verdict"] != "VALIDATED"
