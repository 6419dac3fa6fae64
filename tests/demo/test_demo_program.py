"""The demo's campaign as a whole: its files start, and each hypothesis does what it says."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpudebug import demo
from gpudebug.core import config
from gpudebug.core.change import intervention

ONE_THREAD = config.load(demo.files()["gpudebug.yaml"], "gpudebug.yaml").workload.env


def commands(text: str) -> tuple[list[str], list[str]]:
    """The argument vectors of workload and reference."""
    settings = config.load(text, "gpudebug.yaml")
    assert settings.reference is not None
    return list(settings.workload.argv()), list(settings.reference.argv())


def with_flag(argv: list[str], change: str) -> list[str]:
    return list(intervention.parse(change).apply(argv, {}).argv)


def run(argv: list[str], folder: Path) -> tuple[int, list[float], str]:
    """Exit status, printed losses and the whole output."""
    done = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, [float(value) for value in re.findall(r"loss=(\S+)", done.stdout)], done.stdout


def short(argv: list[str], steps: int) -> list[str]:
    return [*argv, f"--steps={steps}", "--latency=0.005"]


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder"
    folder.mkdir()
    demo.write_campaign(folder)
    return folder


def test_importing_the_demo_does_not_import_numpy() -> None:
    code = "import sys, gpudebug.demo as d; d.files(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_python_path_with_spaces_and_quotes_stays_one_word() -> None:
    python = "/opt/my python's/bin/python"
    for argv in commands(demo.files(python)["gpudebug.yaml"]):
        assert argv[:2] == [python, "train.py"]


def test_the_workload_differs_from_the_reference_only_in_its_store() -> None:
    workload, reference = commands(demo.files()["gpudebug.yaml"])
    assert set(workload) ^ set(reference) == {"--store=remote", "--store=local"}


def test_a_campaign_is_never_written_over_another(campaign: Path) -> None:
    (campaign / "train.py").write_text("mine")
    with pytest.raises(FileExistsError):
        demo.write_campaign(campaign)
    assert (campaign / "train.py").read_text() == "mine"


def test_there_are_four_hypotheses_and_each_changes_one_flag_of_the_workload() -> None:
    workload, _ = commands(demo.files()["gpudebug.yaml"])
    locked = config.load(demo.files()["gpudebug.yaml"], "gpudebug.yaml").locked
    assert len(demo.HYPOTHESES) >= 4
    for hypothesis in demo.HYPOTHESES:
        change = intervention.parse(hypothesis.intervention)
        assert change.size == 1
        assert change.locked_by(locked) == []
        changed = change.apply(workload, {}).argv
        assert sum(old != new for old, new in zip(workload, changed, strict=True)) == 1


def test_workload_and_reference_learn_the_same(campaign: Path) -> None:
    workload, reference = commands((campaign / "gpudebug.yaml").read_text())
    status, losses, output = run(short(workload, 40), campaign)
    assert status == 0, output
    assert losses[-1] < 0.8 * losses[0]
    assert run(short(reference, 40), campaign)[1] == losses


def hypothesis(flag: str) -> demo.DemoHypothesis:
    return next(h for h in demo.HYPOTHESES if flag in h.intervention)


@pytest.mark.parametrize("flag", ["--cache_stats", "--prefetch"])
def test_what_only_concerns_the_loader_does_not_change_the_learning(campaign: Path, flag: str) -> None:
    workload, _ = commands((campaign / "gpudebug.yaml").read_text())
    before = run(short(workload, 12), campaign)
    after = run(short(with_flag(workload, hypothesis(flag).intervention), 12), campaign)
    assert before[0] == after[0] == 0
    assert before[1] == after[1]
    assert len(before[1]) == 6


def test_half_precision_crashes_with_a_traceback(campaign: Path) -> None:
    workload, _ = commands((campaign / "gpudebug.yaml").read_text())
    status, losses, output = run(short(with_flag(workload, hypothesis("--dtype").intervention), 12), campaign)
    assert status == 1
    assert losses == []
    assert "TypeError: data type 'bfloat16' not understood" in output


def test_without_clipping_the_loss_becomes_nan_and_the_training_goes_on(campaign: Path) -> None:
    workload, _ = commands((campaign / "gpudebug.yaml").read_text())
    status, losses, output = run(
        short(with_flag(workload, hypothesis("--clip_norm").intervention), 40), campaign
    )
    assert status == 0, output
    assert math.isfinite(losses[0])
    assert math.isnan(losses[-1])
