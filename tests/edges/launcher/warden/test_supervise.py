"""Every misbehaving job in every ending: nothing of it may be left two seconds later."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes import Driver, job_argv, left_after, nobody_left, spec_for, wait_until
from tests.support.zoo_jobs import JOBS

from gpudebug.edges.launcher import Tick

# The harder case is without; what differs with one is how the end is made sure of.
either = pytest.mark.parametrize("cgroup", ["off", "auto"])
FREEZER = Path("/sys/fs/cgroup/freezer")
# A leader that is stopped or runs on after it lost its descriptors leaves like any other.
LEAVES_NOBODY = {"obedient", "ignores_signals", "closes_everything"}


def start(tmp_path: Path, mode: str, **changes: object) -> dict[str, Driver]:
    drivers = {}
    for name in JOBS:
        folder = tmp_path / name
        drivers[name] = Driver(spec_for(job_argv(name, mode, folder), folder, **changes))
    return drivers


def all_ready(drivers: dict[str, Driver]) -> None:
    for driver in drivers.values():
        wait_until((driver.folder / "ready").exists)


def finish(drivers: dict[str, Driver]) -> dict[str, dict]:
    assert {name: driver.wait() for name, driver in drivers.items()} == dict.fromkeys(drivers, 0)
    assert left_after([driver.folder for driver in drivers.values()]) == {}
    return {name: driver.launched() for name, driver in drivers.items()}


def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / name for name in JOBS]


@either
def test_leader_ends_and_others_stay(tmp_path: Path, cgroup: str) -> None:
    with nobody_left(folders(tmp_path)):
        results = finish(start(tmp_path, "leave", cgroup=cgroup))
        assert {name: r["outcome"] for name, r in results.items()} == dict.fromkeys(JOBS, "COMPLETED")
        assert {name for name, r in results.items() if not r["leaked"]} == LEAVES_NOBODY
        assert results["daemon"]["leaked"] == 1
        assert results["loader_workers"]["leaked"] == 6


def test_a_chain_that_looks_miss_is_counted_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "quick_respawner"
    with nobody_left([folder]):
        driver = Driver(spec_for(job_argv("quick_respawner", "leave", folder), folder, cgroup="off"))
        result = finish({"quick_respawner": driver})["quick_respawner"]
        assert (result["outcome"], result["leaked"] > 0) == ("COMPLETED", True)


def test_time_out(tmp_path: Path) -> None:
    with nobody_left(folders(tmp_path)):
        results = finish(start(tmp_path, "stay", cgroup="off", timeout=2.0))
        assert {name: r["outcome"] for name, r in results.items()} == dict.fromkeys(JOBS, "TIMED_OUT")
        assert results["obedient"]["ladder"] == "interrupt"
        assert results["ignores_signals"]["ladder"] == "kill"


def test_ctrl_c(tmp_path: Path) -> None:
    with nobody_left(folders(tmp_path)):
        drivers = start(tmp_path, "stay", cgroup="off")
        all_ready(drivers)
        for driver in drivers.values():
            os.kill(driver.pid, signal.SIGINT)
        results = finish(drivers)
        assert {name: r["outcome"] for name, r in results.items()} == dict.fromkeys(JOBS, "INTERRUPTED")


def test_ctrl_c_twice_does_not_wait_for_the_ladder(tmp_path: Path) -> None:
    folder = tmp_path / "ignores_signals"

    def observe(tick: Tick) -> None:
        if tick.stopping:
            (folder / "stopping").touch()

    with nobody_left([folder]):
        spec = spec_for(
            job_argv("ignores_signals", "stay", folder), folder, cgroup="off", ladder=(60.0, 60.0)
        )
        driver = Driver(spec, observe)
        wait_until((folder / "ready").exists)
        os.kill(driver.pid, signal.SIGINT)
        wait_until((folder / "stopping").exists)
        os.kill(driver.pid, signal.SIGINT)
        result = finish({"ignores_signals": driver})["ignores_signals"]
        assert (result["outcome"], result["ladder"], result["signal"]) == ("INTERRUPTED", "kill", 9)


@either
def test_gpudebug_is_killed(tmp_path: Path, cgroup: str) -> None:
    with nobody_left(folders(tmp_path)):
        drivers = start(tmp_path, "stay", cgroup=cgroup)
        all_ready(drivers)
        for driver in drivers.values():
            driver.kill()
        assert left_after(folders(tmp_path)) == {}


@either
def test_the_warden_is_killed(tmp_path: Path, cgroup: str) -> None:
    with nobody_left(folders(tmp_path)):
        drivers = start(tmp_path, "stay", cgroup=cgroup)
        all_ready(drivers)
        for driver in drivers.values():
            warden = driver.warden()
            assert warden is not None
            warden.kill()
        results = finish(drivers)
        assert {(r["outcome"], r["reason"]) for r in results.values()} == {("INTERRUPTED", "warden lost")}


def test_told_to_stop(tmp_path: Path) -> None:
    def stall(tick: Tick) -> str | None:
        return "STALLED no new step for 1 s" if tick.elapsed > 1 else None

    with nobody_left(folders(tmp_path)):
        drivers = {}
        for name in ("stopped", "ignores_signals", "loader_workers"):
            folder = tmp_path / name
            drivers[name] = Driver(spec_for(job_argv(name, "stay", folder), folder, cgroup="off"), stall)
        results = finish(drivers)
        assert {(r["outcome"], r["reason"]) for r in results.values()} == {("STALLED", "no new step for 1 s")}


@pytest.fixture
def freezer(tmp_path: Path) -> Iterator[Path]:
    """A group whose frozen members do not die of SIGKILL: what a driver's uninterruptible wait looks like."""
    folder = FREEZER / f"gpudebug-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("no version 1 freezer that this user may use")
    yield folder
    (folder / "freezer.state").write_text("THAWED")
    wait_until(lambda: not (folder / "cgroup.procs").read_text())
    folder.rmdir()


def test_what_cannot_be_killed_is_named_and_not_waited_for(tmp_path: Path, freezer: Path) -> None:
    command = "sleep 60 & echo $! >child; touch ready; wait"
    with nobody_left([tmp_path]):
        driver = Driver(
            spec_for(
                ("sh", "-c", command), tmp_path, cgroup="off", give_up=1.0, timeout=1.5, ladder=(0.1, 0.1)
            )
        )
        wait_until((tmp_path / "ready").exists)
        child = (tmp_path / "child").read_text().strip()
        (freezer / "cgroup.procs").write_text(child)
        (freezer / "freezer.state").write_text("FROZEN")
        assert driver.wait() == 0
        result = driver.launched()
        assert result["outcome"] == "TIMED_OUT"
        assert result["reason"] == f"not done after 1.5 s; could not be killed: pid {child}"
        (freezer / "freezer.state").write_text("THAWED")
        assert left_after([tmp_path]) == {}
