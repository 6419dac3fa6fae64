"""What each tool takes: bounded, nothing unknown, nothing that is run, and no way out of the campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudebug.cli import app
from gpudebug.core.errors import UsageError
from gpudebug.mcp.tools import OF_COMMANDS, OF_DECISIONS, TOOLS, Client, Tool, flag_of, tools_of

ALL = (*TOOLS, *OF_DECISIONS)
BY_NAME = {tool.name: tool for tool in ALL}
LONG = "x" * 1_000_000
READ_ONLY = {"status", "show", "verify", "compare", "diagnose", "catalogue"}


def strings(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every part of a schema that takes free text or a list."""
    for part in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        if part.get("type") in ("string", "array"):
            yield part
        yield from strings(part)


def test_each_tool_is_a_command_and_is_told_once() -> None:
    commands = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    assert len(BY_NAME) == len(ALL)
    assert set(BY_NAME) <= commands
    assert {tool.name for tool in ALL if tool.read_only} == READ_ONLY


def test_each_flag_of_the_server_offers_its_tools(tmp_path: Path) -> None:
    for flags, more in (
        ((False, False), ()),
        ((True, False), OF_COMMANDS),
        ((False, True), OF_DECISIONS),
        ((True, True), (*OF_DECISIONS, *OF_COMMANDS)),
    ):
        assert tools_of(Client(tmp_path, "a", *flags)) == (*TOOLS, *more)
    assert {flag_of(tool.name) for tool in OF_DECISIONS} == {"--allow-decisions"}
    assert {flag_of(tool.name) for tool in OF_COMMANDS} == {"--allow-commands"}
    assert {flag_of(name) for name in ("status", "sh")} == {None}


@pytest.mark.parametrize("tool", ALL, ids=BY_NAME)
def test_a_schema_admits_nothing_unbounded(tool: Tool) -> None:
    schema = tool.schema()
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    for part in strings(schema):
        assert {"maxLength", "maxItems", "enum"} & set(part), part
    for name, part in schema["properties"].items():
        assert part.get("description"), name
        assert "anyOf" not in part


@pytest.mark.parametrize("tool", ALL, ids=BY_NAME)
def test_an_unknown_argument_is_named_and_cut(tool: Tool) -> None:
    with pytest.raises(UsageError, match="has no argument 'command'") as e:
        tool.checked({**_valid(tool), "command": "rm -r"})
    assert "rm -r" not in str(e.value)
    with pytest.raises(UsageError) as e:
        tool.checked({**_valid(tool), LONG: 1})
    assert len(str(e.value)) < 400


def _valid(tool: Tool) -> dict[str, Any]:
    return {
        name: "0001-a" if part["type"] == "string" else 1
        for name, part in tool.schema()["properties"].items()
        if name in tool.schema().get("required", [])
    }


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("show", {}, "show: hypothesis: is missing"),
        ("show", {"hypothesis": "3"}, "show: hypothesis: "),
        ("show", {"hypothesis": True}, "show: hypothesis: "),
        ("show", {"hypothesis": 0}, "greater than or equal to 1"),
        ("show", {"hypothesis": 10**30}, "less than or equal to 999"),
        ("propose", {"title": LONG}, "propose: title: "),
        ("propose", {"set": ["--a=1"] * 51}, "propose: set: "),
        ("propose", {"set": [LONG]}, "propose: set.0: "),
        ("propose", {"set": "--a=1"}, "propose: set: "),
        ("propose", {"title": None}, "propose: title: "),
        ("propose", {"cause": "../x"}, "propose: cause: has characters"),
        ("propose", {"from_catalogue": LONG}, "propose: from_catalogue: "),
        ("why", {"gpu": -1}, "why: gpu: "),
        ("why", {"gpu": "0"}, "why: gpu: "),
        ("diagnose", {"run": "/etc"}, "diagnose: run: has characters"),
        ("next", {"detach": 1}, "next: detach: "),
        ("wait", {"seconds": 0}, "wait: seconds: "),
        ("baseline", {"role": "/etc/passwd"}, "baseline: role: "),
        ("compare", {"a": "../../other/runs/0001-a", "b": "1"}, "compare: a: has characters"),
        ("compare", {"a": "python train.py", "b": "1"}, "compare: a: has characters"),
        ("compare", {"a": "-h", "b": "1"}, "compare: a: has characters"),
    ],
)
def test_what_is_wrong_is_said_without_its_value(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as e:
        BY_NAME[name].checked(given)
    assert said in e.value.message
    assert len(str(e.value)) < 300
    assert e.value.next and e.value.next.startswith("its arguments are: ")


@pytest.mark.parametrize(("given", "pid", "gpu"), [({"pid": 7}, 7, None), ({"gpu": 0}, None, 0)])
def test_a_job_is_named_by_a_process_or_by_its_gpu(
    given: dict[str, Any], pid: int | None, gpu: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr("gpudebug.engine.diagnosis.attach.attach", lambda *_, **more: asked.update(more))
    tool = BY_NAME["why"]
    tool.call(Client(tmp_path, "s1"), tool.checked(given), lambda live: None)
    # Under the session, which may look at its campaign's runs alone.
    assert asked == {"pid": pid, "gpu": gpu, "most": None, "session": "s1"}
    with pytest.raises(UsageError, match="exclude each other"):
        tool.call(Client(tmp_path, "s1"), tool.checked({"pid": 1, "gpu": 1}), lambda live: None)
