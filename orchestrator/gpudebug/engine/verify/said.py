"""Lines of who has nothing to propose, beside what `propose --none` recorded."""

from __future__ import annotations

from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import nothing
from gpudebug.edges import git
from gpudebug.engine.campaign.files import Written
from gpudebug.engine.campaign.private import campaign_folder
from gpudebug.engine.campaign.said import said_of
from gpudebug.engine.verify.findings import Finding, Findings

_WHY = "UNVERIFIED: no `propose --none` recorded it, and it ends nothing; delete the line"


def check_said(written: Written, findings: Findings) -> None:
    """A line without its record is a problem; in a clone, which has no records, it is noted."""
    rows = nothing.read(written.document)
    if not rows:
        return
    root, campaign = written.workspace.root, written.config.campaign
    try:
        where = git.whereabouts(root)
        kept = said_of(root, campaign, where)
        here = campaign_folder(root, campaign, where).is_dir() or kept.file.parent.is_dir()
    except GpudebugError as e:
        findings.unchecked.append(f"who has nothing to propose: {e.message}")
        return
    if not here:
        findings.notes.append("who has nothing to propose was said in another checkout: it ends nothing here")
        return
    if kept.problem is not None:
        why = f"{kept.problem}: no line of it counts; gpudebug propose --none rewrites it"
        findings.differs(Finding(kept.file.name, file=kept.file, why=why))
    for said in rows:
        if not kept.has(said):
            line = written.document.data.partition(said.line.encode())[0].count(b"\n") + 1
            where_ = Finding("nothing to propose", file=written.progress_path, line=line)
            findings.differs(where_.but(found=said.line, why=_WHY))
