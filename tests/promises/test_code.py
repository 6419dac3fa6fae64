"""A verdict is of the code that its baseline measured: none swapped, hidden from git, or beside it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, killed_at_the_end, make_campaign, wait_for

# As long as there is a file `held` it waits, after it told that it is there.
PROGRAM = """\
import os, sys, time
from pathlib import Path
BEFORE
(Path(os.environ["GPUDEBUG_RUN_DIR"]) / "began").touch()
while Path("held").exists():
    time.sleep(0.01)
work, ends, step = (0.8 if "--lr=0.2" in sys.argv else 0.2), time.monotonic() + (SECONDS), 0
while time.monotonic() < ends:
    busy = time.process_time() + 0.05 * work
    while time.process_time() < busy:
        pass
    time.sleep(0.05 * (1 - work))
    step += 1
    print(f"step {step} loss {1 + 1 / step:.4f}", flush=True)
AFTER
"""
CONFIG = """\
campaign: test
goal: Keep the device busy.
workload: {{command: "{python} train.py --lr=0.1", timeout: 60s}}
protocol: {{min_window: 1s, baseline_runs: 1, max_runs: 2}}
criteria: {{success: 10, failure: 5, loss: any, throughput: any}}
device: cpu:1
"""


def campaign_of(
    folder: Path, *, before: str = "", after: str = "", seconds: str = "7", **files: str
) -> Campaign:
    program = PROGRAM.replace("BEFORE", before).replace("AFTER", after).replace("SECONDS", seconds)
    texts = {"train.py": program, "gpudebug.yaml": CONFIG.format(python=sys.executable)}
    return make_campaign(folder / "repo", files={**texts, **files})


def started(campaign: Campaign, name: str) -> None:
    wait_for((campaign.folder / "runs" / name / "job" / "began").exists)


def record_of(campaign: Campaign, name: str) -> Any:
    return json.loads((campaign.folder / "runs" / name / "run.json").read_text())


@pytest.mark.parametrize("program", ["train.py", "settings.yaml"])
def test_code_swapped_for_a_moment_while_a_run_starts(tmp_path: Path, program: str) -> None:
    brief = "7 if '--lr=0.1' in sys.argv else 0.5"
    campaign = campaign_of(tmp_path, seconds=brief, **{"settings.yaml": "workers: 1\n"})
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    held = campaign.folder / "held"
    held.touch()
    path = campaign.folder / program
    whole = path.read_bytes()
    process = campaign.start("next")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0002-h1").exists)
        path.write_bytes(whole + b"# swapped\n")
        started(campaign, "0002-h1")
        path.write_bytes(whole)
        held.unlink()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    said = f"{program} was written while run 0002-h1 was under way, so it counts for nothing"
    assert said in err.decode().splitlines()[-1]
    assert record_of(campaign, "0002-h1")["set_aside"] == said
    assert campaign.statuses() == ["UNTESTED"]
    assert campaign.json("verify")["ok"]


def test_a_tracked_file_that_every_run_rewrites_and_notes_spoil_nothing(tmp_path: Path) -> None:
    campaign = campaign_of(
        tmp_path,
        before='Path("metrics.json").write_text("{}")',
        **{"metrics.json": "{}", "hypotheses/notes.md": "a\n", "AGENTS.md": "a\n"},
    )
    campaign.json("next")
    assert record_of(campaign, "0001-baseline-workload")["rewritten"] == ["metrics.json"]
    campaign.propose("--set --lr=0.2")
    process = campaign.start("next", "--json")
    with killed_at_the_end(process):
        started(campaign, "0002-h1")
        for name in ("hypotheses/notes.md", "AGENTS.md", "progress/more.md"):
            (campaign.folder / name).write_text("b\n")
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    gates = {gate["name"]: gate["result"] for gate in json.loads(out)["gates"]}
    assert gates["environment_parity"] == "pass", out
    assert record_of(campaign, "0002-h1")["rewritten"] == ["metrics.json"]
    assert campaign.json("verify")["ok"]
