"""Evaluations made rarer, told as a campaign of a program in nanoGPT's form."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import make_campaign
from tests.support.judged import gates

PROGRAM = Path(__file__).parent.parent / "support" / "evaluating_train.py"
FILE = "# a small model\neval_interval = 10 # keep frequent because we'll overfit\n"
CONFIG = """\
metric: steps_per_s
criteria: {success: 1.2x, failure: 1.05x}
"""


@pytest.mark.slow
def test_the_catalogues_own_proposal_leaves_some_and_reaches_the_program(tmp_path: Path) -> None:
    campaign = make_campaign(
        tmp_path / "repo",
        command=shlex.join([sys.executable, "train.py", "config/small.py", "--max_iters=250"]),
        files={"train.py": PROGRAM.read_bytes(), "config/small.py": FILE},
        config=CONFIG,
        max_runs=2,
    )
    config = campaign.config.read_text().replace("max_runs: 1}", "max_runs: 1, run_for: end}")
    campaign.config.write_text(config)
    campaign.json("next")
    answer = campaign.json("propose", "--from-catalogue", "eval-frequent")
    assert answer["intervention"] == "--set --eval_interval=50"
    found = gates(campaign.json("next"))
    assert (found["change_in_effect"]["result"], found["change_in_effect"]["value"]) == (
        "pass",
        "eval_interval: 50",
    )
    assert found["side_work"]["result"] == "pass"
    assert found["side_work"]["value"].startswith("evaluations 24, then 4; checkpoints 24, then 4")
