"""The worked examples of CONTRIBUTING.md work."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from tests.core.catalogue.test_model import KEYS
from tests.support.campaigns import environment, make_replay_campaign, record
from tests.support.documents import ROOT, page

from gpudebug.core.catalogue.frameworks import find
from gpudebug.core.catalogue.parser import read_cause, read_framework
from gpudebug.core.catalogue.program import look

EXAMPLES = {
    block.mark.removeprefix("checked: "): block.text for block in page(ROOT / "CONTRIBUTING.md").blocks
}


def test_the_cause_is_read() -> None:
    assert read_cause(EXAMPLES["cause"], "metrics-upload.yaml", group="stalls").waits


def test_the_framework_is_read_and_its_recorded_command_is_recognised() -> None:
    framework = read_framework(EXAMPLES["framework"], "tinytrain.yaml")
    assert framework.locked == ("batch_size",)
    recorded = yaml.safe_load(EXAMPLES["recorded"])
    assert set(recorded) <= KEYS
    for says in recorded["commands"]:
        found = find(shlex.split(says["command"]), [framework], look("train.py", [says.get("source", "")]))
        assert found is not None
        assert found.takes_flags is says.get("flags", True)


JUDGED = """
from tests.support.trials import run, verdict
for before, after in ((100.0, 120.0), (100.0, 160.0), (None, 160.0)):
    base = [run(util, 5, peak_rss_mb=before) for util in (28, 29)]
    found = verdict(base, [run(util, 11, peak_rss_mb=after) for util in (61, 62)])
    print(found.rule, found.status, found.why)
"""


def test_a_gate_that_is_added_as_written_judges_and_leaves_older_verdicts_alone(tmp_path: Path) -> None:
    package = ROOT / "orchestrator"
    shutil.copytree(package, tmp_path / "orchestrator", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "hypotheses", tmp_path / "hypotheses")
    gates = tmp_path / "orchestrator" / "gpudebug" / "core" / "verdict" / "gates"
    (gates / "memory.py").write_text(EXAMPLES["gate"])
    place = EXAMPLES["gate's place"].replace("\n\n", "\n \n") + "\n"
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=place.encode(), check=True)
    env = {**environment(), "PYTHONPATH": f"{tmp_path / 'orchestrator'}{os.pathsep}{ROOT}"}

    judged = subprocess.run(
        [sys.executable, "-c", JUDGED], env=env, capture_output=True, text=True, check=True
    )
    passed, failed, unknown = judged.stdout.splitlines()
    assert passed.startswith("7 VALIDATED")
    assert failed == "7 REJECTED memory: 1.60x"
    assert unknown.startswith("7 INCONCLUSIVE memory is unknown")

    record(tmp_path / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(tmp_path / "recordings", "0002-h1", util=70, rate=35)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    assert campaign.json("next")["verdict"] == "VALIDATED"
    verify = [sys.executable, "-m", "gpudebug", "-C", str(campaign.folder), "verify", "--json"]
    older = subprocess.run(verify, env=env, capture_output=True, text=True, check=True)
    answer = json.loads(older.stdout)
    assert answer["problems"] == []
    assert "older rule" in str(answer["unchecked"])
