"""Recorded logs of real programs, fed as they arrived, against their truth."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.bench.trainlog_score import judge, read
from tests.support.places import DATA

FOLDER = DATA / "logs"
LOGS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "index.yaml").read_text())["logs"]

# What these logs do not tell: the step is printed rarely, not at all, or another thing is counted.
UNTOLD = {
    "cleanrl__dqn_pipe": {"steps", "steps_per_s"},
    "cleanrl__ppo_crash_pipe": {"steps", "steps_per_s"},
    "fastai__crash_pty": {"steps"},
    "hf_trainer__converge_notqdm_pipe": {"steps"},
    "hf_trainer__crash_notqdm_split": {"steps", "steps_per_s"},
    "lightning__csvlogger_nobar_pipe": {"steps", "steps_per_s"},
    "lightning__csvlogger_prints_pipe": {"steps_per_s"},
    "lightning__rich_converge_pipe": {"steps"},
    "mmengine__short_pipe": {"steps_per_s"},
    "nanogpt__evalonly_lines_pipe": {"steps_per_s"},
    "pytorch_mnist__converge_pipe": {"steps", "steps_per_s"},
    "pytorch_mnist__crash_split": {"steps", "steps_per_s"},
    "pytorch_mnist__nan_pipe": {"steps", "steps_per_s"},
    "sb3__ppo_csvlog_pipe": {"steps", "steps_per_s"},
    "sb3__ppo_nan_pipe": {"steps", "steps_per_s"},
    "sb3__ppo_short_pipe": {"steps", "steps_per_s"},
    "sb3__sac_converge_pipe": {"steps"},
    "sb3__sac_lr0.5_nan_crash_pipe": {"steps", "steps_per_s"},
    "timm__oom_pipe": {"steps", "steps_per_s"},
    "torchrun_ddp__notee_converge_pipe": {"framework"},
    "torchrun_ddp__tee_crash_rank1_pipe": {"steps_per_s"},
    "torchrun_ddp__tee_diverge_pipe": {"steps_per_s"},
    "torchrun_ddp__tee_killed_rank1_pipe": {"steps_per_s"},
    "torchrun_ddp__tee_oom_rank1_pipe": {"steps_per_s"},
}


@pytest.mark.parametrize("entry", LOGS, ids=[entry["file"][:-4] for entry in LOGS])
def test_reads_what_the_log_tells(entry: dict[str, Any]) -> None:
    verdicts = judge(entry, read(FOLDER, entry))
    missed = {field: (found, truth) for field, (right, found, truth) in verdicts.items() if not right}
    assert set(missed) == UNTOLD.get(entry["file"][:-4], set()), missed


def test_every_framework_and_ending_is_recorded() -> None:
    assert len({entry["framework"] for entry in LOGS}) == 16
    assert {entry["crash"] for entry in LOGS} == {"none", "oom", "killed", "interrupted", "exception"}


@pytest.mark.parametrize("entry", LOGS[::6], ids=[entry["file"][:-4] for entry in LOGS[::6]])
def test_no_number_without_its_evidence(entry: dict[str, Any]) -> None:
    summary = read(FOLDER, entry)
    if summary.points == 0:
        assert summary.first is None and summary.last is None and summary.loss_name is None
    if summary.steps_per_s is not None:
        assert summary.steps_per_s > 0 and summary.rate_source is not None
    if summary.failure is not None:
        assert 1 <= len(summary.failure.lines) <= 20
        assert all(len(line) <= 500 and "\x1b" not in line for line in summary.failure.lines)
