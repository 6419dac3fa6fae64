"""Evaluations made rarer, and evaluations switched off, told as a campaign of a program in nanoGPT's form."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, copied, make_campaign
from tests.support.judged import gates, judged

PROGRAM = Path(__file__).parent.parent / "support" / "evaluating_train.py"
FILE = "# a small model\neval_interval = 10 # keep frequent because we'll overfit\n"
CONFIG = """\
metric: steps_per_s
criteria: {success: 1.2x, failure: 1.05x}
allow_env: [FAST]
"""
OFF = """\
--- a/train.py
+++ b/train.py
@@ -17,3 +17,3 @@
 max_iters = 200
-evaluates = True
+evaluates = False

"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    command = shlex.join([sys.executable, "train.py", "config/small.py", "--max_iters=250"])
    campaign = make_campaign(
        tmp_path_factory.mktemp("side") / "repo",
        command=command,
        files={"train.py": PROGRAM.read_bytes(), "config/small.py": FILE},
        config=CONFIG,
        max_runs=2,
    )
    config = campaign.config.read_text().replace("max_runs: 1}", "max_runs: 1, run_for: end}")
    campaign.config.write_text(config)
    campaign.json("next")
    return campaign


@pytest.mark.slow
def test_the_catalogues_own_proposal_leaves_some_and_reaches_the_program(
    recorded: Campaign, tmp_path: Path
) -> None:
    campaign = copied(recorded, tmp_path / "repo")
    answer = campaign.json("propose", "--from-catalogue", "eval-frequent")
    assert answer["intervention"] == "--set --eval_interval=50"
    found = gates(campaign.json("next"))
    assert (found["change_in_effect"]["result"], found["change_in_effect"]["value"]) == (
        "pass",
        "eval_interval: 50",
    )
    assert found["side_work"]["result"] == "pass"
    assert found["side_work"]["value"].startswith("evaluations 24, then 4; checkpoints 24, then 4")


@pytest.mark.heavy
@pytest.mark.parametrize(
    "change",
    ["--set --eval_interval=10000", "--env FAST=1", "--patch hypotheses/patches/off.patch"],
)
def test_switched_off_is_hollow(recorded: Campaign, tmp_path: Path, change: str) -> None:
    campaign = copied(recorded, tmp_path / "repo")
    patch = campaign.folder / "hypotheses" / "patches" / "off.patch"
    patch.parent.mkdir(parents=True)
    patch.write_text(OFF)
    campaign.propose(change)
    answer = judged(campaign)
    found = gates(answer)["side_work"]
    assert (found["result"], found["value"]) == (
        "fail",
        "evaluations 24, then none; checkpoints 24, then none",
    )
    assert (answer["verdict"], answer["why"][:7]) == ("REJECTED", "hollow:"), answer
    campaign.run("verify").expect(0)
