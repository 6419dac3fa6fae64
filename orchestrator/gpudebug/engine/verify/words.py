"""What gpudebug keeps of people's words beside the file: acceptances, confirmed counts, `propose --none`."""

from __future__ import annotations

from gpudebug.core.errors import GitError, GpudebugError, StoreError
from gpudebug.core.progress import HypothesisEntry, nothing
from gpudebug.core.records import Verdict
from gpudebug.edges import git, store
from gpudebug.engine.campaign.accepted import Acceptances, acceptances_of
from gpudebug.engine.campaign.confirmation import confirmations, records
from gpudebug.engine.campaign.files import Written
from gpudebug.engine.campaign.private import campaign_folder
from gpudebug.engine.campaign.said import said_of
from gpudebug.engine.verify.entries import CheckedEntry
from gpudebug.engine.verify.findings import Finding, Findings

_AGAIN = "put it back, or a person's `gpudebug next` takes the change back"
_GONE = f"it was accepted, and its entry is gone: {_AGAIN}"
_OTHER = f"it was accepted, and its entry is not what was accepted: {_AGAIN}"
_NO = frozenset({"", "-", "–", "—", "no", "none", "not yet", "pending", "n/a", "tbd"})
_UNSAID = "UNVERIFIED: no `propose --none` recorded it, and it ends nothing; delete the line"


class AcceptanceCheck:
    """The acceptances of a campaign under check. One without a record, of 0.1.0, has nothing to compare."""

    def __init__(self, written: Written, findings: Findings) -> None:
        self._written = written
        self._findings = findings
        self._kept = _kept(written)

    def check(self, entry: HypothesisEntry) -> None:
        """An entry's Accepted line beside the record."""
        shown = CheckedEntry(self._written, entry, self._findings)
        if entry.accepted is None:
            text = next((f.text(" ").strip("*_` ") for f in entry.fields if f.name == "accepted"), "")
            if text.lower() not in _NO:
                shown.differs("accepted", found=text, why="not what gpudebug writes: it accepts nothing")
        if self._kept is None:
            return
        kept = self._kept.of(entry)
        if entry.accepted is None:
            if kept is None and entry.number in (self._kept.entries or {}):
                shown.differs("status", found=entry.status.value, why=_OTHER)
            elif kept is not None:
                self._findings.notes.append(
                    f"hypothesis {entry.number} was accepted and its Accepted line is gone: a person's "
                    f"`gpudebug next` reverts the change, `gpudebug accept {entry.number}` keeps it"
                )
        elif self._kept.by_hand(entry):
            why = f"UNVERIFIED: no accept recorded it, and it changes nothing; gpudebug accept {entry.number}"
            shown.differs("accepted", found=str(entry.accepted), why=why)
        elif kept is not None:
            if kept.order != entry.accepted:
                shown.differs("accepted", expected=str(kept.order), found=str(entry.accepted))
            self._check_verdict(shown, kept.run, kept.verdict)

    def check_file(self) -> None:
        """The record itself."""
        if self._kept is not None and self._kept.problem is not None:
            why = f"{self._kept.problem}: nothing counts as accepted; gpudebug accept H rewrites it"
            self._findings.differs(Finding(self._kept.file.name, file=self._kept.file, why=why))
        there = {h.number for h in self._written.document.hypotheses}
        for number in sorted({*((self._kept and self._kept.entries) or ())} - there):
            where = Finding("accepted", file=self._written.progress_path, hypothesis=number)
            self._findings.differs(where.but(expected=f"### Hypothesis {number}", why=_GONE))

    def _check_verdict(self, shown: CheckedEntry, run: str, expected: str) -> None:
        path = self._written.workspace.run(run).path / "verdict.json"
        try:
            found = store.file_digest(path)
        except StoreError:  # A run that is missing or closed is named with its entry.
            return
        if found != expected:
            why = f"runs/{run} holds another verdict than the one that was accepted"
            shown.differs("accepted", found=f"runs/{run}", why=why)


def _kept(written: Written) -> Acceptances | None:
    """Return what was recorded; None in a campaign of 0.1.0, and outside of git."""
    try:
        where = git.whereabouts(written.workspace.root)
        found = acceptances_of(written.workspace.root, written.config.campaign, where)
    except (GitError, StoreError):
        return None
    return found if found.entries is not None else None


def check_confirmed(written: Written, stored: Verdict, where: Finding, findings: Findings) -> None:
    """A person's word that gpudebug has not kept is a problem; in a clone it is unknown."""
    if stored.confirmed is None:
        return
    root, campaign = written.workspace.root, written.config.campaign
    try:
        place = git.whereabouts(root)
        kept = confirmations(records(root, campaign, place), stored.hypothesis, stored.change_digest)
        here = campaign_folder(root, campaign, place).path.is_dir()
    except GpudebugError as e:
        findings.unchecked.append(f"hypothesis {stored.hypothesis}: {e.file} {e.message}")
        return
    if not kept and not here:
        text = f"hypothesis {stored.hypothesis}: a person confirmed its counts in another checkout"
        findings.unchecked.append(f"{text}: {stored.confirmed}")
    elif stored.confirmed not in kept:
        why = "no person confirmed this with `gpudebug reopen --because`" if not kept else None
        newest = kept[-1] if kept else None
        findings.differs(where.but(field="confirmed", expected=newest, found=stored.confirmed, why=why))


def check_said(written: Written, findings: Findings) -> None:
    """A line without its record is a problem; in a clone, which has no records, it is noted."""
    rows = nothing.read(written.document)
    if not rows:
        return
    root, campaign = written.workspace.root, written.config.campaign
    try:
        where = git.whereabouts(root)
        kept = said_of(root, campaign, where)
        here = campaign_folder(root, campaign, where).path.is_dir() or kept.file.parent.is_dir()
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
            findings.differs(where_.but(found=said.line, why=_UNSAID))
