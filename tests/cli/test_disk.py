"""Disks that are read-only or full, and files that may not be touched: one clear line, nothing lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.campaigns import (
    GPUDEBUG,
    Campaign,
    Done,
    contents,
    copied,
    environment,
    make_replay_campaign,
    record,
)
from tests.support.processes import drop_privileges

ENTRY = "### Hypothesis 1: The loader waits\n- **Intervention**: --set --lr=0.2\n- **Status**: UNTESTED\n"
PROPOSE = ("propose", "--title", "A cause", "--set", "--lr=0.3")


def one_line(done: Done, *says: str, status: int = 1) -> None:
    done.expect(status)
    assert done.out == ""
    line = done.err.splitlines()[-1]
    assert line.startswith("gpudebug: ")
    assert "; next: " in line
    assert "Traceback" not in done.err
    for text in says:
        assert text in line


@pytest.fixture
def mount() -> Iterator[Callable[..., None]]:
    """Mounts that are gone after the test; skipped where the machine does not allow them."""
    mounted: list[Path] = []

    def make(target: Path, *options: str) -> None:
        done = subprocess.run(["mount", *options, target], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"this machine does not allow mounts: {done.stderr.strip()}")
        mounted.append(target)

    yield make
    for target in reversed(mounted):
        subprocess.run(["umount", "--lazy", target], check=True)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("original")
    record(folder / "recordings", "0001-baseline-workload")
    record(folder / "recordings", "0002-h1", util=60, rate=30)
    made = make_replay_campaign(folder / "repo", folder / "recordings", progress=ENTRY)
    made.json("next")
    return made


@pytest.fixture
def campaign(original: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with its baseline and an untested hypothesis."""
    return copied(original, tmp_path / "repo")


def test_a_read_only_file_system(campaign: Campaign, mount: Callable[..., None]) -> None:
    mount(campaign.folder, "--bind", str(campaign.folder))
    subprocess.run(["mount", "-o", "remount,ro,bind", campaign.folder], check=True)
    before = contents(campaign.folder)
    for words in (("next",), PROPOSE, ("baseline",)):
        one_line(campaign.run(*words), "Read-only file system", "writable")
    one_line(campaign.run("sample", "--", "true"), "Read-only file system", status=125)
    # What only reads still answers.
    assert campaign.json("status")["next"]["action"] == "test"
    assert campaign.json("show", "1")["status"] == "UNTESTED"
    assert contents(campaign.folder) == before


def fill(folder: Path, leave: int) -> Path:
    path = folder / "filler"
    size = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - leave
    path.write_bytes(b"x" * max(size, 0))
    return path


def test_a_full_disk(campaign: Campaign, mount: Callable[..., None]) -> None:
    before = campaign.text
    subprocess.run(["mv", campaign.folder, campaign.folder.with_name("aside")], check=True)
    campaign.folder.mkdir()
    mount(campaign.folder, "-t", "tmpfs", "-o", "size=4m", "tmpfs")
    subprocess.run(["cp", "-a", f"{campaign.folder.with_name('aside')}/.", campaign.folder], check=True)
    filler = fill(campaign.folder, 0)
    for words in (("next",), PROPOSE):
        one_line(campaign.run(*words), "No space left on device", "free some disk space")
        assert campaign.text == before
        assert sorted(p.name for p in campaign.progress.parent.iterdir()) == [campaign.progress.name]
    filler.unlink()
    answer = campaign.json("next")
    assert answer["action"] in ("tested", "recovered")
    while campaign.statuses() != ["VALIDATED"]:
        assert campaign.json("next")["action"] in ("tested", "recovered")


def test_a_disk_that_fills_during_the_run_loses_no_result(
    campaign: Campaign, mount: Callable[..., None]
) -> None:
    runs = campaign.folder / "runs"
    subprocess.run(["mv", runs, runs.with_name("aside")], check=True)
    runs.mkdir()
    mount(runs, "-t", "tmpfs", "-o", "size=256k", "tmpfs")
    subprocess.run(["cp", "-a", f"{runs.with_name('aside')}/.", runs], check=True)
    filler = fill(runs, 24 << 10)
    done = campaign.run("next")
    assert done.status == 1, done
    assert "Traceback" not in done.err
    assert "; next: " in done.err.splitlines()[-1]
    assert campaign.statuses()[0] in ("UNTESTED", "TESTING")
    filler.unlink()
    while campaign.statuses() != ["VALIDATED"]:
        assert campaign.json("next")["action"] in ("tested", "recovered")


def unreadable_config(c: Campaign) -> Path:
    return c.config


def unreadable_progress(c: Campaign) -> Path:
    return c.progress


def closed_progress_folder(c: Campaign) -> Path:
    return c.progress.parent


def closed_runs(c: Campaign) -> Path:
    return c.folder / "runs"


@pytest.mark.parametrize(
    "place", [unreadable_config, unreadable_progress, closed_progress_folder, closed_runs]
)
def test_what_may_not_be_read_is_named(campaign: Campaign, place: Callable[[Campaign], Path]) -> None:
    path = place(campaign)
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        for words in (("next",), ("status",), PROPOSE):
            done = campaign.run(*words, preexec_fn=drop_privileges)
            one_line(done, "Permission denied", str(path), "chmod")
    finally:
        path.chmod(mode)
    assert campaign.statuses() == ["UNTESTED"]


@pytest.mark.parametrize("place", [unreadable_progress, closed_progress_folder])
def test_what_may_not_be_written_is_named(campaign: Campaign, place: Callable[[Campaign], Path]) -> None:
    path, before = place(campaign), campaign.text
    mode = path.stat().st_mode
    path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        one_line(campaign.run(*PROPOSE, preexec_fn=drop_privileges), "Permission denied", str(path))
        done = campaign.run("next", preexec_fn=drop_privileges)
        one_line(done, "Permission denied", str(path))
    finally:
        path.chmod(mode)
    assert campaign.text == before
    assert len(campaign.runs()) == 2


def test_a_limit_on_the_size_of_files_is_a_full_disk(campaign: Campaign) -> None:
    before = campaign.text
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *GPUDEBUG, *PROPOSE],
        cwd=campaign.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    one_line(Done(done.returncode, done.stdout, done.stderr))
    assert campaign.text == before


IN_THE_WAY = {
    "runs is a file": ("runs", Path.touch),
    "runs is a FIFO": ("runs", os.mkfifo),
    "the claim is a FIFO": ("{private}/claim", os.mkfifo),
    "the claim is a folder": ("{private}/claim", os.mkdir),
    "the claim is a link": ("{private}/claim", lambda p: p.symlink_to("/etc/hostname")),
}


@pytest.mark.parametrize(("name", "make"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_is_in_the_way_of_a_run(campaign: Campaign, name: str, make: Callable[[Path], object]) -> None:
    path = campaign.folder / name.format(private=campaign.private)
    if name == "runs":
        path.rename(campaign.folder / "away")
    else:
        path.unlink()
    make(path)
    before = contents(campaign.folder)
    one_line(campaign.run("next"), str(path))
    assert contents(campaign.folder) == before
