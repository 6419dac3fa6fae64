"""The follower's lines about a job's processes."""

from __future__ import annotations

import json

from gpudebug.core.inside.attached.record import read_attached

MAIN = {"kind": "process", "pid": 5, "of": "training", "cores": 1.5, "looks": 90, "loader": "x"}
END = {"kind": "observer", "pid": 9, "seconds": 40.0, "cpu_s": 0.2, "members": 3, "ended": False}


def lines(*entries: object) -> str:
    return "\n".join(json.dumps(entry) for entry in entries)


def test_processes_and_what_looking_cost_are_read() -> None:
    found = read_attached(lines(MAIN, {**MAIN, "pid": 6, "of": "worker"}, END))
    assert found is not None
    assert found.main is not None
    assert (found.main.pid, found.main.cores) == (5, 1.5)
    assert [one.pid for one in found.of("worker")] == [6]
    assert (found.members, found.observer_cores) == (3, 0.005)


def test_a_run_that_was_launched_has_none() -> None:
    assert read_attached('{"kind":"start","pid":3,"t":1,"t0":0}\n') is None


def test_a_line_that_is_not_the_followers_counts_for_nothing() -> None:
    text = lines(MAIN, {"kind": "process", "pid": 8}, {**MAIN, "pid": 10, "cores": "many"}) + "\n{torn"
    found = read_attached(text)
    assert found is not None
    assert [one.pid for one in found.processes] == [5]
    assert found.observer_cores is None
