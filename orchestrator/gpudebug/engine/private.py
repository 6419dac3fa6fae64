"""Where a campaign keeps what no clone, patch or tracked file can bring."""

from __future__ import annotations

import os
from pathlib import Path

from gpudebug.core.digests import short_digest
from gpudebug.edges import snapshot
from gpudebug.engine.places import refs

CAMPAIGNS = "campaigns"


def campaign_folder(root: Path, campaign: str, checkout: snapshot.Checkout | snapshot.Whereabouts) -> Path:
    """The folder of the campaign at `root` in git's common folder; it may not exist yet.

    Linked worktrees share that folder: each has a campaign of its own in it.
    """
    key = refs(root, campaign, checkout.top).rpartition("/")[2]
    if checkout.common != checkout.top / ".git":
        key = f"{key}-{short_digest(os.fsencode(checkout.top))[:8]}"
    return checkout.private / CAMPAIGNS / key
