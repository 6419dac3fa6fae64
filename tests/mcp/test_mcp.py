"""The server as a client sees it: the real client library over standard input and output, real runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, TextResourceContents
from tests.support.campaigns import (
    GPUDEBUG,
    RECORDED_S,
    Campaign,
    environment,
    killed_at_the_end,
    make_replay_campaign,
    record,
    wait_for,
)
from tests.support.statuses import ageless

from gpudebug.mcp.compact import compact

SESSION = {"GPUDEBUG_SESSION": "agent-7"}
IDEA: dict[str, Any] = {
    "title": "The loader waits",
    "description": "The device idles while the loader waits.",
    "method": "Raise the rate; utilisation should rise.",
    "set": ["--lr=0.2"],
}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Recordings that are played in a second each."""
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", util=60, rate=30)
    return make_replay_campaign(tmp_path / "repo", recordings, speed=RECORDED_S).pin()


@pytest.fixture
def slow(tmp_path: Path) -> Campaign:
    """A baseline that takes far longer than any test waits."""
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", seconds=120)
    return make_replay_campaign(tmp_path / "repo", recordings, speed=1).pin()


@asynccontextmanager
async def connected(campaign: Campaign, *words: str, after: Sequence[str] = ()) -> AsyncIterator[Client]:
    """A client of `gpudebug mcp` in the campaign's folder, under the session agent-7."""
    server = StdioServerParameters(
        command=GPUDEBUG[0],
        args=[*GPUDEBUG[1:], *words, "mcp", *after],
        cwd=campaign.folder,
        env=environment(SESSION),
    )
    with open(os.devnull, "w") as silent:
        async with Client(stdio_client(server, errlog=silent)) as client:
            yield client


def only_text(result: CallToolResult) -> str:
    """The one text of a result: an answer is sent once."""
    assert result.structured_content is None
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The tool's object, which is no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return dict(json.loads(only_text(result)))


async def error(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error's object."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    document = json.loads(only_text(result))
    assert set(document) == {"error"}
    found = document["error"]
    assert set(found) == {"code", "message", "file", "line", "next"}
    return dict(found)


@pytest.mark.slow
def test_a_client_drives_one_hypothesis_and_is_told_to_stop(campaign: Campaign) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(done: float, _total: float | None, message: str | None) -> None:
        told.append((done, message))

    async def story() -> None:
        async with connected(campaign) as client:
            assert client.instructions and "one hypothesis" in client.instructions
            recorded = await client.call_tool("next", {"detach": False}, progress_callback=progress)
            assert json.loads(only_text(recorded))["action"] == "recorded_baseline"

            asked = await answer(client, "next")
            assert asked["action"] == "propose"
            assert asked["brief"].rstrip().endswith(" next")
            proposed = await answer(client, "propose", **IDEA)
            assert proposed["intervention"] == "--set --lr=0.2"
            assert (await error(client, "propose", **IDEA))["code"] == "duplicate"
            bare = await error(client, "propose", title="Another", set=["--lr=0.3"])
            assert bare["message"] == "the hypothesis has no description and no method"

            tested = await answer(client, "next")
            if tested["action"] == "running":
                tested = await answer(client, "wait")
            assert (tested["action"], tested["verdict"]) == ("tested", "VALIDATED")
            stop = await answer(client, "next")
            assert stop["action"] == "stop" and "agent-7" in stop["why"]

            for tool, arguments, words in (
                ("status", {}, ("status",)),
                ("verify", {}, ("verify",)),
                ("compare", {"a": "baseline", "b": "1"}, ("compare", "baseline", "1")),
            ):
                said = campaign.run(*words, "--json", env=SESSION).json
                assert ageless(await answer(client, tool, **arguments)) == ageless(compact(said))

            # What the same client runs in a shell is no second session, whatever it calls itself.
            for env in ({}, {"GPUDEBUG_SESSION": "b"}):
                beside = campaign.run("next", "--json", env=env, close_fds=True).expect(7).json
                assert "agent-7" in beside["why"]
            await check_resources(client, tested["files"])

    asyncio.run(story())
    assert str(told[0][1]).startswith("baseline workload: 2 runs of the unchanged workload")
    for run in ("0001-baseline-workload", "0002-baseline-workload"):
        assert any(str(message).startswith(run) for _, message in told[1:])
    assert [done for done, _ in told] == sorted(done for done, _ in told)


async def check_resources(client: Client, files: list[str]) -> None:
    listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
    assert {"gpudebug://progress", "gpudebug://report"} <= listed
    assert "gpudebug://runs/0001-baseline-workload/evidence" in listed
    for uri in listed:
        (read,) = (await client.read_resource(uri)).contents
        assert isinstance(read, TextResourceContents)
        if uri == "gpudebug://progress":
            assert read.text == Path(next(f for f in files if f.endswith(".md"))).read_text()
        elif uri.endswith("/evidence"):
            assert json.loads(read.text)["duration_s"] > 0
        else:
            assert "The loader waits" in read.text


def test_a_client_finds_resources_and_prompts_before_anything_ran(campaign: Campaign) -> None:
    async def story() -> None:
        async with connected(campaign) as client:
            for uri in ("gpudebug://runs/../../etc/passwd/evidence", "gpudebug://x", "file:///etc/passwd"):
                with pytest.raises(MCPError) as e:
                    await client.read_resource(uri)
                assert e.value.error.code == INVALID_PARAMS
            with pytest.raises(MCPError, match="0009-h3"):
                await client.read_resource("gpudebug://runs/0009-h3/evidence")
            assert {p.name for p in (await client.list_prompts()).prompts} == {
                "find-out-why",
                "next-hypothesis",
            }
            (message,) = (await client.get_prompt("next-hypothesis")).messages
            assert isinstance(message.content, TextContent)
            assert "`next`" in message.content.text and "gpudebug next" not in message.content.text
            with pytest.raises(MCPError, match="unknown prompt"):
                await client.get_prompt("x")

    asyncio.run(story())


def test_what_a_person_decides_needs_a_flag(campaign: Campaign) -> None:
    async def story() -> None:
        async with connected(campaign) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert not {"accept", "export", "baseline", "sample_command"} & names
            withheld = await error(client, "accept", hypothesis=1)
            assert "a person's decision" in withheld["message"]
            assert "--allow-decisions" in withheld["next"]
            assert "--allow-commands" in (await error(client, "why_command"))["next"]
        async with connected(campaign, after=("--allow-decisions",)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"accept", "export", "baseline"} <= names
            assert "hypothesis" in (await error(client, "accept", hypothesis=7))["message"]

    asyncio.run(story())


def test_what_cannot_be_done_is_an_error_object_and_the_server_goes_on(campaign: Campaign) -> None:
    async def story() -> None:
        async with connected(campaign, "-C", ".") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"status", "next", "wait", "propose", "release", "reopen", "catalogue"} <= set(tools)
            for tool in tools.values():
                assert tool.input_schema["additionalProperties"] is False
                assert tool.annotations is not None
                assert not tool.annotations.destructive_hint
                assert not tool.annotations.open_world_hint
            assert tools["status"].annotations.read_only_hint  # type: ignore[union-attr]
            assert not tools["next"].annotations.read_only_hint  # type: ignore[union-attr]

            for tool, arguments, code in (
                ("propose", {"title": "x", "command": "rm -rf ."}, "usage"),
                ("propose", {"title": "x" * 1_000_000}, "usage"),
                ("propose", {"title": "x", "patch": "../../etc/passwd"}, "intervention"),
                ("propose", {"title": "x", "patch": "/etc/passwd"}, "intervention"),
                ("compare", {"a": "0001-baseline-workload", "b": "train.py"}, "usage"),
                ("compare", {"a": "../repo", "b": "1"}, "usage"),
                ("show", {"hypothesis": 7}, "usage"),
                ("catalogue", {"about": "dl-no-worker"}, "usage"),
            ):
                found = await error(client, tool, **arguments)
                assert found["code"] == code or tool == "compare", found
                assert len(json.dumps(found)) < 1000
            with pytest.raises(MCPError, match="unknown tool 'sh'"):
                await client.call_tool("sh", {"command": "id"})
            said = await answer(client, "propose", **IDEA)
            assert said["next_command"].endswith(" next")
            (campaign.folder / "gpudebug.yaml").unlink()
            assert "gpudebug init" in (await error(client, "status"))["next"]

    asyncio.run(story())
    assert campaign.runs() == []


def test_a_cancelled_call_ends_its_run_and_not_the_server(slow: Campaign) -> None:
    async def story() -> None:
        async with connected(slow) as client:
            with anyio.CancelScope() as scope:

                async def cancel(_done: float, _total: float | None, message: str | None) -> None:
                    if "0001-baseline-workload" in str(message):
                        scope.cancel()

                await client.call_tool("next", {"detach": False}, progress_callback=cancel)
            assert scope.cancelled_caught
            assert (await answer(client, "status"))["running"] is False

    asyncio.run(story())
    run = json.loads((slow.folder / "runs" / "0001-baseline-workload" / "run.json").read_text())
    assert run["outcome"] == "INTERRUPTED"
    assert "keyboard" in run["reason"]


@contextlib.contextmanager
def raw(campaign: Campaign) -> Iterator[subprocess.Popen[bytes]]:
    """The server with a client that is only a pipe; a run is under way when it is handed over."""
    process = subprocess.Popen(
        [*GPUDEBUG, "mcp"],
        cwd=campaign.folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with killed_at_the_end(process):
        assert process.stdin is not None
        initialize = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "pipe", "version": "1"},
        }
        call = {"name": "next", "arguments": {"detach": False}, "_meta": {"progressToken": 1}}
        for message in (
            {"id": 1, "method": "initialize", "params": initialize},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "gpudebug"
        for line in iter(process.stdout.readline, b""):
            message = json.loads(line)
            assert message["method"] == "notifications/progress"
            if "0001-baseline-workload" in message["params"]["message"]:
                break
        yield process


def test_the_end_of_its_input_ends_the_run_and_the_server(slow: Campaign) -> None:
    with raw(slow) as process:
        began = time.monotonic()
        out, _ = process.communicate(timeout=30)
    assert time.monotonic() - began < 15
    assert process.returncode == 0
    said = [json.loads(line) for line in out.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in said)
    run = json.loads((slow.folder / "runs" / "0001-baseline-workload" / "run.json").read_text())
    assert run["outcome"] == "INTERRUPTED"
    assert run["session"].startswith("mcp-")


def test_a_client_that_dies_takes_the_run_and_the_server_along(slow: Campaign) -> None:
    with raw(slow) as process:
        assert process.stdout is not None
        process.stdout.close()
        wait_for(lambda: any(slow.folder.glob("runs/0001-*/manifest.json")))
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")


def test_a_signal_ends_the_run_and_the_server(slow: Campaign) -> None:
    with raw(slow) as process:
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: process.poll() is not None)
    assert process.returncode == 130


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv[1:] = ['mcp'];"
        "from gpudebug.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "pip install 'gpudebug[mcp]'" in done.stderr
