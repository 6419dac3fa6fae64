"""What people and agents use on a login node as on one machine, and the end of the allocation."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from tests.support.campaigns import GPUDEBUG, environment, wait_for
from tests.support.login_node import LoginNode, login_node


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[LoginNode]:
    with login_node(tmp_path, 1.5) as node:
        yield node


@pytest.mark.slow
def test_a_server_of_mcp_measures_in_the_allocation(quick: LoginNode) -> None:
    async def talked() -> list[dict[str, Any]]:
        env = environment(quick.env({"GPUDEBUG_SESSION": "agent-7"}))
        server = StdioServerParameters(
            command=GPUDEBUG[0], args=[*GPUDEBUG[1:], "mcp"], cwd=quick.campaign.folder, env=env
        )
        with open(os.devnull, "w") as silent:
            async with Client(stdio_client(server, errlog=silent)) as client:
                results = [await client.call_tool(tool, {}) for tool in ("next", "wait", "status")]
        assert not any(result.is_error for result in results)
        return [json.loads(result.content[0].text) for result in results]  # type: ignore[union-attr]

    started, waited, seen = asyncio.run(talked())
    assert started["action"] == "running"
    assert (waited["action"], waited["role"]) == ("recorded_baseline", "workload")
    assert seen["allocation"].startswith("job 1 runs")
    assert {run["session"] for run in quick.records()} == {"agent-7"}
    assert quick.cluster.jobs() == ["1"]


def test_an_error_of_a_profiled_run_is_its_callers(quick: LoginNode) -> None:
    """A recording that is played back is no training of PyTorch."""
    error = quick.json("baseline", "--torch-profile", "active=2", status=1)["error"]
    assert error["code"] == "trace"
    (run,) = quick.records()
    assert (run["role"], run["node"]["allocation"]) == ("profile-workload", "1")


@pytest.mark.slow
def test_the_allocation_ends_when_the_campaign_stops(quick: LoginNode) -> None:
    config = quick.campaign.config
    config.write_text(config.read_text() + "budget: {hypotheses: 1}\n")
    quick.campaign.pin()
    quick.json("next")
    quick.campaign.propose("--set --lr=0.2")
    quick.json("next")
    assert quick.cluster.job("1")["word"] == "RUNNING"
    assert quick.json("next", status=4)["action"] == "stop"
    assert quick.cluster.job("1")["word"] in ("COMPLETED", "CANCELLED")
    assert quick.json("next", status=4)["action"] == "stop"
    assert quick.cluster.jobs() == ["1"]


@pytest.mark.slow
def test_ctrl_c_of_a_waiting_command_ends_the_run_and_keeps_the_allocation(tmp_path: Path) -> None:
    with login_node(tmp_path, 30.0) as node:
        waiting = node.start("next")
        wait_for(node.under_way)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == 130
        (run,) = node.records()
        assert (run["outcome"], run["reason"]) == ("INTERRUPTED", "interrupted from the login node")
        assert node.cluster.job("1")["word"] == "RUNNING"
        assert node.json("wait")["action"] == "idle"
        assert not node.detached.has_answer()


@pytest.mark.slow
def test_a_job_that_is_cancelled_in_the_queue_is_asked_for_again(quick: LoginNode) -> None:
    quick.cluster.hold("Priority")
    waiting = quick.start("next")
    wait_for(lambda: quick.cluster.jobs() == ["1"] and quick.files.request() is not None)
    subprocess.run([quick.cluster.bin / "scancel", "1"], check=True)
    quick.cluster.hold(None)
    out, err = waiting.communicate(timeout=90)
    assert json.loads(out)["action"] == "recorded_baseline"
    assert b"Slurm ended job 1: CANCELLED; what ran is void, and is run again" in err
    assert [run["node"]["allocation"] for run in quick.records()] == ["2", "2"]


@pytest.mark.slow
def test_the_answer_of_a_command_that_was_killed_waits_for_the_next_one(quick: LoginNode) -> None:
    waiting = quick.start("next")
    wait_for(quick.under_way)
    waiting.kill()
    waiting.wait(30)
    assert quick.json("wait")["action"] == "recorded_baseline"
    assert [run["outcome"] for run in quick.records()] == ["COMPLETED", "COMPLETED"]
    assert quick.cluster.jobs() == ["1"]
