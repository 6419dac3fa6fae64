"""What must never be VALIDATED, told as campaigns: recordings and real programs through the real `next`."""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, loss_lines, make_campaign, make_replay_campaign, record

from gpudebug.core.samples.row import COLUMNS

PROGRAM = Path(__file__).parent.parent / "support" / "gates_train.py"
PACKAGE = {"src/pkg/__init__.py": "SPEED = 1\n", "src/pkg/model.py": "", "src/pkg/data.py": ""}


def presets(folder: Path, momentum: float = 0.0, preset: str = "small") -> Campaign:
    """Recordings of the program, which prints its options as it begins: a preset wins over the command.

    The trial's are these, and a width of 1 whatever was asked for.
    """
    told = {
        "0001-baseline-workload": argparse.Namespace(momentum=0.0, preset="small", width=1),
        "0002-h1": argparse.Namespace(momentum=momentum, preset=preset, width=1),
    }
    for name, options in told.items():
        record(folder / "recordings", name, log=[f"{options}\n", *loss_lines(10)])
    return make_replay_campaign(
        folder / "repo",
        folder / "recordings",
        command="python train.py --lr=0.05 --preset=small",
        files={"train.py": PROGRAM.read_bytes()},
        config="locked: [--momentum]\n",
    )


def test_two_changes_at_once_are_refused(tmp_path: Path) -> None:
    words = ("propose", "--title", "Both", "--method", "Try.", "--set", "--lr=0.06")
    campaign = presets(tmp_path)
    assert "changes 2 things at once" in campaign.run(*words, "--env", "OMP_NUM_THREADS=1").err
    assert campaign.statuses() == []


def test_a_flag_that_a_preset_takes_back_is_not_in_effect(tmp_path: Path) -> None:
    """The command has the flag; what the program prints has not."""
    campaign = presets(tmp_path)
    campaign.json("next")
    campaign.propose("--set --width=4")
    answer = campaign.json("next")
    assert answer["verdict"] == "INVALID"
    said = "--width=4 was asked for, the program shows width: 1"
    assert answer["why"] == f"the change was not in effect: {said}"


def test_a_preset_that_moves_a_locked_knob_is_rejected(tmp_path: Path) -> None:
    campaign = presets(tmp_path, momentum=0.5, preset="large")
    campaign.json("next")
    campaign.propose("--set --preset=large")
    answer = campaign.json("next")
    assert answer["verdict"] == "REJECTED"
    assert answer["why"] == "locked knobs: --momentum (shown as 0.0, then 0.5)"


def test_a_locked_flag_by_its_beginning_is_refused(tmp_path: Path) -> None:
    words = ("propose", "--title", "Short", "--method", "Try.", "--set", "--mom=0.9")
    refused = presets(tmp_path).run(*words).expect(1)
    assert "changes --momentum, which gpudebug.yaml locks" in refused.err


@pytest.mark.slow
def test_an_editable_install_of_another_checkout_is_invalid(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", system_site_packages=True, with_pip=False, symlinks=True)
    python, seconds = tmp_path / "venv" / "bin" / "python", tmp_path / "seconds"
    seconds.write_text("2")
    campaign = make_campaign(
        tmp_path / "repo",
        command=shlex.join([str(python), "scripts/train.py", "--lr=0.05", f"--seconds={seconds}"]),
        files={"scripts/train.py": PROGRAM.read_bytes(), **PACKAGE},
        max_runs=2,
    )
    campaign.json("next")
    for name, text in PACKAGE.items():
        path = tmp_path / "other" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    (site / "other.pth").write_text(f"{tmp_path / 'other' / 'src'}\n")
    campaign.propose("--set --lr=0.06")
    done = campaign.run("next", "--json").expect(0)
    where = f"pkg is imported from {tmp_path / 'other' / 'src' / 'pkg'}"
    assert done.json["verdict"] == "INVALID"
    assert done.json["why"].startswith(
        f"the change was not in effect: {where}; take paths to that other checkout"
    )
    assert done.err.count(f"gpudebug: {where}, not from here") == 1


def rewrite(run: Path, change: Callable[[int, dict[str, str]], dict[str, str]]) -> None:
    """A recording with `change` made to each row, by its number; columns are those of today."""
    with open(run / "samples.csv", newline="") as file:
        rows = [{**dict.fromkeys(COLUMNS, ""), **row} for row in csv.DictReader(file)]
    with open(run / "samples.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, **change(number, row)} for number, row in enumerate(rows))


@pytest.mark.parametrize(
    ("change", "verdict", "why"),
    [
        (
            lambda number, _: {"foreign_procs": str(int(number >= 30))},
            "INVALID",
            "the device was shared: 1 other process on the device in trial run 000",
        ),
        (lambda _, __: {"sm_clock_mhz": "900"}, "INVALID", "environment differs: clocks of 1410 and 900 MHz"),
        (
            lambda number, row: {"elapsed": "0.5"} if number == 40 else {},
            "INCONCLUSIVE",
            "delta is unknown (unknown): trial: the clock of samples.csv went back by 7.5 s at 8.0 s",
        ),
    ],
    ids=["foreign process", "clocks", "clock that jumped"],
)
def test_a_recorded_gpu_that_was_not_the_same(
    tmp_path: Path, change: Callable[[int, dict[str, str]], dict[str, str]], verdict: str, why: str
) -> None:
    recordings = tmp_path / "recordings"
    quiet = record(recordings, "0001-baseline-workload", uuid="GPU-1")
    spoilt = record(recordings, "0002-h1", uuid="GPU-1", util=60, rate=30)
    alone = {"sm_clock_mhz": "1410", "throttle": "none", "foreign_procs": "0", "foreign_cpu": "5"}
    rewrite(quiet, lambda _, __: alone)
    rewrite(spoilt, lambda _, __: alone)
    rewrite(spoilt, change)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    answer = campaign.json("next")
    assert (answer["verdict"], answer["why"][: len(why)]) == (verdict, why), answer
    # What the machine spoilt is tried once more.
    trials = [name for name in campaign.runs() if name.endswith("-h1")]
    assert len(trials) == (2 if verdict == "INVALID" else 1)
    records = [
        json.loads((campaign.folder / "runs" / name / "run.json").read_text()) for name in campaign.runs()
    ]
    aside = [record["name"] for record in records if record.get("set_aside")]
    assert len(aside) == (1 if verdict == "INVALID" else 0)
    told = [note for note in answer["notes"] if "is set aside: " in note]
    assert [note.split()[1] for note in told] == aside
