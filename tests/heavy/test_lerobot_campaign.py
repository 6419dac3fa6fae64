"""LeRobot's own `lerobot-train` with policy act on a data set made here, unchanged, on the CPU.

Opt in with --run-heavy. GPUDEBUG_LEROBOT_PYTHON names a Python with lerobot; without it, it is installed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, commit_all, environment, make_repository
from tests.support.environments import python_with

HERE = Path(__file__).parent
# A checkpoint of the whole model and its optimizer after every second step.
COMMAND = """\
lerobot-train --policy.type=act --dataset.repo_id=local/arm --dataset.root=data/arm --steps=60
  --batch_size=4 --policy.chunk_size=8 --policy.n_action_steps=8 --policy.use_vae=false
  --policy.dim_model=64 --policy.n_heads=4 --policy.dim_feedforward=128 --policy.n_encoder_layers=1
  --policy.pretrained_backbone_weights=null --policy.optimizer_lr=1e-3 --policy.device=cpu
  --wandb.enable=false --policy.push_to_hub=false --output_dir=outputs/train --num_workers=0
  --save_freq=2"""
SETTINGS = """\
metric: steps_per_s
criteria: {success: 1.2x, failure: 1.1x}
protocol: {max_runs: 3}
device: cpu:1
"""

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A repository with the data set, `lerobot-train` on the PATH, and nothing of gpudebug yet."""
    python = Path(python_with(tmp_path, "GPUDEBUG_LEROBOT_PYTHON", ("lerobot",), ("torch", "lerobot")))
    monkeypatch.setenv("PATH", str(python.parent), prepend=":")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    program = (HERE / "lerobot_dataset.py").read_text()
    files = {"make_dataset.py": program, ".gitignore": "data/\noutputs/\n"}
    folder = make_repository(tmp_path / "repo", files)
    words = [str(python), "make_dataset.py", "data/arm", "96"]
    subprocess.run(words, cwd=folder, env=environment(), check=True, capture_output=True)
    return Campaign(folder)


def test_a_baseline_a_diagnosis_and_the_fix_by_its_real_flag(campaign: Campaign) -> None:
    started = campaign.json("init", "--command", " ".join(COMMAND.split()))
    assert started["framework"] == "lerobot"
    said = " ".join(started["notes"])
    # The default prints one loss line in 200 steps: 60 steps would have none.
    assert "--log_freq=6" in said and "{run}" in said
    config = campaign.folder / "gpudebug.yaml"
    text = config.read_text().replace("--save_freq=2", "--save_freq=2 --log_freq=6")
    start, end = text.index("metric:"), text.index("# Flags")
    config.write_text(text[:start] + SETTINGS + text[end:])
    commit_all(campaign.folder)

    campaign.run("baseline", timeout=600).expect(0)
    evidence = campaign.json("status")["baselines"]["workload"]
    assert evidence["loss"] == "CONVERGING"
    first = campaign.folder / "runs" / Path(evidence["runs"][0]).name
    run = json.loads((first / "evidence.json").read_text())
    assert run["framework"] == "lerobot" and run["steps"] == 60
    assert run["data_s"] > 0 and run["update_s"] > 0

    diagnosis = campaign.json("diagnose")
    assert diagnosis["causes"][0]["id"] == "checkpoint", diagnosis["causes"][:3]
    campaign.json("propose", "--from-catalogue", "checkpoint")
    tested = campaign.json("next", timeout=600)
    shown = campaign.json("show", "1")
    assert "save_" in shown["intervention"]
    assert tested["verdict"] == "VALIDATED", tested
