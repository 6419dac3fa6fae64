"""Every command of a session renews its claims to implement."""

from __future__ import annotations

from pathlib import Path

from gpudebug.edges import store
from gpudebug.engine.campaign.session import session_of


def renew(directory: Path) -> None:
    """Let the leases of this caller's session count from now; nothing for a person, or outside a campaign."""
    session = session_of()
    root = store.find_root(directory) if session is not None else None
    if root is None:
        return
    from gpudebug.edges.store import leases

    # Of every campaign of the folder: gpudebug.yaml names the present one, which may be broken.
    for folder in sorted({path.parent for path in store.Workspace(root).leases.glob("*/*.json")}):
        for number, lease in leases.read(folder).items():
            if lease.session == session:
                leases.renew(folder, number, lease.session, lease.since)
