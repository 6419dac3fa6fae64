"""Units of work and rewards of programs that print as stable-baselines3, CleanRL and nanoGPT do."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import rl_train
from tests.support.campaigns import RECORDED_S, gpudebug, make_campaign, make_replay_campaign, record
from tests.support.judged import gates
from tests.support.places import SUPPORT

pytestmark = pytest.mark.slow

PROGRAM = SUPPORT / "rl_train.py"
SETTINGS = "metric: work_per_s\ncriteria: {success: 1.5x, failure: 1.2x}\n"


def compared(folder: Path, a: str, b: str, *options: str) -> Any:
    commands = [f"{shlex.quote(sys.executable)} {shlex.quote(str(PROGRAM))} {flags}" for flags in (a, b)]
    how = ("--runs", "1", "--device", "cpu", *options, "--json")
    return gpudebug(folder, "compare", *commands, *how).expect(0).json


@pytest.mark.parametrize(
    ("form", "source"),
    [("sb3", "total_timesteps"), pytest.param("cleanrl", "global_step", marks=pytest.mark.heavy)],
)
def test_four_times_the_environments_are_faster(tmp_path: Path, form: str, source: str) -> None:
    """A step of four takes as long as one of one; a quarter of the updates is made of the same work."""
    found = compared(tmp_path, f"--form {form}", f"--form {form} --n_envs 4")
    assert found["work"] == f"environment steps, from {source}"
    assert found["verdict"] == "faster"
    assert 2.5 < found["ratio"] < 5.5
    assert found["a"]["work"]["unit"] == found["b"]["throughput"]["unit"] == "environment steps"


def test_half_a_batch_is_half_the_tokens(tmp_path: Path) -> None:
    """Twice the steps a second, and as many tokens."""
    found = compared(tmp_path, "--form nanogpt", "--form nanogpt --batch_size 4")
    assert found["work"] == "tokens, from steps x tokens per step"
    assert 0.7 < found["ratio"] < 1.4
    sizes = [f"--form nanogpt --batch_size {size}" for size in (8, 4)]
    by_samples = compared(tmp_path, *sizes, "--work", "samples")
    assert by_samples["work"] == "samples, from steps x batch flags (set)"
    assert 0.7 < by_samples["ratio"] < 1.4


def tables(n_envs: int) -> list[str]:
    """What the program prints in a recording, an update every 0.1 s."""
    totals = [rl_train.ROLLOUT * n_envs * update for update in range(1, round(RECORDED_S / 0.1) + 1)]
    return [
        rl_train.table_of(total, number, f"{20 + total / 200:.2f}", 10 * totals[0]) + "\n"
        for number, total in enumerate(totals, 1)
    ]


def test_more_environments_end_in_the_right_verdict(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", log=tables(1))
    record(tmp_path / "recordings", "0002-h1", log=tables(4))
    files = {"train.py": PROGRAM.read_bytes()}
    found = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings", config=SETTINGS, files=files)
    baseline = found.json("next")
    assert baseline["work_text"].startswith("environment steps, from total_timesteps, ")
    assert baseline["learning"] == "reward ep_rew_mean, from the log, higher is better"
    assert "- **Work**: environment steps, from total_timesteps, " in found.text
    found.propose("--set --n_envs=4")
    answer = found.json("next")
    assert answer["verdict"] == "VALIDATED", answer
    assert gates(answer)["loss"]["result"] == "pass"
    assert answer["figures"]["metric"].endswith("environment steps/s")
    assert found.json("verify")["ok"] is True
    status = found.json("status")
    assert status["baselines"]["workload"]["work"]["unit"] == "environment steps"
    assert status["baselines"]["workload"]["learning"] == baseline["learning"]


def test_a_reward_that_is_written_and_never_printed(tmp_path: Path) -> None:
    found = make_campaign(
        tmp_path / "repo",
        command=f"{shlex.quote(sys.executable)} train.py --step=3 --csv",
        files={"train.py": PROGRAM.read_bytes()},
        config=SETTINGS,
        max_runs=2,
    )
    baseline = found.json("next")
    assert baseline["learning"] == "reward rollout/ep_rew_mean, from progress.csv, higher is better"
    found.propose("--set --nan")
    answer = found.json("next")
    assert gates(answer)["loss"]["result"] == "fail"
    assert gates(answer)["loss"]["value"] == "rollout/ep_rew_mean NAN"
    assert found.json("verify")["ok"] is True
