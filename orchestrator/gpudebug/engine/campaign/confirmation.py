"""What a person confirmed of a hypothesis's counts, kept where no clone, patch or tracked file reaches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

from gpudebug.core.errors import StoreError
from gpudebug.edges import git
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.private import campaign_folder

FILE = "confirmed.json"
LONGEST = 300
_MOST = 1000

Where: TypeAlias = "git.Checkout | git.Address"


def confirmed_of(setup: Setup, number: int, digest: str | None) -> str | None:
    """Return why a person takes the counts of this hypothesis, with this very change, for explained."""
    known = records(setup.workspace.root, setup.config.campaign, setup.checkout)
    return next(reversed(confirmations(known, number, digest)), None)


def confirmations(known: list[dict[str, object]], number: int, digest: str | None) -> list[str]:
    """Return what was confirmed of a hypothesis with this change, oldest first."""
    of = (number, digest)
    return [str(r["because"]) for r in known if (r.get("hypothesis"), r.get("change_digest")) == of]


def confirm(setup: Setup, number: int, verdict: Mapping[str, Any], text: str, counts: str) -> None:
    """Keep that a person explains `counts` of the change that the verdict is on by `text`."""
    root, campaign, checkout = setup.workspace.root, setup.config.campaign, setup.checkout
    record = {
        "hypothesis": number,
        "change_digest": verdict.get("change_digest"),
        "because": text,
        "counts": counts,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    known = [*records(root, campaign, checkout), record][-_MOST:]
    data = json.dumps(known, indent=1).encode() + b"\n"
    campaign_folder(root, campaign, checkout).write(FILE, data)


def records(root: Path, campaign: str, where: Where) -> list[dict[str, object]]:
    """Return all confirmations of a campaign, oldest first."""
    kept = campaign_folder(root, campaign, where)
    data = kept.read(FILE)
    if data is None:
        return []
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(r, dict) and "because" in r for r in found):
        path = str(kept.path / FILE)
        raise StoreError("is not what gpudebug writes", file=path, next="move it away, and confirm again")
    return found
