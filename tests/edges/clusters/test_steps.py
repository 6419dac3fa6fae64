"""A program on other nodes, by a stand-in for the scheduler's command: what it says, that it always ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import wait_for

from gpudebug.core.cluster.jobs import NodeStep
from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters.steps import RunningStep, running

ECHO = """
import json, os, sys
print("chatter of a library", flush=True)
print('0: {"node": "n1", "pid": %d}' % os.getpid(), flush=True)
print("trouble", file=sys.stderr, flush=True)
for line in sys.stdin:
    print(json.dumps({"node": "n1", "told": json.loads(line)}), flush=True)
print('{"node": "n1", "last": true}', flush=True)
"""
STUBBORN = 'import time; print(\'{"node": "n1"}\', flush=True); time.sleep(600)'


def step(*argv: str) -> NodeStep:
    return NodeStep(nodes=("n1",), argv=argv, env=tuple(os.environ.items()), variable="NODE")


def said(one: RunningStep, count: int) -> list[dict[str, object]]:
    return one.wait(lambda messages: len(messages) >= count, 30)


def test_what_a_program_is_told_and_says() -> None:
    with running(step(sys.executable, "-c"), [ECHO]) as one:
        (first,) = said(one, 1)
        one.tell({"t0": 1.5})
        assert said(one, 2)[1]["told"] == {"t0": 1.5}
        assert one.end(30)[-1] == {"node": "n1", "last": True}
        assert one.why == "trouble"
        one.tell({"too": "late"})
    with pytest.raises(ProcessLookupError):
        os.kill(int(str(first["pid"])), 0)


def test_looking_moves_nothing_of_what_is_written() -> None:
    """The program writes at the position of the file that is read here."""
    code = 'for i in range(20000): print(\'{"node": "n1", "i": %d}\' % i, flush=True)'
    with running(step(sys.executable, "-c"), [code]) as one:
        found = one.wait(lambda messages: False, 60)
        assert [m["i"] for m in found] == list(range(20000))


def test_waiting_ends_with_the_program_and_with_its_time() -> None:
    with running(step(sys.executable, "-c"), ["print('srun: no such node')"]) as one:
        assert one.wait(lambda messages: False, 60) == []
    with running(step(sys.executable, "-c"), [STUBBORN]) as one:
        said(one, 1)
        assert len(one.wait(lambda messages: False, 0.1)) == 1


def test_one_that_goes_on_without_input_is_ended() -> None:
    with running(step(sys.executable, "-c"), [STUBBORN]) as one:
        said(one, 1)
        assert len(one.end(0.1)) == 1
        assert one.end(0.1) == one.messages()


def test_a_command_that_cannot_be_started_is_an_error() -> None:
    with pytest.raises(ClusterError, match="no-such-command"), running(step("no-such-command"), []):
        pass


def test_it_ends_with_a_caller_that_is_killed() -> None:
    code = """
import sys, time
from tests.edges.clusters.test_steps import ECHO, said, step
from gpudebug.edges.clusters.steps import running
with running(step(sys.executable, "-c"), [ECHO]) as one:
    print(said(one, 1)[0]["pid"], flush=True)
    time.sleep(600)
"""
    caller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    pid = int(caller.stdout.readline())
    caller.send_signal(signal.SIGKILL)
    caller.wait()

    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    wait_for(gone, 30)
