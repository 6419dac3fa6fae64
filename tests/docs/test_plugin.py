"""The plugin that agents install: one version, manifests in their places, a skill that names what exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import gpudebug
from gpudebug.cli import app
from gpudebug.mcp.tools import TOOLS

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = Path(gpudebug.__file__).parent / "plugin"
MANIFESTS = (
    "plugin.json",
    "gemini-extension.json",
    ".claude-plugin/plugin.json",
    ".codex-plugin/plugin.json",
    ".cursor-plugin/plugin.json",
)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_has_the_version_of_the_package(name: str) -> None:
    manifest = read(PLUGIN / name)
    assert (manifest["name"], manifest["version"]) == ("gpudebug", gpudebug.__version__)
    assert manifest["description"] == read(PLUGIN / MANIFESTS[0])["description"]
    skills = manifest.get("skills", "./skills/")
    assert (PLUGIN / skills / "gpudebug" / "SKILL.md").is_file()


def test_the_manifest_of_the_open_standard_has_its_keys_alone() -> None:
    """Agent Plugins 1.0.0, 5.2; a server would start in the plugin's folder (7.2.1), so there is none."""
    manifest = read(PLUGIN / "plugin.json")
    assert manifest["$schema"] == "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    assert set(manifest) <= {"$schema", "name", "version", "description", "author", "license", "keywords"}
    assert not (PLUGIN / "mcp.json").exists()


@pytest.mark.parametrize("name", [".mcp.json", "gemini-extension.json"])
def test_a_server_starts_in_the_users_project(name: str) -> None:
    assert read(PLUGIN / name)["mcpServers"] == {"gpudebug": {"command": "gpudebug", "args": ["mcp"]}}


@pytest.mark.parametrize(
    "marketplace",
    [
        ".claude-plugin/marketplace.json",
        ".cursor-plugin/marketplace.json",
        ".agents/plugins/marketplace.json",
    ],
)
def test_a_marketplace_of_this_repository_leads_to_the_plugin(marketplace: str) -> None:
    (entry,) = read(ROOT / marketplace)["plugins"]
    source = entry["source"]
    place = ROOT / (source["path"] if isinstance(source, dict) else source)
    assert (entry["name"], place.resolve()) == ("gpudebug", PLUGIN.resolve())


def test_the_skill_is_found_by_its_words_and_names_what_exists() -> None:
    _, front, body = (PLUGIN / "skills/gpudebug/SKILL.md").read_text().split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["name"] == "gpudebug" and set(about) == {"name", "description"}
    assert len(about["description"]) <= 1024
    assert all(word in about["description"] for word in ("slow", "GPU", "training"))
    commands = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    assert set(re.findall(r"`gpudebug ([a-z]+)", body)) <= commands
    assert set(re.findall(r"[Cc]all `([a-z]+)`", body)) <= {tool.name for tool in TOOLS}
    assert len(body) < 2000
