"""Where a campaign keeps what no clone, patch or tracked file can reach."""

from __future__ import annotations

import os
from pathlib import Path

from gpudebug.core.text.values import short_digest
from gpudebug.edges import git
from gpudebug.edges.store.private import PrivateFolder

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


def campaign_folder(root: Path, campaign: str, checkout: git.Checkout | git.Address) -> PrivateFolder:
    """Return the folder of the campaign at `root` in git's common folder; it may not exist yet."""
    return _below(CAMPAIGNS, root, campaign, checkout)


def said_folder(root: Path, campaign: str, checkout: git.Checkout | git.Address) -> PrivateFolder:
    """Return where it is kept who had nothing to propose; it may not exist yet.

    Apart from `campaign_folder`, which tells by being there that acceptances are recorded.
    """
    return _below(SAID, root, campaign, checkout)


def _below(kind: str, root: Path, campaign: str, checkout: git.Checkout | git.Address) -> PrivateFolder:
    name = refs(root, campaign, checkout).rpartition("/")[2]
    return PrivateFolder(checkout.common, (*checkout.private.relative_to(checkout.common).parts, kind, name))
