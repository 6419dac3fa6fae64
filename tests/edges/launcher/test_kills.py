"""kill -9 of gpudebug, of the warden and of the sampler at many moments of a run's life."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.support.processes import Driver, job_argv, left_after, nobody_left, sampler_for, spec_for

AT_ONCE = 5
LIFE_S = 1.5
NAMES = ("loader_workers", "daemon", "setsid_child", "clears_environment", "respawner", "ignores_signals")

few = pytest.param(25, id="25 moments")
many = pytest.param(200, id="200 moments", marks=[pytest.mark.heavy, pytest.mark.timeout(1800)])
fifty = pytest.param(50, id="50 moments", marks=[pytest.mark.heavy, pytest.mark.timeout(600)])
ten = pytest.param(10, id="10 moments")


def batches(tmp_path: Path, moments: int, mode: str, life: float) -> list[list[tuple[float, Driver]]]:
    """Starts the runs a few at a time: what is yielded is a list of (moment, driver)."""
    for first in range(0, moments, AT_ONCE):
        batch = []
        for number in range(first, min(first + AT_ONCE, moments)):
            folder = tmp_path / str(number)
            spec = spec_for(
                job_argv(NAMES[number % len(NAMES)], mode, folder),
                folder,
                sampler=sampler_for(folder),
                cgroup="auto" if number % 2 else "off",
            )
            batch.append((life * number / moments, Driver(spec)))
        with nobody_left([driver.folder for _, driver in batch]):
            yield batch


def at_moment(batch: list[tuple[float, Driver]], act: Callable[[Driver], None]) -> None:
    for moment, driver in sorted(batch, key=lambda pair: pair[1].started + pair[0]):
        time.sleep(max(0.0, driver.started + moment - time.monotonic()))
        act(driver)


@pytest.mark.parametrize("moments", [few, many])
def test_gpudebug_at_any_moment(tmp_path: Path, moments: int) -> None:
    unfinished = 0
    for batch in batches(tmp_path, moments, "leave", LIFE_S):
        at_moment(batch, Driver.kill)
        assert left_after([driver.folder for _, driver in batch]) == {}
        unfinished += sum(not driver.result.exists() for _, driver in batch)
    assert unfinished > moments / 2, "most kills must have met a living run"


@pytest.mark.parametrize("moments", [few, many])
def test_the_warden_at_any_moment(tmp_path: Path, moments: int) -> None:
    lost = 0
    for batch in batches(tmp_path, moments, "leave", LIFE_S):
        at_moment(batch, lambda driver: _kill(driver.warden()))
        assert {driver.wait() for _, driver in batch} == {0}
        assert left_after([driver.folder for _, driver in batch]) == {}
        outcomes = [driver.launched()["outcome"] for _, driver in batch]
        assert set(outcomes) <= {"INTERRUPTED", "COMPLETED"}
        lost += outcomes.count("INTERRUPTED")
    assert lost > moments / 2, "most kills must have met a living warden"


@pytest.mark.parametrize("moments", [ten, fifty])
def test_the_sampler_at_any_moment(tmp_path: Path, moments: int) -> None:
    """Before it is ready the launch is refused; afterwards a second sampler goes on and the run counts."""
    restarted = 0
    for batch in batches(tmp_path, moments, "0.5", 0.9):
        at_moment(batch, lambda driver: _kill(driver.sampler()))
        assert {driver.wait() for _, driver in batch} == {0}
        assert left_after([driver.folder for _, driver in batch]) == {}
        for _, driver in batch:
            result = driver.launched()
            if "error" in result:
                assert result["error"]["code"] == "device"
                assert "signal 9 before the launch" in result["error"]["message"]
                assert not (driver.folder / "pids").exists(), "nothing may be launched"
            else:
                assert result["outcome"] == "COMPLETED"
                restarted += result["sampler"]["restarts"]
    assert restarted >= moments / 5


def _kill(process: psutil.Process | None) -> None:
    if process is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
