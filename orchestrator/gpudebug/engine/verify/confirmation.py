"""A verdict on counts that a person confirmed: beside what gpudebug keeps of the person's word."""

from __future__ import annotations

from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Verdict
from gpudebug.edges import git
from gpudebug.engine.campaign.confirmation import because, records
from gpudebug.engine.campaign.files import Written
from gpudebug.engine.campaign.private import campaign_folder
from gpudebug.engine.verify.findings import Finding, Findings


def check_confirmed(written: Written, stored: Verdict, where: Finding, findings: Findings) -> None:
    """A person's word that gpudebug has not kept is a problem; in a clone it is unknown."""
    if stored.confirmed is None:
        return
    root, campaign = written.workspace.root, written.config.campaign
    try:
        place = git.whereabouts(root)
        kept = because(records(root, campaign, place), stored.hypothesis, stored.change_digest)
        here = campaign_folder(root, campaign, place).is_dir()
    except GpudebugError as e:
        findings.unchecked.append(f"hypothesis {stored.hypothesis}: {e.file} {e.message}")
        return
    if kept is None and not here:
        text = f"hypothesis {stored.hypothesis}: a person confirmed its counts in another checkout"
        findings.unchecked.append(f"{text}: {stored.confirmed}")
    elif kept != stored.confirmed:
        why = "no person confirmed this with `gpudebug reopen --because`" if kept is None else None
        findings.differs(where.but(field="confirmed", expected=kept, found=stored.confirmed, why=why))
