"""Where a campaign keeps what no clone, patch or tracked file can reach."""

from __future__ import annotations

from pathlib import Path

from gpudebug.edges import git
from gpudebug.edges.store.private import PrivateFolder
from gpudebug.edges.store.root import place_name

CAMPAIGNS = "campaigns"
SAID = "said"


def refs(root: Path, campaign: str, checkout: git.Checkout | git.Address) -> str:
    """Return where a campaign keeps its commits: its name, and where its folder lies in the repository.

    Linked worktrees share the references: each has a campaign of its own among them.
    """
    return f"refs/gpudebug/{campaign}-{place_name(root, checkout.top, checkout.common)}"


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
