"""What the kernel counts of a process between two moments."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.jobs import running

from gpudebug.edges.attach import counters

BUSY = """
print("ready", flush=True)
while True:
    sum(range(1000))
"""


@pytest.mark.parametrize(("text", "cores"), [("0-3,8", 5), ("2", 1), ("0-63", 64), ("", None), ("all", None)])
def test_cores_of_a_list(text: str, cores: int | None) -> None:
    assert counters.cores_in(text) == cores


def test_rates_are_differences_over_the_span(tmp_path: Path) -> None:
    with running(BUSY, tmp_path) as job:
        before = counters.count(job.pid)
        time.sleep(0.5)
        after = counters.count(job.pid)
        assert before is not None
        assert after is not None
        found = counters.between(before, after, job.pid)
        # On a busy host it is ready where it does not run.
        assert found["main_running"] + found["main_ready"] > 0.5
        assert found["cores"] > 0
        assert found["read_mb_s"] == 0.0
        standing = counters.standing(job.pid)
        assert standing["affinity"] == len(os.sched_getaffinity(job.pid))
        assert standing["threads"] == 1
        assert standing["rss_mb"] > 1
        assert counters.state_of(job.pid, job.pid) in ("R", "S", "D")


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert counters.count(gone.pid) is None
    assert counters.state_of(gone.pid, gone.pid) is None
    assert counters.standing(gone.pid) == {}


def test_what_cannot_be_read_is_unknown_and_not_nothing() -> None:
    blank = counters.CountedProcess(0.0, 0.0, 0.0, 0, None, None, {}, None, None)
    found = counters.between(blank, blank._replace(at=10.0, user_s=5.0), 1)
    assert found["cores"] == 0.5
    assert [found[name] for name in ("main_running", "read_mb_s", "waits_s", "forced_s")] == [None] * 4
