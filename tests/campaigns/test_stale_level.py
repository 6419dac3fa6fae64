"""The level after a pause: the unchanged program runs first, and a run that says nothing is made again."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign

STEPPING = """\
import pathlib, sys, time

mute = pathlib.Path(sys.argv[1])
silent = mute.exists()
mute.unlink(missing_ok=True)
for step in range(150):
    time.sleep(0.01)
    if not silent:
        print(f"step {step} loss {3 / (1 + 0.1 * step):.4f}", flush=True)
"""


@pytest.mark.slow
def test_after_a_pause_the_level_is_looked_at_before_the_change(tmp_path: Path) -> None:
    mute = tmp_path / "mute"
    campaign = make_campaign(
        tmp_path / "repo",
        command=shlex.join([sys.executable, "train.py", str(mute), "--lr=0.1"]),
        files={"train.py": STEPPING},
        config="metric: steps_per_s\ncriteria: {success: 1.2x, failure: 1.1x, throughput: any}\n",
        max_runs=2,
    )
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    _pause(campaign)
    mute.touch()
    answer = campaign.json("next")
    assert answer["verdict"] == "INCONCLUSIVE", answer
    run = "0003-baseline-workload"
    assert f"run {run} is set aside: it has no steps_per_s" in answer["notes"]
    order = ["baseline-workload", "baseline-workload", "h1", "h1", "baseline-workload"]
    assert [name[5:] for name in campaign.runs()[2:7]] == order
    assert "0004-baseline-workload" in _used(campaign) and run not in _used(campaign)

    # The trial ended with a run of the baseline: without the pause it would go on with one of the change.
    made = campaign.runs()
    assert made[-1].endswith("-baseline-workload")
    _pause(campaign)
    campaign.json("next", "--more", "1")
    assert campaign.runs()[len(made)].endswith("-baseline-workload")
    assert campaign.json("verify")["ok"] is True


def _pause(campaign: Campaign) -> None:
    """As long as a handful of the runs, which fade from the level as runs would."""
    record = json.loads((campaign.folder / "runs" / campaign.runs()[0] / "run.json").read_text())
    time.sleep(4.5 * record["duration_s"])


def _used(campaign: Campaign) -> set[str]:
    verdict = json.loads((campaign.folder / "runs" / campaign.runs()[-1] / "verdict.json").read_text())
    return {run["name"] for run in verdict["runs"]}
