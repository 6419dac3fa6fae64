"""`server:`: what may be written, and what cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.config import load
from gpudebug.core.config.pins import pinnable
from gpudebug.core.errors import ConfigError

SMALL = "workload: {command: 'python ask.py --port={port}'}\n"
SERVER = "server: {command: 'python serve.py --port={port}'}\n"


def test_its_defaults() -> None:
    config = load(SMALL + SERVER, "gpudebug.yaml")
    assert config.server is not None
    assert config.server.model_dump() == {
        "command": "python serve.py --port={port}",
        "ready": {},
        "port": None,
        "timeout": 120,
        "shell": False,
        "cwd": ".",
        "env": {},
    }
    assert config.workload.server == config.server
    assert config.server.argv() == ("python", "serve.py", "--port={port}")


def test_the_reference_needs_it_too() -> None:
    config = load(SMALL + SERVER + "reference: {command: python other.py}\n", "gpudebug.yaml")
    assert config.reference is not None
    assert config.reference.server == config.server


def test_without_it_nothing_is_pinned_of_it() -> None:
    with_server, without = (pinnable(load(text, "gpudebug.yaml")) for text in (SMALL + SERVER, SMALL))
    assert {key for key in with_server if key not in without} == {
        *("server.command", "server.ready", "server.timeout", "server.shell", "server.cwd", "server.env"),
    }
    assert not [key for key in (*with_server, *without) if key.startswith("workload.server")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ready: port", {}),
        ("ready: {port: true}", {}),
        ("ready: {port: 5555}", {"port": 5555}),
        ("ready: {http: /health}", {"http": "/health"}),
        ("ready: {log: 'startup complete'}", {"log": "startup complete"}),
    ],
)
def test_what_says_that_it_is_ready(written: str, expected: dict[str, Any]) -> None:
    server = load(SMALL + f"server:\n  command: serve --port={{port}}\n  {written}\n", "gpudebug.yaml").server
    assert server is not None
    assert server.ready == expected


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("server: {ready: port}\n", "server.command is missing", 2),
        (
            "server:\n  command: serve\n",
            "{port} is in no word of its command, so it does not learn its port",
            3,
        ),
        ("server:\n  command: serve '\n  port: 1\n", "server.command: ", 3),
        ("server:\n  command: serve\n  port: 70000\n", "server.port: expected auto or a port from 1 to", 4),
        (
            "server:\n  command: serve\n  port: 1\n  ready: {http: health}\n",
            "server.ready: http: expected",
            5,
        ),
        ("server:\n  command: serve\n  port: 1\n  ready: {log: '('}\n", "server.ready: log: no regular", 5),
        (
            "server:\n  command: serve\n  port: 1\n  ready: {log: a, http: /b}\n",
            "server.ready: expected one",
            5,
        ),
        ("server:\n  command: serve\n  prot: 1\n", "unknown key server.prot", 4),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(text: str, says: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        load(SMALL + text, "gpudebug.yaml")
    assert says in caught.value.message
    assert caught.value.line == line


def test_it_stands_beside_the_workload() -> None:
    text = "workload:\n  command: ask\n  server: {command: serve, port: 1}\n"
    with pytest.raises(ConfigError, match=r"workload\.server: server is a setting of its own"):
        load(text, "gpudebug.yaml")
