"""The sampler's protocol, its one restart, and what its faults do to a run."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import Driver, left_after, nobody_left, sampler_for, spec_for, wait_until

from gpudebug.core.errors import DeviceError
from gpudebug.core.words import Outcome
from gpudebug.edges.launcher import Launched, launch


def run(folder: Path, command: str, fault: str = "", required: bool = True, **changes: Any) -> Launched:
    with nobody_left([folder]):
        sampler = sampler_for(folder, fault, required=required)
        launched = launch(spec_for(("sh", "-c", command), folder, sampler=sampler, **changes))
        assert left_after([folder]) == {}
        return launched


def rows(folder: Path) -> list[list[str]]:
    return [line.split(",") for line in (folder / "samples.csv").read_text().splitlines()]


def test_it_samples_from_launch_to_end_and_writes_its_last_row(tmp_path: Path) -> None:
    launched = run(tmp_path, "echo $$; sleep 0.4")
    assert launched.outcome is Outcome.COMPLETED
    *samples, last = rows(tmp_path)
    assert last == ["last"]
    pid = (tmp_path / "train.log").read_text().strip()
    assert {row[1] for row in samples} == {pid}
    assert 0 < float(samples[0][0]) < 5
    assert launched.sampler is not None
    record = {
        key: launched.sampler[key] for key in ("restarts", "lost", "device_lost", "exit_status", "summary")
    }
    assert record == {
        "restarts": 0,
        "lost": False,
        "device_lost": False,
        "exit_status": 0,
        "summary": {"rows": len(samples)},
    }


def test_nothing_of_the_jobs_environment_reaches_it(tmp_path: Path) -> None:
    launched = run(tmp_path, "true", env={"PATH": os.environ["PATH"], "OF_THE_JOB": "1"})
    assert launched.sampler is not None
    assert not {"OF_THE_JOB", "GPUDEBUG_RUN"} & set(launched.sampler["ready"]["env"])


def test_it_is_no_part_of_the_jobs_tree(tmp_path: Path) -> None:
    """It outlives the leader by a moment and is neither killed nor counted for that."""
    launched = run(tmp_path, "sleep 60 & sleep 0.2")
    assert (launched.leaked, launched.sampler and launched.sampler["exit_status"]) == (1, 0)
    assert rows(tmp_path)[-1] == ["last"]


def test_a_crash_costs_samples_and_not_the_run(tmp_path: Path) -> None:
    launched = run(tmp_path, "sleep 0.8", "crash_once")
    assert launched.outcome is Outcome.COMPLETED
    assert launched.sampler is not None
    assert (launched.sampler["restarts"], launched.sampler["lost"]) == (1, False)
    assert launched.sampler["why"] == "the sampler ended with signal 11"
    first, second = ([row for row in rows(tmp_path) if row[-1] == flag] for flag in ("False", "True"))
    assert (len(first), bool(second)) == (3, True)
    assert float(first[-1][0]) < float(second[0][0]), "both count from the same launch"
    assert rows(tmp_path)[-1] == ["last"]


def test_lost_twice_stops_a_run_that_needs_it(tmp_path: Path) -> None:
    launched = run(tmp_path, "sleep 60", "crash")
    assert (launched.outcome, launched.ladder) == (Outcome.SAMPLER_LOST, "interrupt")
    assert launched.reason == "the sampler ended with signal 11"
    assert launched.sampler is not None
    assert (launched.sampler["restarts"], launched.sampler["lost"]) == (1, True)


def test_lost_twice_leaves_a_run_that_does_not_need_it(tmp_path: Path) -> None:
    launched = run(tmp_path, "sleep 1; exit 5", "crash", required=False)
    assert (launched.outcome, launched.exit_status, launched.ladder) == (Outcome.SAMPLER_LOST, 5, None)


def test_a_lost_device_stops_the_job_at_once(tmp_path: Path) -> None:
    launched = run(tmp_path, "sleep 60", "device_lost")
    assert (launched.outcome, launched.ladder) == (Outcome.DEVICE_LOST, "interrupt")
    assert launched.sampler is not None
    assert (launched.sampler["restarts"], launched.sampler["exit_status"]) == (0, 3)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("error", "no device"),
        ("silent", "did not answer within 0.3 s before the launch"),
        ("crash_early", "ended with signal 6 before the launch: driver: terrible things"),
    ],
)
def test_not_ready_means_not_launched(tmp_path: Path, fault: str, words: str) -> None:
    sampler = sampler_for(tmp_path, fault, ready_timeout=0.3 if fault == "silent" else 20.0)
    with nobody_left([tmp_path]), pytest.raises(DeviceError, match=words) as caught:
        launch(spec_for(("touch", str(tmp_path / "launched")), tmp_path, sampler=sampler))
    assert caught.value.next
    assert not (tmp_path / "launched").exists()
    assert left_after([tmp_path]) == {}


def test_a_sampler_that_cannot_be_started(tmp_path: Path) -> None:
    sampler = sampler_for(tmp_path, argv=("/no/such/sampler",))
    with pytest.raises(DeviceError, match="/no/such/sampler: No such file"):
        launch(spec_for(("true",), tmp_path, sampler=sampler))


def test_silence_of_a_hang_and_of_a_machine_that_stood_still(tmp_path: Path) -> None:
    """A hung driver call costs samples and one restart; a pause of warden and sampler alike costs nothing.

    Both take seconds and so run beside each other: the silence that is allowed is 3 s.
    """
    hung, paused = tmp_path / "hung", tmp_path / "paused"
    with nobody_left([hung, paused]):
        drivers = [
            Driver(spec_for(("sleep", "4.5"), hung, sampler=sampler_for(hung, "hang_once"))),
            Driver(spec_for(("sleep", "4.5"), paused, sampler=sampler_for(paused))),
        ]
        wait_until(lambda: (paused / "samples.csv").exists() and rows(paused))
        sampler, warden = drivers[1].sampler(), drivers[1].warden()
        assert sampler is not None and warden is not None
        warden.suspend()
        sampler.suspend()
        time.sleep(3.4)
        warden.resume()
        time.sleep(0.1)
        sampler.resume()
        assert [driver.wait() for driver in drivers] == [0, 0]
        first, second = (driver.launched() for driver in drivers)
        assert (first["outcome"], second["outcome"]) == ("COMPLETED", "COMPLETED")
        assert (first["sampler"]["restarts"], second["sampler"]["restarts"]) == (1, 0)
        assert first["sampler"]["why"] == "the sampler wrote no row for 3 s"
        assert rows(hung)[-1] == rows(paused)[-1] == ["last"]


def test_a_request_travels_unchanged(tmp_path: Path) -> None:
    """A sampler that answers with what it was asked."""
    answer = (
        "import json, sys; print(json.dumps({'ready': True, 'got': json.loads(input())})); sys.stdin.read()"
    )
    request = {"csv": "ü", "nested": [1, {"a": None}]}
    sampler = sampler_for(tmp_path, argv=(sys.executable, "-u", "-c", answer), request=request)
    launched = launch(spec_for(("true",), tmp_path, sampler=sampler))
    assert launched.sampler is not None
    assert json.dumps(launched.sampler["ready"]["got"]) == json.dumps(request)
