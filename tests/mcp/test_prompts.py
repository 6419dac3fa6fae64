"""What a user asks for with one word."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("mcp")

from mcp_types import TextContent

from gpudebug.mcp.prompts import listed, prompt
from gpudebug.mcp.tools import TOOLS


def test_each_prompt_names_tools_that_every_client_has() -> None:
    tools = {tool.name for tool in TOOLS}
    for shown in listed():
        found = prompt(shown.name)
        assert found is not None
        (message,) = found.messages
        assert isinstance(message.content, TextContent) and message.role == "user"
        text = message.content.text
        assert "`gpudebug " not in text and "exit status" not in text
        called = set(re.findall(r"[Cc]all `([a-z]+)`", text))
        assert called and called <= tools
        assert len(text) < 1200


def test_another_name_is_no_prompt() -> None:
    assert prompt("x") is None
