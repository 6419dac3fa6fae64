"""The caller's GPUDEBUG_* decide nothing of a campaign's runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.campaigns import make_campaign

PROGRAM = """\
import os, time
for name in ("PROBE", "PROFILE", "TREES", "LAYER", "ELSE"):
    print(f"GPUDEBUG_{name}=" + str(os.environ.get(f"GPUDEBUG_{name}")))
for step in range(20):
    print(f"step {step + 1}/20 loss {1 / (step + 1)}", flush=True)
    time.sleep(0.05)
"""
CALLER = {"GPUDEBUG_PROBE": "0", "GPUDEBUG_PROFILE": "mine.json", "GPUDEBUG_LAYER": "x", "GPUDEBUG_ELSE": "y"}


@pytest.mark.parametrize("pinned", [None, "0"])
def test_a_callers_variables_do_not_reach_a_run_and_pinned_ones_do(
    tmp_path: Path, pinned: str | None
) -> None:
    command = f"{sys.executable} train.py"
    made = make_campaign(tmp_path / "repo", command=command, files={"train.py": PROGRAM})
    if pinned is not None:
        text = made.config.read_text()
        made.config.write_text(text.replace("  timeout:", "  env: {GPUDEBUG_PROBE: '0'}\n  timeout:"))
    made.json("baseline", env=CALLER)
    log = (made.folder / "runs" / "0001-baseline-workload" / "train.log").read_text()
    assert f"GPUDEBUG_PROBE={pinned or 1}\n" in log
    assert "GPUDEBUG_PROFILE=sections.json\n" in log
    assert "GPUDEBUG_LAYER=None\nGPUDEBUG_ELSE=None\n" in log
    assert str(tmp_path) in next(line for line in log.splitlines() if line.startswith("GPUDEBUG_TREES="))
