"""A whole campaign on Hugging Face's Trainer: its loader waits, and more loader workers are proposed.

Opt in with --run-heavy. GPUDEBUG_HEAVY_PYTHON names a Python that has torch, transformers and accelerate;
without it they are installed into a new environment.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.environments import python_with
from tests.support.machine import core_share

PROGRAM = Path(__file__).with_name("hf_train.py")
FLAGS = (
    "--output_dir=outputs/{run} --max_steps=160 --per_device_train_batch_size=8 --learning_rate=1e-3"
    " --logging_steps=10 --save_strategy=no --report_to=none --use_cpu=true --dataloader_pin_memory=false"
    " --dataloader_num_workers=0"
)
# Two runs a baseline and one core are enough for a difference of this size.
SETTINGS = "device: cpu:1\nprotocol: {max_runs: 3}\n"

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def training_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    modules = ("torch", "transformers", "accelerate")
    return python_with(tmp_path_factory.mktemp("heavy"), "GPUDEBUG_HEAVY_PYTHON", modules, modules)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "hf_train.py").write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / ".gitignore").write_text("outputs/\n", encoding="utf-8")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        [*identity, "commit", "-q", "-m", "Add the training program"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def gpudebug(folder: Path, *words: str) -> dict[str, Any]:
    """The JSON document that a command prints; it must end with status 0."""
    done = subprocess.run(
        [sys.executable, "-m", "gpudebug", *words, "--json"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (
        f"gpudebug {shlex.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def reported_rates(folder: Path, pattern: str) -> list[float]:
    """`train_steps_per_second` as the Trainer itself prints it at the end of each run."""
    logs = [path.read_text(errors="replace") for path in sorted(folder.glob(f"runs/{pattern}/train.log"))]
    found = [re.findall(r"'train_steps_per_second': '?([\d.]+)", log) for log in logs]
    return [float(rates[-1]) for rates in found if rates]


def test_more_loader_workers_end_as_they_were_measured(training_python: str, repository: Path) -> None:
    command = f"{shlex.quote(training_python)} hf_train.py {FLAGS}"
    spare = core_share()
    gpudebug(repository, "init", "--command", command)
    with (repository / "gpudebug.yaml").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)

    gpudebug(repository, "baseline", "workload")
    status = gpudebug(repository, "status")
    assert status["baselines"]["workload"] is not None
    assert status["next"]["action"] == "propose"

    gpudebug(
        repository,
        "propose",
        "--title=Samples are read one after the other in the training process",
        "--description=With no loader worker, each sample's wait stops the model.",
        "--method=Set --dataloader_num_workers=4.",
        "--set",
        "--dataloader_num_workers=4",
    )
    tested = gpudebug(repository, "next")
    assert tested["action"] == "tested"

    (hypothesis,) = gpudebug(repository, "status")["hypotheses"]
    gates = {gate["name"]: gate for gate in gpudebug(repository, "show", "1")["gates"]}
    assert hypothesis["status"] == tested["verdict"]
    assert gates["outcome"]["result"] == gates["loss"]["result"] == "pass"
    passed = all(gate["result"] in ("pass", "skipped") for gate in gates.values())
    assert (hypothesis["status"] == "VALIDATED") == passed

    before, after = reported_rates(repository, "*-baseline-workload*"), reported_rates(repository, "*-h1*")
    assert len(before) >= 2
    assert after
    own_ratio = (sum(after) / len(after)) / (sum(before) / len(before))
    # The Trainer counts its start and its warm-up too, so the two agree in size, not in digits.
    assert hypothesis["throughput_ratio"] == pytest.approx(own_ratio, rel=0.35)

    share = min(spare, core_share())
    if share < 0.6:
        pytest.skip(f"a busy thread gets only {share:.0%} of a core: too busy here to judge figures")
    assert hypothesis["status"] == "VALIDATED", gates
    assert hypothesis["delta_pp"] >= 20
