from __future__ import annotations

import json

import pytest

from gpudebug.core.agents.instructions import AGENTS
from gpudebug.core.agents.setups import PROGRAMS, SETUPS, TOOL_S, VERBS, SetupFile, files

EACH = [(name, file) for name, setup in SETUPS.items() for file in setup]
JSON = [file for _, file in EACH if file.toml is None]


def test_each_is_of_a_known_agent_and_no_code() -> None:
    assert SETUPS.keys() | PROGRAMS.keys() <= AGENTS.keys()
    assert {file.path for _, file in EACH} <= set(files())
    assert {agent.path for agent in AGENTS.values()} <= set(files())
    assert len(files()) == len(set(files()))


@pytest.mark.parametrize("file", [file for _, file in EACH], ids=lambda file: file.path)
def test_a_new_file_holds_what_is_wanted(file: SetupFile) -> None:
    assert file.held_by(file.text)
    assert "\n" not in file.line
    assert not file.held_by("")
    assert not file.held_by("{}")
    assert not file.held_by("[" * 100_000)


@pytest.mark.parametrize("file", JSON, ids=lambda file: file.path)
def test_more_of_others_is_allowed_and_less_of_ours_is_not(file: SetupFile) -> None:
    more = {**json.loads(file.text), "theirs": [1]}
    assert file.held_by(json.dumps(more))
    for key in file.wanted:
        assert not file.held_by(json.dumps({k: v for k, v in more.items() if k != key}))
    assert not file.held_by("// a comment\n" + file.text)


@pytest.mark.parametrize("name", ["claude", "gemini", "qwen", "cursor", "opencode"])
def test_permissions_are_by_verb_and_none_takes_a_command(name: str) -> None:
    text = "".join(file.text for file in SETUPS[name])
    assert all(f"gpudebug {verb}" in text or f"gpudebug:{verb}" in text for verb in VERBS)
    for verb in ("sample", "compare", "loop", "why", "accept", "init", "settings", "export"):
        assert f"gpudebug {verb}" not in text
        assert f"gpudebug:{verb}" not in text
    assert "gpudebug:*" not in text
    assert "(gpudebug)" not in text


def test_every_setup_has_the_server_and_time_for_a_wait_of_nine_minutes() -> None:
    for name, setup in SETUPS.items():
        text = "".join(file.text for file in setup)
        assert "mcp" in text, name
    assert TOOL_S >= 9 * 60 + 30
    assert f"tool_timeout_sec = {TOOL_S}" in SETUPS["codex"][0].text
