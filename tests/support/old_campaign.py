"""Recorded campaigns of earlier versions, restored into a folder."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from tests.support.campaigns import Campaign

_DATA = Path(__file__).parents[1] / "data"
_RECORDED = _DATA / "campaign_0.1.0"
_KEPT = _DATA / "campaign_58a9b807"


class OldCampaign(Campaign):
    """A campaign as an earlier version left it."""

    @property
    def progress(self) -> Path:
        return self.folder / "progress" / "campaign.md"


def restore(folder: Path) -> OldCampaign:
    """The recorded repository in `folder`, without the settings that are gone, as gpudebug asks for it."""
    old = restore_as_it_was(folder)
    text = old.config.read_text(encoding="utf-8")
    old.config.write_text(text.replace("min_window: 5s, baseline_runs: 2, ", ""), encoding="utf-8")
    return old


def restore_as_it_was(folder: Path) -> OldCampaign:
    """The recorded repository in `folder`, with its runs, its history and its references."""
    return _restored(_RECORDED, folder)


def restore_kept(folder: Path) -> OldCampaign:
    """The campaign of 58a9b807, which is verified and continued as well."""
    return _restored(_KEPT, folder)


def _restored(recorded: Path, folder: Path) -> OldCampaign:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(recorded / "campaign.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return OldCampaign(folder)


def kept_answer(name: str) -> Any:
    """What 58a9b807 answered: `status` or `show_1`."""
    return json.loads((_KEPT / f"{name}.json").read_text(encoding="utf-8"))


def kept_patch() -> bytes:
    """The patch that 58a9b807 exported."""
    return (_KEPT / "exported.patch").read_bytes()


def answered(name: str) -> Any:
    """What 0.1.0 answered: `status` or `show_1`."""
    return json.loads((_RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def exported() -> bytes:
    """The patch that 0.1.0 exported."""
    return (_RECORDED / "exported.patch").read_bytes()
