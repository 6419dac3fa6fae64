"""A real PyTorch training that nobody proposes anything for: the catalogue finds out and tests it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.campaigns import make_campaign

PROGRAM = Path(__file__).parents[1] / "support" / "waiting_train.py"
CONFIG = "auto_propose: true\ncriteria: {loss: any}\n"


@pytest.mark.heavy
def test_from_nothing_to_a_trial_without_anybody(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    campaign = make_campaign(
        tmp_path / "repo",
        command=f"{sys.executable} slow.py --num_workers=0",
        files={"slow.py": PROGRAM.read_bytes()},
        config=CONFIG,
        max_runs=2,
    )
    assert campaign.json("next")["action"] == "recorded_baseline"
    answer = campaign.json("next")
    assert (answer["action"], answer["hypothesis"]) == ("tested", 1), answer
    assert "proposed by the catalogue: dl-no-workers, " in answer["decided"]
    gates = {gate["name"]: gate for gate in answer["gates"]}
    assert gates["change_in_effect"]["result"] == "pass"
    assert "(the training's loader)" in gates["change_in_effect"]["value"]
    assert "- **Cause**: dl-no-workers\n" in campaign.text
    assert campaign.json("verify")["ok"]
