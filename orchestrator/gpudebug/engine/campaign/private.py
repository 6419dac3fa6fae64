"""Where a campaign keeps what no clone, patch or tracked file can reach."""

from __future__ import annotations

import os
from pathlib import Path

from gpudebug.core.text.values import short_digest
from gpudebug.edges import git

CAMPAIGNS = "campaigns"
SAID = "said"


def refs(root: Path, campaign: str, checkout: git.Checkout | git.Address) -> str:
    """Return where a campaign keeps its commits: its name, and where its folder lies in the repository.

    Linked worktrees share the references: each has a campaign of its own among them.
    """
    name = f"{campaign}-{_short(os.path.relpath(root, checkout.top))}"
    if checkout.common != checkout.top / ".git":
        name = f"{name}-{_short(str(checkout.top))}"
    return f"refs/gpudebug/{name}"


def _short(path: str) -> str:
    return short_digest(os.fsencode(path))[:8]


def campaign_folder(root: Path, campaign: str, checkout: git.Checkout | git.Address) -> Path:
    """Return the folder of the campaign at `root` in git's common folder; it may not exist yet."""
    return checkout.private / CAMPAIGNS / refs(root, campaign, checkout).rpartition("/")[2]


def said_folder(root: Path, campaign: str, checkout: git.Checkout | git.Address) -> Path:
    """Return where it is kept who had nothing to propose; it may not exist yet.

    Apart from `campaign_folder`, which tells by being there that acceptances are recorded.
    """
    return checkout.private / SAID / refs(root, campaign, checkout).rpartition("/")[2]
