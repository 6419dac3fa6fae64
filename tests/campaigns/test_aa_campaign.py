"""Trials of a real training program that change nothing: a verdict that finds a gain is false."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_repository
from tests.support.judged import measured_again, settled

from gpudebug import demo

# A small network that waits for its batches, so that a run is over in seconds.
COMMAND = (
    f"{shlex.quote(sys.executable)} train.py --hidden=256 --latency=0.03 --prefetch=0 --warmup_steps=5"
    " --duration=6.5"
)
CONFIG = f"""\
allow_env: [NOBODY_READS_THIS]
campaign: aa
workload:
  command: {json.dumps(COMMAND)}
  env: {{OPENBLAS_NUM_THREADS: "1", OMP_NUM_THREADS: "1"}}
  timeout: 2m
protocol: {{max_runs: 3}}
budget: {{hypotheses: TRIALS, device_time: 1h}}
device: cpu:1
"""


@pytest.mark.heavy
@pytest.mark.parametrize("trials", [20])
@pytest.mark.timeout(1200)
def test_trials_that_change_nothing_give_no_validated(tmp_path: Path, trials: int) -> None:
    files = {**demo.files(), "gpudebug.yaml": CONFIG.replace("TRIALS", str(trials))}
    campaign = Campaign(make_repository(tmp_path / "repo", files))
    campaign.json("baseline", "--aa", "--runs", "2")
    values = ",".join(str(i) for i in range(1, trials + 1))
    campaign.json("propose", "--sweep", f"env:NOBODY_READS_THIS={values}")
    answers = [campaign.json("next") for _ in range(trials)]
    assert [a["action"] for a in answers] == ["tested"] * trials
    # Others on this machine may spoil a trial; it is made again.
    spoilt = [a for a in answers if a["verdict"] == "INVALID"]
    answers += [settled(a, lambda number: measured_again(campaign, number)) for a in spoilt]
    verdicts = {a["hypothesis"]: (a["verdict"], a["why"]) for a in answers}
    assert {verdict for verdict, _ in verdicts.values()} <= {"REJECTED", "INCONCLUSIVE"}, verdicts
    status = campaign.json("status")
    assert status["next"]["action"] == "stop"
    (sweep,) = status["sweeps"]
    assert [row["value"] for row in sweep["rows"]] == values.split(",")
    assert {row["status"] for row in sweep["rows"]} == {verdict for verdict, _ in verdicts.values()}
    campaign.run("verify").expect(0)
