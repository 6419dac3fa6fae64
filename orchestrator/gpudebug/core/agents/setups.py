"""What each coding agent needs beside its instructions: permissions by verb, time for runs, the MCP server.

Files of the campaign's folder, as each agent documents them; one that reads none of them is missing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from gpudebug.core.agents.instructions import AGENTS
from gpudebug.core.lazy import regex

VARIABLE = "GPUDEBUG_SESSION"
RUN = "GPUDEBUG_RUN"

# Claude Code 2.1.132, Codex, Amp, opencode.
OF_AGENT = {
    "claude": "CLAUDE_CODE_SESSION_ID",
    "codex": "CODEX_THREAD_ID",
    "amp": "AMP_CURRENT_THREAD_ID",
    "opencode": "OPENCODE_SESSION_ID",
}
NAMES = frozenset({VARIABLE, RUN, *OF_AGENT.values()})


def named(env: Mapping[str, str]) -> bool:
    """Tell whether these variables name a session, so that an agent reads what is printed."""
    return any(env.get(name) for name in NAMES)


VERBS = ("next", "wait", "propose", "status", "show", "diagnose", "catalogue", "release", "reopen", "verify")
"""What a session may run unasked: none of these takes a command, and none decides for a person."""
TOOL_S = 600
"""So long a tool call may take: `gpudebug wait --for 9m` ends before."""
_MS = 1000 * TOOL_S
_SERVER: dict[str, object] = {"command": "gpudebug", "args": ["mcp"]}
_TABLE = regex(r"^\s*\[mcp_servers\.gpudebug\]\s*$", re.MULTILINE)


class SetupFile(NamedTuple):
    """A file that an agent reads: what of it is gpudebug's, as JSON; `toml` is its text if it is TOML."""

    path: str
    wanted: Mapping[str, object]
    toml: str | None = None

    @property
    def text(self) -> str:
        """The text of a new file."""
        return self.toml if self.toml is not None else json.dumps(self.wanted, indent=2) + "\n"

    @property
    def line(self) -> str:
        """What to add to a file that is there already, on one line."""
        return "; ".join(self.toml.splitlines()) if self.toml is not None else json.dumps(self.wanted)

    def held_by(self, text: str) -> bool:
        """Whether a file has all of it. What is no JSON, and JSON with comments, has not: it is not known."""
        if self.toml is not None:
            return _TABLE.search(text) is not None
        try:
            return _within(self.wanted, json.loads(text))
        except (ValueError, RecursionError):
            return False


def _within(wanted: object, found: object) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, dict) and all(k in found and _within(v, found[k]) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(_within(w, f) for f in found) for w in wanted)
    return wanted == found


def _gemini(folder: str) -> tuple[SetupFile, ...]:
    """Gemini CLI, and Qwen Code, which is made of it."""
    allowed = [f"run_shell_command(gpudebug {verb})" for verb in VERBS]
    server = {"gpudebug": {**_SERVER, "timeout": _MS}}
    return (SetupFile(f"{folder}/settings.json", {"mcpServers": server, "tools": {"allowed": allowed}}),)


_CLAUDE = (
    SetupFile(
        ".claude/settings.json",
        {
            "permissions": {"allow": [f"Bash(gpudebug {verb}:*)" for verb in VERBS]},
            "env": {"BASH_DEFAULT_TIMEOUT_MS": str(_MS), "MCP_TOOL_TIMEOUT": str(_MS)},
        },
    ),
    SetupFile(".mcp.json", {"mcpServers": {"gpudebug": _SERVER}}),
)
_CODEX = f"""\
[mcp_servers.gpudebug]
command = "gpudebug"
args = ["mcp"]
startup_timeout_sec = 30
tool_timeout_sec = {TOOL_S}
"""
SETUPS: dict[str, tuple[SetupFile, ...]] = {
    "claude": _CLAUDE,
    "claude-skill": _CLAUDE,
    "codex": (SetupFile(".codex/config.toml", {}, _CODEX),),
    "gemini": _gemini(".gemini"),
    "qwen": _gemini(".qwen"),
    "cursor": (
        SetupFile(".cursor/mcp.json", {"mcpServers": {"gpudebug": _SERVER}}),
        SetupFile(
            ".cursor/cli.json", {"permissions": {"allow": [f"Shell(gpudebug:{verb}*)" for verb in VERBS]}}
        ),
    ),
    "copilot": (SetupFile(".vscode/mcp.json", {"servers": {"gpudebug": {"type": "stdio", **_SERVER}}}),),
    "opencode": (
        SetupFile(
            "opencode.json",
            {
                "permission": {"bash": {f"gpudebug {verb}*": "allow" for verb in VERBS}},
                "mcp": {
                    "gpudebug": {
                        "type": "local",
                        "command": ["gpudebug", "mcp"],
                        "enabled": True,
                        "timeout": _MS,
                    }
                },
            },
        ),
    ),
}
PROGRAMS = {
    "claude": "claude",
    "claude-skill": "claude",
    "cursor": "cursor-agent",
    **{name: name for name in ("codex", "gemini", "qwen", "copilot", "aider", "opencode", "amp", "goose")},
}
"""The program of an agent, by its name here."""


def files() -> tuple[str, ...]:
    """Return every file that agents read: none of them is code that is measured."""
    setups = (file.path for setup in SETUPS.values() for file in setup)
    return tuple(dict.fromkeys((*(agent.path for agent in AGENTS.values()), *setups)))
