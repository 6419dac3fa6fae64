"""Seed 004's campaign from its own command: both baselines, three hypotheses, its own progress file."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import lerobot
from tests.support.judged import settled

PROGRESS = "outputs/tmp/gpu_debug_progress.md"
SETTINGS = "device: cpu:1\nprotocol: {max_runs: 3}\n"

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]


class Campaign:
    """A repository whose PATH leads to the stand-in `lerobot-train`."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        folder.mkdir()
        (folder / ".gitignore").write_text("outputs/\n", encoding="utf-8")
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Start"]):
            identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
            subprocess.run(["git", *identity, *words], cwd=folder, check=True)

    def __call__(self, words: str, speed: int = 1) -> dict[str, Any]:
        """The JSON of `gpudebug WORDS`, split by a real shell; it must end with status 0."""
        done = subprocess.run(
            ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m gpudebug {words} --json"],
            cwd=self.folder,
            env={**self.env, "LEROBOT_STANDIN_SPEED": str(speed)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        document = json.loads(done.stdout)
        assert isinstance(document, dict)
        return document

    def settings(self, *more: tuple[str, str]) -> None:
        """Rewrite what `init` wrote: the protocol for a short campaign, and replacements in the commands."""
        path = self.folder / "gpudebug.yaml"
        text = path.read_text(encoding="utf-8").partition("device:")[0]
        for old, new in more:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text + SETTINGS, encoding="utf-8")
        self("settings --accept")

    def measured_again(self, number: int) -> dict[str, Any]:
        self("baseline workload")
        self(f"reopen {number}")
        return self("next")

    def logs(self, pattern: str) -> list[str]:
        return [path.read_text(errors="replace") for path in self.folder.glob(f"runs/{pattern}/train.log")]


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    python = lerobot.python310()
    if python is None:
        pytest.skip("no Python 3.10 on this machine")
    return Campaign(tmp_path / "repository", lerobot.install(tmp_path / "environment", python))


def test_seed_004_from_its_command_to_its_progress_file(campaign: Campaign) -> None:
    reference = shlex.quote(lerobot.REFERENCE_COMMAND)
    init = campaign(
        f"init --command '{lerobot.SEED_COMMAND_QUOTED}' --reference {reference} --progress {PROGRESS}"
    )
    notes = "\n".join(init["notes"])
    assert "{run}" in notes
    assert "--log_freq=20" in notes

    campaign.settings()
    too_rare = "\n".join(campaign("baseline workload", speed=8)["advice"])
    assert "only 1 loss value" in too_rare
    assert "--log_freq=20" in too_rare

    # More than any of them reaches: all are to be tested.
    campaign.settings(("--steps=200", "--steps=300 --log_freq=20"), ("metric:", "target: 100\nmetric:"))
    recorded = [campaign("next") for _ in range(2)]
    assert [answer["action"] for answer in recorded] == ["recorded_baseline"] * 2
    baselines = campaign("status")["baselines"]
    assert baselines["workload"] is not None
    assert baselines["reference"] is not None

    for title, change in lerobot.HYPOTHESES:
        campaign(f"propose --title {shlex.quote(title)} --description Why. --method How. {change}")
    answers = [campaign("next") for _ in lerobot.HYPOTHESES]
    assert [answer["action"] for answer in answers] == ["tested"] * len(answers)
    for answer in answers:
        settled(answer, campaign.measured_again)

    codec, backbone, workers = campaign("status")["hypotheses"]
    outcome = next(gate for gate in campaign("show 2")["gates"] if gate["name"] == "outcome")
    assert (backbone["status"], outcome["result"]) == ("REJECTED", "fail")
    text = (campaign.folder / PROGRESS).read_text(encoding="utf-8")
    for number, (title, _) in enumerate(lerobot.HYPOTHESES, start=1):
        assert f"### Hypothesis {number}: {title}" in text
    assert not any("FileExistsError" in log for log in campaign.logs("*"))

    assert (codec["status"], workers["status"]) == ("REJECTED", "VALIDATED"), text
    assert abs(codec["delta_pp"]) < 10
    assert workers["delta_pp"] >= 20
