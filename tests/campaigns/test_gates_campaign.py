"""What must never be VALIDATED, told as campaigns: recordings and real programs through the real `next`."""

from __future__ import annotations

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, copied, loss_lines, make_campaign, make_replay_campaign, record
from tests.support.judged import gates, settled

from gpudebug.core.samples.row import COLUMNS

PROGRAM = Path(__file__).parent.parent / "support" / "gates_train.py"
PACKAGE = {"src/pkg/__init__.py": "SPEED = 1\n", "src/pkg/model.py": "", "src/pkg/data.py": ""}
SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"
CORE = max(os.sched_getaffinity(0))


class Story:
    """A campaign with its baseline; `run` is on one core."""

    def __init__(self, campaign: Campaign, python: Path, seconds: Path) -> None:
        self.campaign = campaign
        self.python = python
        self.seconds = seconds

    def next(self, seconds: float) -> tuple[Any, str]:
        """What `next` answers and says beside it; the training trains for so long."""
        self.seconds.write_text(str(seconds))
        done = self.campaign.run("next", "--json", preexec_fn=lambda: os.sched_setaffinity(0, {CORE})).expect(
            0
        )
        return done.json, done.err

    def judged(self, seconds: float) -> Any:
        """What `next` answers of the hypothesis, with a new baseline if others came or went meanwhile."""

        def again(number: int) -> Any:
            self.seconds.write_text("6.5")
            self.campaign.run("baseline", preexec_fn=lambda: os.sched_setaffinity(0, {CORE})).expect(0)
            self.campaign.run("reopen", str(number)).expect(0)
            return self.next(seconds)[0]

        return settled(self.next(seconds)[0], again)

    def evidence(self, run: str) -> Any:
        return json.loads((self.campaign.folder / "runs" / run / "evidence.json").read_text())


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("gates")
    venv.create(folder / "venv", system_site_packages=True, with_pip=False, symlinks=True)
    python, seconds = folder / "venv" / "bin" / "python", folder / "seconds"
    command = [str(python), "scripts/train.py", "--lr=0.05", "--preset=small", f"--seconds={seconds}"]
    campaign = make_campaign(
        folder / "repo",
        command=shlex.join(command),
        files={"scripts/train.py": PROGRAM.read_bytes(), **PACKAGE},
        config="locked: [--momentum]\n",
        max_runs=2,
    )
    story = Story(campaign, python, seconds)
    story.next(2)
    return story


@pytest.fixture
def story(recorded_once: Story, tmp_path: Path) -> Story:
    once = recorded_once
    return Story(copied(once.campaign, tmp_path / "repo"), once.python, once.seconds)


@pytest.mark.heavy
def test_a_loss_that_is_no_number_is_rejected(story: Story) -> None:
    story.campaign.propose("--set --nan=30")
    answer = story.judged(5)
    assert (answer["verdict"], answer["why"]) == ("REJECTED", "loss: NAN")
    found = gates(answer)["change_in_effect"]
    assert (found["result"], found["value"]) == ("pass", "nan: 30")
    assert "loss: NAN" in story.campaign.text


@pytest.mark.heavy
def test_a_training_that_learns_less_is_rejected(story: Story) -> None:
    story.campaign.propose("--set --lr=0.005")
    answer = story.judged(5)
    assert answer["verdict"] == "REJECTED", answer
    assert answer["why"].startswith("loss parity: +")
    assert gates(answer)["change_in_effect"]["result"] == "pass"


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
def test_an_editable_install_of_another_checkout_is_invalid(story: Story, tmp_path: Path) -> None:
    for name, text in PACKAGE.items():
        path = tmp_path / "other" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (site,) = story.python.parent.parent.glob("lib/python*/site-packages")
    link = site / "other.pth"
    link.write_text(f"{tmp_path / 'other' / 'src'}\n")
    try:
        story.campaign.propose("--set --lr=0.06")
        answer, said = story.next(2)
    finally:
        link.unlink()
    where = f"pkg is imported from {tmp_path / 'other' / 'src' / 'pkg'}"
    assert answer["verdict"] == "INVALID"
    assert answer["why"].startswith(
        f"the change was not in effect: {where}; take paths to that other checkout"
    )
    assert said.count(f"gpudebug: {where}, not from here") == 1


@pytest.fixture
def strangers() -> Iterator[None]:
    """Processes that leave the training less of its core than it wants."""
    with ExitStack() as stack:
        for _ in range(9):
            spin = [sys.executable, "-c", SPIN, str(CORE)]
            process = stack.enter_context(subprocess.Popen(spin, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        yield


@pytest.mark.heavy
def test_busy_strangers_on_the_trainings_core_are_named_and_validate_nothing(
    story: Story, strangers: None
) -> None:
    story.campaign.propose("--set --lr=0.06")
    answer, _ = story.next(5)
    assert answer["verdict"] != "VALIDATED", answer
    found = gates(answer)["device_to_itself"]
    assert found["result"] != "fail"
    assert found["note"].startswith("other processes kept the baseline from "), found


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
