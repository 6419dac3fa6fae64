"""The stand-in is as strict as the program it stands in for, and waits where that one waits."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.support import lerobot


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = lerobot.python310()
    if python is None:
        pytest.skip("no Python 3.10 on this machine")
    return lerobot.install(tmp_path_factory.mktemp("environment") / "venv", python)


def train(bin_folder: Path, folder: Path, command: str, *flags: str, speed: int = 20) -> tuple[int, str]:
    """Exit status and output of `command` with `flags` behind it, at `speed` times the real pace."""
    done = subprocess.run(
        shlex.split(command.replace("\\\n", " ")) + list(flags),
        cwd=folder,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "LEROBOT_STANDIN_SPEED": str(speed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def field(output: str, name: str) -> list[float]:
    return [float(value) for value in re.findall(rf" {name}:(\S+)", output)]


def test_the_outer_quotes_come_off_as_in_a_shell() -> None:
    echoed = subprocess.run(
        ["sh", "-c", f"printf %s '{lerobot.SEED_COMMAND_QUOTED}'"], capture_output=True, text=True, check=True
    )
    assert echoed.stdout == lerobot.SEED_COMMAND


def test_seed_command_logs_once_in_200_steps_and_saves(bin_folder: Path, tmp_path: Path) -> None:
    status, output = train(bin_folder, tmp_path, lerobot.SEED_COMMAND)
    assert status == 0, output
    assert len(field(output, "loss")) == 1
    assert "End of training" in output
    saved = (
        tmp_path / lerobot.OUTPUT_DIR / "checkpoints" / "000200" / "pretrained_model" / "train_config.json"
    )
    shape = json.loads(saved.read_text())["policy"]["input_features"]["observation.images.wrist"]["shape"]
    assert shape == [3, 224, 224]


def test_an_output_folder_that_exists_is_refused(bin_folder: Path, tmp_path: Path) -> None:
    (tmp_path / lerobot.OUTPUT_DIR).mkdir(parents=True)
    status, output = train(bin_folder, tmp_path, lerobot.SEED_COMMAND)
    assert status == 1
    assert "FileExistsError" in output.splitlines()[-1]


def test_its_log_reads_as_lerobot_writes_it(bin_folder: Path, tmp_path: Path) -> None:
    _, output = train(bin_folder, tmp_path, lerobot.SEED_COMMAND, "--log_freq=20", "--steps=60")
    line = (
        r"INFO \d{4}-\d\d-\d\d \d\d:\d\d:\d\d ot_train\.py:435 step:\d+ smpl:\d+K? ep:\d+ epch:\d+\.\d\d"
        r" loss:\d+\.\d{3} grdn:\d+\.\d{3} lr:3\.0e-05 updt_s:\d\.\d{3} data_s:\d\.\d{3}\n"
    )
    assert len(re.findall(line, output)) == 3
    assert re.search(r"\rTraining: +\d+%\|.{10}\| \d+/60 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+step/s\]", output)
    losses = field(output, "loss")
    assert losses[-1] < 0.5 * losses[0]


def test_a_rate_that_is_far_too_high_ends_in_nan(bin_folder: Path, tmp_path: Path) -> None:
    status, output = train(
        bin_folder,
        tmp_path,
        lerobot.SEED_COMMAND,
        "--log_freq=20",
        "--policy.optimizer_lr=3",
        "--num_workers=16",
    )
    assert status == 0
    assert re.findall(r"loss:(\S+)", output)[-1] == "nan"


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--policy.compile_model=true"], 2, "unrecognized arguments: --policy.compile_model=true"),
        (["--log_freq=often"], 2, "argument --log_freq"),
        (["--policy.use_rtc=perhaps"], 2, "argument --policy.use_rtc"),
        (["--policy.input_features={broken"], 2, "argument --policy.input_features"),
        (["--policy.type=pi9"], 2, "invalid choice: 'pi9'"),
        (["--policy.type=act"], 2, "unrecognized arguments: --policy.obs_state_delta_frames=1"),
        (["--policy.n_action_steps=16"], 1, "ValueError: n_action_steps"),
        ([lerobot.BACKBONE[1].removeprefix("--set ")], 1, "ValueError: vision_backbone"),
        (["--policy.push_to_hub=true"], 1, "ValueError: 'policy.repo_id'"),
    ],
)
def test_what_the_real_program_refuses_it_refuses(
    bin_folder: Path, tmp_path: Path, flags: list[str], status: int, words: str
) -> None:
    got, output = train(bin_folder, tmp_path, lerobot.SEED_COMMAND, *flags)
    assert got == status
    assert words in output
    assert not (tmp_path / "outputs").exists()


def data_share(output: str) -> float:
    """Share of the steps' time that went into waiting for data, without the first logged line."""
    data, update = field(output, "data_s")[1:], field(output, "updt_s")[1:]
    return sum(data) / (sum(data) + sum(update))


@pytest.mark.slow
def test_the_policy_waits_for_data_the_reference_and_more_workers_do_not(
    bin_folder: Path, tmp_path: Path
) -> None:
    flags = ["--log_freq=20", "--steps=100"]
    workers = lerobot.WORKERS[1].removeprefix("--set ")
    plain = train(bin_folder, tmp_path, lerobot.SEED_COMMAND, *flags, "--output_dir=a", speed=2)[1]
    fixed = train(bin_folder, tmp_path, lerobot.SEED_COMMAND, *flags, "--output_dir=b", workers, speed=2)[1]
    reference = train(bin_folder, tmp_path, lerobot.REFERENCE_COMMAND, *flags, "--output_dir=c", speed=2)[1]
    assert data_share(fixed) < 0.5 * data_share(plain)
    assert data_share(reference) < 0.5 * data_share(plain)
    assert field(fixed, "loss") == field(plain, "loss")
