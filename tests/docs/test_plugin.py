"""The plugin that agents install: manifests of one table, a skill that names what exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.support.manifests import ROOT, manifests

import gpudebug
from gpudebug.cli import app
from gpudebug.mcp.tools import TOOLS

PLUGIN = Path(gpudebug.__file__).parent / "plugin"


@pytest.mark.parametrize(("path", "text"), [*manifests()], ids=lambda value: getattr(value, "name", ""))
def test_a_manifest_is_what_the_table_says(path: Path, text: str) -> None:
    assert path.read_text() == text, "python -m tests.support.manifests"
    content = json.loads(text)
    for entry in content.get("plugins", []):
        source = entry["source"]
        assert (ROOT / (source["path"] if isinstance(source, dict) else source)).resolve() == PLUGIN.resolve()
    if "skills" in content:
        assert (PLUGIN / content["skills"] / "gpudebug" / "SKILL.md").is_file()


def test_the_manifest_of_the_open_standard_has_its_keys_alone() -> None:
    """Agent Plugins 1.0.0, 5.2; a server would start in the plugin's folder (7.2.1), so there is none."""
    manifest = json.loads((PLUGIN / "plugin.json").read_text())
    assert set(manifest) <= {"$schema", "name", "version", "description", "author", "license", "keywords"}
    assert not (PLUGIN / "mcp.json").exists()


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
