"""Campaigns of the demo's real training program while a stranger has one core, always or for a while."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, make_repository

from gpudebug import demo

SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"
COMMAND = (
    f"{shlex.quote(sys.executable)} train.py --hidden=256 --latency=0.05 --prefetch=0 --warmup_steps=5"
    " --duration=8"
)
CONFIG = f"""\
allow_env: [NOBODY_READS_THIS]
campaign: busy
workload:
  command: {json.dumps(COMMAND)}
  env: {{OPENBLAS_NUM_THREADS: "1", OMP_NUM_THREADS: "1"}}
  timeout: 2m
metric: steps_per_s
criteria: {{success: 1.3x, failure: 1.1x}}
protocol: {{max_runs: 4}}
budget: {{hypotheses: 40, device_time: 2h}}
device: cpu:1
"""


@contextmanager
def stranger() -> Iterator[None]:
    """Somebody who keeps one core busy."""
    core = str(min(os.sched_getaffinity(0)))
    with subprocess.Popen([sys.executable, "-c", SPIN, core], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def campaign_in(folder: Path) -> Campaign:
    return Campaign(make_repository(folder, {**demo.files(), "gpudebug.yaml": CONFIG}))


def told(campaign: Campaign) -> dict[int, tuple[str, str]]:
    """The verdict on each hypothesis as it is tested."""
    found: dict[int, tuple[str, str]] = {}
    while (answer := campaign.run("next", "--json").json)["action"] == "tested":
        found[answer["hypothesis"]] = (answer["verdict"], answer["why"])
    return found


def gate_of(campaign: Campaign, number: int) -> dict[str, Any]:
    gates = campaign.json("show", str(number))["gates"]
    return next(dict(g) for g in gates if g["name"] == "device_to_itself")


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("trials", [20])
def test_nothing_is_found_beside_a_stranger_where_nothing_is(tmp_path: Path, trials: int) -> None:
    campaign = campaign_in(tmp_path / "repo")
    with stranger():
        campaign.json("next")
        values = ",".join(map(str, range(trials)))
        campaign.json("propose", "--sweep", f"env:NOBODY_READS_THIS={values}")
        verdicts = told(campaign)
    assert len(verdicts) == trials
    assert "VALIDATED" not in {verdict for verdict, _ in verdicts.values()}, verdicts
    harmful = [why for verdict, why in verdicts.values() if verdict == "REJECTED" and "delta: 0." in why]
    assert not [why for why in harmful if float(why.split("to ")[1].split(")")[0]) < 1.0], harmful
    campaign.run("verify").expect(0)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("when", ["always", "from the baseline on", "until the baseline"])
def test_a_right_fix_is_found_whenever_the_stranger_is_there(tmp_path: Path, when: str) -> None:
    campaign = campaign_in(tmp_path / "repo")
    if when == "from the baseline on":
        campaign.json("next")
    with stranger():
        if when != "from the baseline on":
            campaign.json("next")
        campaign.propose("--set --prefetch=4", "Batches are not prefetched")
        if when != "until the baseline":
            verdicts = told(campaign)
    if when == "until the baseline":
        time.sleep(1)
        verdicts = told(campaign)
    assert verdicts[1][0] == "VALIDATED", (verdicts, gate_of(campaign, 1))
    campaign.run("verify").expect(0)
