"""Where a campaign keeps what no clone, patch or tracked file can bring."""

from __future__ import annotations

import os
from pathlib import Path

from gpudebug.core.digests import short_digest
from gpudebug.edges import snapshot

CAMPAIGNS = "campaigns"


def refs(root: Path, campaign: str, top: Path) -> str:
    """Where a campaign keeps its commits: its name, and where its folder lies in the repository."""
    place = os.fsencode(os.path.relpath(root, top))
    return f"refs/gpudebug/{campaign}-{short_digest(place)[:8]}"


def campaign_folder(root: Path, campaign: str, checkout: snapshot.Checkout | snapshot.Address) -> Path:
    """The folder of the campaign at `root` in git's common folder; it may not exist yet.

    Linked worktrees share that folder: each has a campaign of its own in it.
    """
    key = refs(root, campaign, checkout.top).rpartition("/")[2]
    if checkout.common != checkout.top / ".git":
        key = f"{key}-{short_digest(os.fsencode(checkout.top))[:8]}"
    return checkout.private / CAMPAIGNS / key
