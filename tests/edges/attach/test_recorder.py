"""py-spy at work on a real process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.support.jobs import TRAINING, needs_spy, running

from gpudebug.edges.attach import spy
from gpudebug.edges.attach.recorder import ProcessLook, SpyRecording


@needs_spy
def test_where_a_program_waits_and_where_it_runs_are_told_apart(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        look = ProcessLook(spy.find(), job.pid, rate=100, seconds=10, states=True)
        time.sleep(2.0)
        found = look.finish()
        assert found is not None
        assert look.failed is None
        assert look.cpu_s > 0
        assert not found.worker
        spent: dict[str, list[float]] = {}
        for one in found.stacks:
            entry = spent.setdefault(one.stack.names[-1].rpartition(":")[2], [0.0, 0.0])
            entry[0] += one.seconds
            entry[1] += one.cpu_s
        assert spent["fetch"][0] > spent["update"][0]
        assert spent["fetch"][1] < 0.5 * spent["fetch"][0]
        assert spent["update"][1] > 0.5 * spent["update"][0]


def test_without_py_spy_a_process_is_still_counted(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        look = ProcessLook(None, job.pid, rate=4, seconds=10, states=True)
        assert look.before is not None
        assert look.finish() is None
        assert look.failed is None


def test_a_recorder_that_fails_says_why_and_one_that_hangs_is_ended(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("#!/bin/sh\necho 'Error: Failed to find python version from target process' >&2\nexit 1\n")
    bad.chmod(0o755)
    one = SpyRecording(str(bad), os.getpid(), rate=1, seconds=5, idle=True)
    time.sleep(0.3)
    assert one.finish() == ""
    assert one.failed == "Failed to find python version from target process"
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\ntrap '' INT\nwhile :; do sleep 0.05; done\n")
    deaf.chmod(0o755)
    other = SpyRecording(str(deaf), os.getpid(), rate=1, seconds=5, idle=True)
    time.sleep(0.3)
    assert other.finish() == ""
    assert other.failed == "it was killed by signal 9"


@pytest.mark.parametrize("ended", [True, False])
@needs_spy
def test_nothing_is_left_of_a_recording(tmp_path: Path, ended: bool) -> None:
    with running(TRAINING, tmp_path) as job:
        before = set(os.listdir(tmp_path)), len(os.listdir("/proc/self/fd"))
        one = SpyRecording(str(spy.find()), job.pid, rate=20, seconds=5, idle=True)
        time.sleep(0.5)
        if ended:
            job.kill()
            job.wait()
        text = one.finish()
        assert ended or "fetch" in text or "update" in text
        assert (set(os.listdir(tmp_path)), len(os.listdir("/proc/self/fd"))) == before
