"""The stand-in refuses what the program does that it stands in for, and logs as that one does."""

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


def test_it_logs_and_saves_as_lerobot_does(bin_folder: Path, tmp_path: Path) -> None:
    status, output = train(bin_folder, tmp_path, lerobot.SEED_COMMAND, "--log_freq=20", "--steps=60")
    assert status == 0, output
    line = (
        r"INFO \d{4}-\d\d-\d\d \d\d:\d\d:\d\d ot_train\.py:435 step:\d+ smpl:\d+K? ep:\d+ epch:\d+\.\d\d"
        r" loss:\d+\.\d{3} grdn:\d+\.\d{3} lr:3\.0e-05 updt_s:\d\.\d{3} data_s:\d\.\d{3}\n"
    )
    assert len(re.findall(line, output)) == 3
    assert re.search(r"\rTraining: +\d+%\|.{10}\| \d+/60 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+step/s\]", output)
    (saved,) = (tmp_path / lerobot.OUTPUT_DIR).rglob("train_config.json")
    shape = json.loads(saved.read_text())["policy"]["input_features"]["observation.images.wrist"]["shape"]
    assert shape == [3, 224, 224]
    assert "FileExistsError" in train(bin_folder, tmp_path, lerobot.SEED_COMMAND)[1]


@pytest.mark.parametrize(
    ("flag", "status", "words"),
    [
        ("--policy.compile_model=true", 2, "unrecognized arguments: --policy.compile_model=true"),
        ("--log_freq=often", 2, "argument --log_freq"),
        ("--policy.type=act", 2, "unrecognized arguments: --policy.obs_state_delta_frames=1"),
        (lerobot.BACKBONE[1].removeprefix("--set "), 1, "ValueError: vision_backbone"),
    ],
)
def test_what_the_real_program_refuses_it_refuses(
    bin_folder: Path, tmp_path: Path, flag: str, status: int, words: str
) -> None:
    got, output = train(bin_folder, tmp_path, lerobot.SEED_COMMAND, flag)
    assert (got, words in output) == (status, True)
