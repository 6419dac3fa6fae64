"""The files by which agents find the plugin, of one table: `python -m tests.support.manifests`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from gpudebug import __version__

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "orchestrator/gpudebug/plugin"

_PROJECT = metadata("gpudebug")
_NAME = {"name": "gpudebug"}
_SAYS = {"description": _PROJECT["Summary"] + "."}
_SERVER = {"mcpServers": {"gpudebug": {"command": "gpudebug", "args": ["mcp"]}}}
_ABOUT = {
    **_NAME,
    "version": __version__,
    **_SAYS,
    "license": _PROJECT["License-Expression"],
    "keywords": ["gpu", "training", "profiling", "performance"],
    "author": _NAME,
}
_SKILLS = {"skills": "./skills/"}
_SCHEMA = {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"}

_MANIFESTS: dict[str, dict[str, Any]] = {
    f"{PLUGIN}/plugin.json": {**_SCHEMA, **_ABOUT},
    f"{PLUGIN}/.claude-plugin/plugin.json": _ABOUT,
    f"{PLUGIN}/.codex-plugin/plugin.json": {**_ABOUT, **_SKILLS},
    f"{PLUGIN}/.cursor-plugin/plugin.json": {**_ABOUT, **_SKILLS},
    f"{PLUGIN}/.mcp.json": _SERVER,
    f"{PLUGIN}/gemini-extension.json": {**_NAME, "version": __version__, **_SAYS, **_SERVER},
    ".claude-plugin/marketplace.json": {
        **_NAME,
        "owner": _NAME,
        **_SAYS,
        "plugins": [{**_NAME, "source": f"./{PLUGIN}", **_SAYS}],
    },
    ".cursor-plugin/marketplace.json": {
        **_NAME,
        "owner": _NAME,
        "metadata": _SAYS,
        "plugins": [{**_NAME, "source": PLUGIN, **_SAYS}],
    },
    ".agents/plugins/marketplace.json": {
        **_NAME,
        "interface": {"displayName": "gpudebug"},
        "plugins": [
            {
                **_NAME,
                "source": {"source": "local", "path": f"./{PLUGIN}"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Developer Tools",
            }
        ],
    },
}
"""Each agent's own form; a server would start in the plugin's folder where the standard starts one."""


def manifests() -> Iterator[tuple[Path, str]]:
    """Yield each file with its text."""
    for name, content in _MANIFESTS.items():
        yield ROOT / name, json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    for path, text in manifests():
        path.write_text(text)
