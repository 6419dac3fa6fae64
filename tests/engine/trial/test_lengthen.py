"""Trainings of a fixed number of steps that a fix makes too short, through whole campaigns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, make_repository, record

PROGRAM = """\
import argparse, time

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--wait", type=float, default=0.035)
args = parser.parse_args()
print(args, flush=True)
for step in range(1, args.steps + 1):
    time.sleep(args.wait)
    end = time.perf_counter() + 0.0003
    while time.perf_counter() < end:
        pass
    print(f"step {step}/{args.steps} loss {0.2 + 20 / (step + 5):.4f}", flush=True)
"""

CONFIG = """\
campaign: test
workload:
  command: python train.py --steps=200
  timeout: {timeout}
metric: steps_per_s
criteria: {{success: 1.5x, failure: 1.1x}}
locked: [{locked}]
protocol: {{min_window: 6s, baseline_runs: 1, max_runs: 3}}
budget: {{device_time: {budget}}}
device: cpu:1
"""


def configured(*, locked: str = "", timeout: str = "120s", budget: str = "2h") -> str:
    return CONFIG.format(locked=locked, timeout=timeout, budget=budget)


def campaign(folder: Path) -> Campaign:
    make_repository(folder, {"train.py": PROGRAM, "gpudebug.yaml": configured(), ".gitignore": "runs/\n"})
    return Campaign(folder).pin()


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    found = campaign(tmp_path_factory.mktemp("lengthen") / "repo")
    found.json("next")
    return found


def recorded(once: Campaign, folder: Path, **settings: str) -> Campaign:
    """A campaign with its baseline, recorded once for all tests, under other settings."""
    found = copied(once, folder)
    found.config.write_text(configured(**settings))
    return found.pin()


def records(found: Campaign) -> dict[str, dict[str, Any]]:
    runs = sorted((found.folder / "runs").glob("0*"))
    return {run.name: json.loads((run / "run.json").read_text()) for run in runs}


def evidence(found: Campaign, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((found.folder / "runs" / name / "evidence.json").read_text())
    return read


@pytest.mark.slow
def test_a_trial_that_is_too_short_is_made_again_with_more_steps_and_so_is_the_baseline(
    recorded_once: Campaign, tmp_path: Path
) -> None:
    found = copied(recorded_once, tmp_path / "repo").pin()
    # Twice as fast: as many steps twice over are enough.
    found.propose("--set --wait=0.016")
    answer = found.json("next", timeout=400)
    assert answer["verdict"] == "VALIDATED", answer
    made = records(found)
    first = made["0002-h1"]
    assert "too short to judge: made again with --steps=" in first["set_aside"]
    assert first["lengthened"] is None
    later = [r for name, r in made.items() if name > "0003"]
    assert {r["lengthened"]["flag"] for r in later} == {"--steps"}
    (steps,) = {f"--steps={200 * r['lengthened']['factor']}" for r in later}
    assert all(steps in r["argv"] for r in later)
    assert {r["role"] for r in later} == {"h1", "baseline-workload"}
    # It is a term of the runs: neither another command nor another change.
    assert len({json.dumps(r["identity"]) for r in made.values()}) == 1
    assert len({r["change_digest"] for r in made.values() if r["role"] == "h1"}) == 1
    gates = {g["name"]: g["result"] for g in answer["gates"]}
    assert (gates["one_variable"], gates["locked_knobs"], gates["loss_parity"]) == ("pass", "pass", "pass")
    assert any(note.startswith(f"lengthened: {steps} in the trial's runs") for note in answer["notes"])
    assert f"lengthened: {steps}" in found.text
    assert found.json("verify")["ok"] is True
    # The lengthened runs are no measure of the command as it is.
    assert found.json("status")["resolution"]["fresh_runs"] == 0


@pytest.mark.slow
def test_windows_of_a_trial_that_may_not_be_lengthened_are_pooled(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=27, seconds=12.0)
    # As many steps in a quarter of the time.
    record(recordings, "0002-h1", util=80, rate=108, seconds=3.0)
    settings = "metric: steps_per_s\ncriteria: {success: 1.5x, failure: 1.1x}\nlocked: [--steps]\n"
    command = "python train.py --steps=324"
    found = make_replay_campaign(tmp_path / "repo", recordings, 10, runs=1, command=command, config=settings)
    found.json("next")
    found.propose("--set --wait=0.010")
    answer = found.json("next", timeout=400)
    assert answer["verdict"] == "VALIDATED", answer
    assert any("--steps is locked" in note for note in answer["notes"])
    assert any(note.startswith("windows are pooled: a run of the trial has ") for note in answer["notes"])
    trial = [name for name, r in records(found).items() if r["role"] == "h1" and not r["set_aside"]]
    windows = [evidence(found, name)["window"] for name in trial]
    seconds = [w["end_s"] - w["start_s"] for w in windows]
    assert len(trial) == 3
    assert max(seconds) < 5
    assert sum(seconds) >= 6
    assert all(w["start_s"] > 0 and w["rule"] == "steps" for w in windows)
    assert {r["lengthened"] for r in records(found).values()} == {None}
    assert found.json("verify")["ok"] is True


@pytest.mark.slow
def test_short_runs_of_a_change_that_does_nothing_are_not_validated(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=27, seconds=9.0)
    # As fast as the baseline, and half as long.
    record(recordings, "0002-h1", util=20, rate=27, seconds=4.6)
    criteria = "metric: steps_per_s\ncriteria: {success: 1.5x, failure: 1.1x}\n"
    command = "python train.py --steps=200"
    found = make_replay_campaign(tmp_path / "repo", recordings, 10, runs=1, command=command, config=criteria)
    found.json("next")
    found.propose("--set --steps=100")
    answer = found.json("next", timeout=400)
    assert any(note.startswith("windows are pooled") for note in answer["notes"]), answer
    assert answer["verdict"] == "REJECTED"
    (delta,) = (g for g in answer["gates"] if g["name"] == "delta")
    assert delta["result"] == "fail"
    assert found.json("verify")["ok"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "change", "why"),
    [
        ({"locked": "--steps"}, "--set --wait=0.0005", "--steps is locked"),
        pytest.param(
            {"locked": "steps"}, "--set --wait=0.0005", "--steps is locked", marks=pytest.mark.heavy
        ),
        ({"timeout": "16s"}, "--set --wait=0.0005", "workload.timeout is 16 s"),
        ({"budget": "30s", "timeout": "600s"}, "--set --wait=0.0005", "left of budget.device_time"),
        ({}, "--set --steps=30", "the hypothesis changes --steps"),
    ],
)
def test_a_trial_that_may_not_be_lengthened_says_why(
    recorded_once: Campaign, tmp_path: Path, settings: dict[str, str], change: str, why: str
) -> None:
    found = recorded(recorded_once, tmp_path / "repo", **settings)
    found.propose(change)
    answer = found.json("next", timeout=400)
    shared = {g["name"]: g["result"] for g in answer["gates"]}["device_to_itself"] == "fail"
    # Beside a load that changes, that is said of a trial that is too short, too.
    assert answer["verdict"] == ("INVALID" if shared else "INCONCLUSIVE"), answer
    assert any(why in note for note in answer["notes"]), answer
    assert {json.dumps(r["lengthened"]) for r in records(found).values()} == {"null"}
    assert found.json("verify")["ok"] is True
