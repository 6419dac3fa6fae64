"""Files of a campaign as texts, without secrets, for those who have no shell to read them in."""

from __future__ import annotations

from pathlib import Path

from gpudebug.edges import store
from gpudebug.engine.campaign.files import find, read_config


def progress_text(folder: Path) -> str:
    """Return the progress file. StoreError if it cannot be read, or a link leads out of the campaign."""
    workspace = find(folder)
    return _text(workspace, workspace.root / read_config(workspace).progress)


def evidence_text(folder: Path, run: str) -> str:
    """Return the evidence.json of a run by its name; StoreError as of `progress_text`."""
    workspace = find(folder)
    return _text(workspace, workspace.run(run).path / "evidence.json")


def _text(workspace: store.Workspace, path: Path) -> str:
    inside = store.resolve_inside(path, workspace.root)
    return workspace.scrub(store.read_file(inside).decode("utf-8", "replace"))
