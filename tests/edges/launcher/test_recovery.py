"""What this machine offers to end process trees: asked, never assumed, and left as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.processes import (
    Driver,
    job_argv,
    left_after,
    left_of,
    nobody_left,
    noted,
    spec_for,
    wait_until,
)

from gpudebug.edges.launcher.recovery import adopting, containment, end_adopted, marked, sweep
from gpudebug.edges.launcher.warden import processes
from gpudebug.edges.launcher.warden.cgroup import Cgroup, own_folder


def orphaned(folder: Path, name: str, cgroup: str) -> None:
    """A run whose gpudebug and warden are both killed before either can do anything."""
    driver = Driver(spec_for(job_argv(name, "stay", folder), folder, cgroup=cgroup))
    wait_until((folder / "ready").exists)
    warden = driver.warden()
    assert warden is not None
    warden.suspend()
    driver.kill()
    warden.kill()


@pytest.mark.parametrize("name", ["daemon", "loader_workers", "respawner", "watch_each_other", "headless"])
def test_sweep_ends_what_both_left_behind(tmp_path: Path, name: str) -> None:
    folder, other = tmp_path / "run", tmp_path / "run-2"
    with nobody_left([folder, other]):
        orphaned(other, "daemon", "off")
        orphaned(folder, name, "off")
        # A look at /proc may miss a process that is replaced meanwhile, again and again on a busy machine.
        wait_until(lambda: left_of([folder]), within=60.0)
        assert sweep(str(folder))
        assert left_after([folder]) == {}
        assert left_of([other]), "another run's marker starts with the same letters"
        assert sweep(str(folder)) == []
        sweep(str(other))


def test_the_groups_name_gives_away_a_daemon_without_environment(tmp_path: Path) -> None:
    """And without a group it is missed: the documented hole."""
    probe = Cgroup.create(f"probe {tmp_path}")
    if probe is None:
        pytest.skip("no writable cgroup here")
    probe.remove()
    with nobody_left([tmp_path / "held", tmp_path / "free"]):
        for name, cgroup in (("held", "auto"), ("free", "off")):
            orphaned(tmp_path / name, "clears_environment", cgroup)
            wait_until(lambda name=name: len(noted(tmp_path / name)) == 1)
            sweep(str(tmp_path / name))
        assert left_after([tmp_path / "held"]) == {}
        assert list(Cgroup.find(str(tmp_path / "held"))) == []
        assert noted(tmp_path / "free")


def test_marked_compares_the_whole_value(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"], env={"GPUDEBUG_RUN": "abc", "X_GPUDEBUG_RUN": "other"})
    try:
        wait_until(lambda: [proc.pid for proc in marked("abc")] == [child.pid])
        assert marked("ab") == marked("abcd") == marked("other") == []
    finally:
        child.kill()
        child.wait()


def test_sweep_spares_the_process_that_calls_it(tmp_path: Path) -> None:
    script = (
        "import os, sys; from gpudebug.edges.launcher import sweep; "
        "sys.exit(0 if sweep(os.environ['GPUDEBUG_RUN']) == [] else 1)"
    )
    env = {**os.environ, "GPUDEBUG_RUN": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", script], env=env, check=False, timeout=60).returncode == 0


def test_only_the_adopted_are_ended() -> None:
    """Children of before and helpers in our own session stay, orphans in other sessions go."""
    before_launch = subprocess.Popen(["sleep", "60"], start_new_session=True)
    was = processes.is_subreaper()
    with adopting() as before:
        assert processes.is_subreaper()
        helper = subprocess.Popen(["sleep", "60"])
        shell = subprocess.run(
            ["setsid", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], capture_output=True, check=True
        )
        orphan = int(shell.stdout)
        assert end_adopted(before) == [orphan]
        assert processes.read_proc(orphan) is None, "reaped, too"
        assert before_launch.poll() is None
        assert helper.poll() is None
    assert processes.is_subreaper() is was
    for child in (before_launch, helper):
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_the_means_are_those_of_this_machine() -> None:
    before = processes.is_subreaper()
    found = containment()
    assert set(found) == {"subreaper", "pidfd", "cgroup"}
    assert found["subreaper"] is True
    assert found["pidfd"] is hasattr(os, "pidfd_open")
    folder = own_folder()
    assert found["cgroup"] is (folder is not None and os.access(folder, os.W_OK))
    assert processes.is_subreaper() is before


def test_being_one_already_it_stays_one() -> None:
    before = processes.is_subreaper()
    processes.set_subreaper(True)
    try:
        assert containment()["subreaper"] is True
        assert processes.is_subreaper() is True
    finally:
        processes.set_subreaper(before)
