"""A training in two phases, from the baseline to a verdict: recordings of one, and the program itself."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug, make_campaign, make_replay_campaign, record
from tests.support.places import SUPPORT
from tests.support.probed import needs_torch

pytestmark = pytest.mark.slow
SETTINGS = """
metric: steps_per_s
criteria: {success: 1.2x, failure: 1.1x, loss: any}
phases: {supervised: teacher on, ppo: teacher off}
expected: {steps_per_s: {default / supervised: [9, 11], default / ppo: [200, 300], default: [1, 100]}}
"""


def lines(supervised: float, ppo: float) -> Sequence[str]:
    """What a run of 40 s prints each 0.1 s: 20 s of each phase, at so many steps a second."""
    steps = [int(supervised * 0.1 * n) for n in range(200)]
    steps += [steps[-1] + int(ppo * 0.1 * n) for n in range(1, 201)]
    found = [f"step {step} loss {9 / (step + 9):.4f}\n" for step in steps]
    found[0], found[200] = f"teacher on\n{found[0]}", f"teacher off\n{found[200]}"
    return found


def test_phases_are_recorded_expected_and_compared_by_their_names(tmp_path: Path) -> None:
    """The change speeds up the phase that is judged, and nothing else."""
    recordings = tmp_path / "recordings"
    for n in (1, 2):
        record(recordings, f"000{n}-baseline-workload", log=lines(10, 40), seed=n)
    for n in (3, 4, 5):
        record(recordings, f"000{n}-h1", log=lines(20, 40), seed=n)
    record(recordings, "0006-baseline-workload", log=lines(10, 40))
    campaign = make_replay_campaign(
        tmp_path / "repo", recordings, config=f"{SETTINGS}phase: supervised\n", max_runs=6
    )
    baseline = campaign.json("baseline")
    assert [(one["name"], round(one["rate"])) for one in baseline["phases"]] == [
        ("supervised", 10),
        ("ppo", 40),
    ]
    assert baseline["steps_per_s"] == pytest.approx(10, rel=0.05)
    assert "its figures are those of phase supervised" in baseline["notes"]
    assert "phase supervised: " in campaign.run("status").expect(0).out
    assert campaign.json("status")["baselines"]["workload"]["phases"] == baseline["phases"]
    expected = campaign.json("status")["expected"]
    assert [(row["phase"], row["standing"]) for row in expected] == [
        (None, "within"),
        ("supervised", "within"),
        ("ppo", "faulty"),
    ]
    campaign.json("propose", "--title", "Quick", "--description", "x", "--method", "y", "--set=--lr=0.2")
    verdict = campaign.json("next")
    phases = [note for note in verdict["notes"] if note.startswith("phase ")]
    assert phases[0].startswith("phase supervised: steps_per_s 10") and "2.00x" in phases[0]
    assert phases[1].startswith("phase ppo: steps_per_s 40") and "1.00x" in phases[1]
    assert verdict["verdict"] == "VALIDATED"
    campaign.run("verify").expect(0)


def test_a_phase_that_never_comes_is_said_in_one_line(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    for n in (1, 2):
        record(recordings, f"000{n}-baseline-workload", log=lines(10, 40), seed=n)
    settings = SETTINGS.replace("teacher off}", "teacher off, distill: distilling}")
    campaign = make_replay_campaign(tmp_path / "repo", recordings, config=settings)
    why = "phase distill never began: no line of the log matches 'distilling'; seen: supervised, ppo"
    assert f"run 0001-baseline-workload: {why}" in campaign.json("baseline")["notes"]


@needs_torch
def test_a_run_waits_for_the_phase_that_its_second_optimizer_begins(tmp_path: Path) -> None:
    """The program says nothing, and would go on for hours: the run ends once PPO has its five seconds."""
    program = shlex.join(
        [sys.executable, str(SUPPORT / "phases_train.py"), "--silent", "--supervised_steps=150"]
    )
    settings = SETTINGS.replace("phases:", "# phases:")
    campaign = make_campaign(
        tmp_path / "repo",
        command=program,
        config=f"{settings}phase: optimizer 2\n",
    )
    config = campaign.config.read_text("utf-8").replace("{max_runs: 3}", "{run_for: phase optimizer 2 5s}")
    campaign.config.write_text(config, "utf-8")
    found = campaign.json("baseline")
    assert [one["name"] for one in found["phases"]] == ["optimizer 1", "optimizer 2"]
    assert found["phases"][1]["rate"] > 1.5 * found["phases"][0]["rate"]
    assert found["steps_per_s"] == pytest.approx(found["phases"][1]["rate"], rel=0.05)


@needs_torch
def test_why_names_the_line_that_each_phase_waits_in(tmp_path: Path) -> None:
    program = [sys.executable, str(SUPPORT / "phases_train.py"), "--supervised_steps=120", "--steps=1000"]
    words = ("--json", "why", "--device=cpu:1", "--to-the-end", "--", *program)
    phases = gpudebug(tmp_path, *words).expect(0).json["phases"]
    places = [phases["named_places"][one["name"]] for one in phases["named"]]
    assert [(place["state"], place["code"].partition("(")[0]) for place in places] == [
        ("waits", "time.sleep")
    ] * 2
    assert "args.teacher_ms" in places[0]["code"] and "0.01" in places[1]["code"]
