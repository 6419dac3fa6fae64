"""The recorded campaign of gpudebug 0.1.0, restored into a folder."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from tests.support.campaigns import Campaign

_RECORDED = Path(__file__).parents[1] / "data" / "campaign_0.1.0"


class OldCampaign(Campaign):
    """A campaign as 0.1.0 left it."""

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
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(_RECORDED / "campaign.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return OldCampaign(folder)


def answered(name: str) -> Any:
    """What 0.1.0 answered: `status` or `show_1`."""
    return json.loads((_RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def exported() -> bytes:
    """The patch that 0.1.0 exported."""
    return (_RECORDED / "exported.patch").read_bytes()
