"""Two frames are loaded where the policy reads one: an agent drops the other, in code, and its user is asked
nothing. It is what this project began with."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_repository
from tests.support.judged import gates, measured_again, settled
from tests.support.places import SUPPORT
from tests.support.probed import needs_torch

CONFIG = f"""\
campaign: frames
goal: Keep the device busy.
# Utilisation of a CPU says little where others want it, too.
metric: steps_per_s
criteria: {{success: 1.2x, failure: 1.05x}}
workload:
  command: {json.dumps(f"{shlex.quote(sys.executable)} train.py --duration=8")}
  env: {{OMP_NUM_THREADS: "1"}}
  timeout: 2m
protocol: {{max_runs: 4}}
device: cpu:1
"""
SESSION = {"GPUDEBUG_SESSION": "agent-1"}


@needs_torch
@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_an_agent_drops_a_frame_that_is_never_read(tmp_path: Path) -> None:
    program = (SUPPORT / "frames_train.py").read_text()
    files = {"train.py": program, "gpudebug.yaml": CONFIG, ".gitignore": "runs/\n"}
    campaign = Campaign(make_repository(tmp_path / "repo", files))
    assert campaign.json("next")["action"] == "recorded_baseline"
    campaign.json("propose", "--code", "--title", "The earlier frame is not read", env=SESSION)
    asked = campaign.json("next", env=SESSION, status=5)
    assert asked["action"] == "implement"
    path = Path(asked["worktree"]) / "train.py"
    path.write_text(program.replace("OFFSETS = [-1, 0]", "OFFSETS = [0]"))

    answer = settled(campaign.json("next", env=SESSION), lambda number: measured_again(campaign, number))
    assert answer["verdict"] == "VALIDATED", answer["why"]
    throughput = gates(answer)["throughput"]
    assert (throughput["result"], throughput["unexplained"]) == ("pass", None)
    assert "elements of input for each step of the optimizer" in throughput["note"]
    assert not any("confirmed by a person" in note for note in answer["notes"])
    assert campaign.json("verify")["ok"] is True
