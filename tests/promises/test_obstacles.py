"""What lies in the way: whatever is in place of a file that commands read, each of them answers, in time."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record
from tests.support.obstacles import OBSTACLES
from tests.support.processes import drop_privileges

READING = ("status", "show 2")
COMMANDS = (*READING, "verify", "report", "export", "next", "accept 2")
DOCUMENTED = {0, 1, 4, 5}
# A command takes a second; a machine that does much else takes longer over it, and a FIFO for ever.
LONGEST_S = 60.0
# What a replayed run does not hold.
OF_A_PROBED_RUN = ("probe.jsonl", "sections.json", "learning.jsonl", "torch-profile.json", "change.patch")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with one change that was accepted and one that may be, recorded for `status` last."""
    folder = tmp_path_factory.mktemp("original")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0002-h1", util=60, rate=30)
    record(folder / "recordings", "0003-h2", util=60, rate=30)
    made = make_replay_campaign(
        folder / "repo",
        folder / "recordings",
        config="context: [notes.md]\n",
        files={"notes.md": "Read me.\n", "AGENTS.md": "Be kind.\n", "hypotheses/own.yaml": ""},
    )
    made.json("next")
    for number, change in ((1, "--set --lr=0.2"), (2, "--set --work=0.1")):
        made.propose(change)
        made.json("next")
        if number == 1:
            made.json("accept", "1")
    return made


def kinds(folder: Path) -> dict[str, Path]:
    """The last file of each kind, by its path without what differs from run to run and from place to place.

    Files that git tracks, records, and what is kept in git's folder: so one that is new is found.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.is_file() and (place.parts[0] != ".git" or place.parts[1] == "gpudebug"):
            found[re.sub(r"\d+-h\d+|\d+-baseline-\w+|(?<![0-9a-z])[0-9a-f]{8,16}", "*", str(place))] = place
    last = found["runs/*/verdict.json"].parent
    return {**found, **{f"runs/*/{name}": last / name for name in OF_A_PROBED_RUN}}


@contextmanager
def obstructed(campaign: Campaign, place: Path, obstacle: str) -> Iterator[None]:
    """Have the obstacle in place of a file for the block."""
    path, aside = campaign.folder / place, campaign.folder.parent / "aside"
    there = path.exists()
    if there:
        path.rename(aside)
    try:
        if obstacle == "unreadable":
            path.touch(0)
        else:
            OBSTACLES[obstacle](path)
        yield
    finally:
        path.rmdir() if path.is_dir() else path.unlink()
        if there:
            aside.rename(path)


def wrong(original: Campaign, folder: Path, place: Path, obstacle: str, command: str) -> str | None:
    """What a command does wrong where a file is obstructed; None if it answers as it should."""
    # Root may read everything, but for what is started without that.
    more: dict[str, Any] = {"preexec_fn": drop_privileges} if obstacle == "unreadable" else {}
    with obstructed(original, place, obstacle):
        # A recorded status holds where it was recorded.
        campaign = original if command in READING else copied_past(original, folder, place, obstacle)
        try:
            done = campaign.run(*command.split(), timeout=LONGEST_S, **more)
        except subprocess.TimeoutExpired:
            return f"{obstacle} in place of {place}: {command} does not end"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    lines = len(done.err.splitlines())
    if done.status in DOCUMENTED and (done.status != 1 or lines == 1 or command == "verify"):
        return None
    return f"{obstacle} in place of {place}: {command} ends with {done.status}\n{done.err}"


def copied_past(original: Campaign, folder: Path, place: Path, obstacle: str) -> Campaign:
    """A copy with the same obstacle, which cannot be copied itself."""

    def without(parent: str, names: list[str]) -> set[str]:
        return {place.name} & set(names) if Path(parent) == (original.folder / place).parent else set()

    shutil.copytree(original.folder, folder, symlinks=True, ignore=without)
    copy = Campaign(folder)
    if obstacle == "unreadable":
        (folder / place).touch(0)
    else:
        OBSTACLES[obstacle](folder / place)
    return copy


def test_a_fifo_in_place_of_a_verdict_keeps_no_command_waiting(original: Campaign, tmp_path: Path) -> None:
    place = kinds(original.folder)["runs/*/verdict.json"]
    found = (wrong(original, tmp_path / "copy", place, "FIFO", command) for command in COMMANDS)
    assert [problem for problem in found if problem] == []


@pytest.mark.parametrize("name", ["gpudebug.yaml", "progress/test.md"])
@pytest.mark.parametrize("obstacle", ["FIFO", "endless device"])
def test_nor_is_a_recorded_status_waited_for(
    original: Campaign, tmp_path: Path, name: str, obstacle: str
) -> None:
    assert wrong(original, tmp_path / "copy", Path(name), obstacle, "status") is None


@pytest.mark.slow
def test_each_file_that_is_obstructed_has_an_answer(original: Campaign, tmp_path: Path) -> None:
    """Each kind once, obstacles and commands in turn; all of them with --run-heavy."""
    found = kinds(original.folder).values()
    assert len(found) > 25
    for number, place in enumerate(found):
        obstacle, command = list(OBSTACLES)[number % len(OBSTACLES)], COMMANDS[number % len(COMMANDS)]
        assert wrong(original, tmp_path / "copy", place, obstacle, command) is None


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("obstacle", [*OBSTACLES, "unreadable"])
def test_every_obstacle_has_an_answer_from_every_command(
    original: Campaign, tmp_path: Path, obstacle: str, command: str
) -> None:
    places = kinds(original.folder).values()
    found = (wrong(original, tmp_path / "copy", place, obstacle, command) for place in places)
    assert [problem for problem in found if problem] == []
