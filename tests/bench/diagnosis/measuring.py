"""Measures a zoo program: its baselines, then each hypothesis alone, by the commands that a user types."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.diagnosis import sheet
from tests.bench.diagnosis.recording import FILES, Recording, Run, Trial
from tests.support import zoo
from tests.support.campaigns import Campaign

_LIMIT_S = 600
# Nothing that is replayed looks at these of a trial's runs; they are most of its size.
_NOT_OF_TRIALS = ("stacks", "spark", "loaded")


def measure(program: str, folder: Path, tell: Callable[[str], None]) -> Recording:
    """The table of one program. AssertionError where a command of it fails."""
    campaign = zoo.make_zoo_campaign(folder, program)
    progress = campaign.progress
    campaign.config.write_text(re.sub(r"max_runs: \d+", "max_runs: 2", campaign.config.read_text()))
    whole = sheet.entries(progress.read_text())
    campaign.run("baseline", timeout=_LIMIT_S).expect(0)
    section = sheet.baselines(progress.read_text())
    recording = Recording(program, section, _runs(campaign, set(), trial=False))
    tell(f"{program}: baseline recorded")
    for number, entry in whole.items():
        recording.trials[number] = _tested(campaign, progress, program, number, entry)
        trial = recording.trials[number]
        tell(f"{program}: h{number} {trial.status}, {trial.device_s:.0f} s: {trial.why}")
    return recording


def _tested(campaign: Campaign, progress: Path, program: str, number: int, entry: str) -> Trial:
    _alone(progress, program, number, entry)
    before = {path.name for path in (campaign.folder / "runs").iterdir()}
    answer: dict[str, Any] = {}
    # A baseline may have to be recorded anew first; a trial that was disturbed is made once more.
    for _ in range(2):
        done = campaign.run("next", "--json", timeout=_LIMIT_S)
        assert done.status in (0, 4), done.out + done.err
        answer = done.json
        if answer["action"] == "tested" and not _disturbed(answer):
            break
        _alone(progress, program, number, entry)
    runs = _runs(campaign, before, trial=True)
    seconds = sum(run.files["run.json"].get("duration_s") or 0.0 for run in runs)
    told = sheet.entries(progress.read_text())[number]
    return Trial(told, answer["verdict"], answer["why"], round(seconds, 1), runs)


def _disturbed(answer: dict[str, Any]) -> bool:
    return answer["verdict"] == "INVALID" and "not in effect" not in answer["why"]


def _alone(progress: Path, program: str, number: int, entry: str) -> None:
    """Leave one hypothesis in the progress file, untested, beside the baselines that stand there."""
    progress.write_text(sheet.composed(program, sheet.baselines(progress.read_text()), {number: entry}))


def _runs(campaign: Campaign, before: set[str], *, trial: bool) -> list[Run]:
    """The records of run folders that are not among `before`."""
    folders = sorted(path for path in (campaign.folder / "runs").iterdir() if path.name not in before)
    return [Run(path.name, _files(path, trial)) for path in folders if (path / "manifest.json").exists()]


def _files(path: Path, trial: bool) -> dict[str, Any]:
    found = {name: json.loads((path / name).read_text()) for name in FILES if (path / name).exists()}
    if trial and "evidence.json" in found:
        for name in _NOT_OF_TRIALS:
            found["evidence.json"].pop(name, None)
    return found
