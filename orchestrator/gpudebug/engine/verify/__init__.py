"""`gpudebug verify`: every number and verdict of a campaign derived again from its run folders.

Three answers: what is there follows from the evidence (`ok` true), something differs (false), or
nothing differs and part of the evidence is not here or not readable by this gpudebug (None).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpudebug.core.answers.verify import CheckedEvidence, VerifyAnswer
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.progress import BaselineEntry, HypothesisEntry, surplus
from gpudebug.core.progress.fields import is_known
from gpudebug.core.words import VERDICTS
from gpudebug.engine.campaign.files import ROLES, Written, read, stored_record
from gpudebug.engine.campaign.measured_code import look
from gpudebug.engine.campaign.pin_record import ComparedSettings
from gpudebug.engine.campaign.verdicts import REMEDY, brought, why_brought
from gpudebug.engine.verify import terms
from gpudebug.engine.verify.entries import (
    CheckedEntry,
    Former,
    check_baseline,
    check_change,
    check_former,
    check_result,
)
from gpudebug.engine.verify.findings import Findings
from gpudebug.engine.verify.measured import check_code
from gpudebug.engine.verify.runs import CheckedRuns
from gpudebug.engine.verify.unlisted import check_unlisted
from gpudebug.engine.verify.verdicts import check_verdict
from gpudebug.engine.verify.words import AcceptanceCheck, check_said


def verify(
    directory: Path,
    number: int | None = None,
    report: Callable[[str], None] = lambda text: None,
    also: Callable[[Written, Findings], None] = lambda written, findings: None,
) -> VerifyAnswer:
    """Check the whole campaign, or hypothesis `number`. Reads only.

    `report` hears what is being done; many long runs take a while to read. `also` checks more of a campaign.
    UsageError if there is no such hypothesis.
    """
    written = read(directory)
    entries = [h for h in written.document.hypotheses if number in (None, h.number)]
    if number is not None and not entries:
        have = ", ".join(str(h.number) for h in written.document.hypotheses) or "none"
        raise UsageError(
            f"there is no hypothesis {number}: there are {have}",
            file=str(written.progress_path),
            next="gpudebug status",
        )
    findings = Findings()
    pinned = terms.pinned_of(written)
    runs = CheckedRuns(written.workspace, findings, report)
    baselines = written.document.baselines if number is None else ()
    for baseline in baselines:
        _baseline(written, runs, baseline, findings, pinned)
    _in_turn(written, runs)
    accepted = AcceptanceCheck(written, findings)
    for entry in entries:
        _hypothesis(written, runs, entry, findings, pinned)
        accepted.check(entry)
    check_unlisted(written, entries, findings)
    check_code(written, runs.records, findings)
    if number is None:
        accepted.check_file()
        check_said(written, findings)
        also(written, findings)
    _name_brought(written, runs, findings)
    return VerifyAnswer(
        ok=findings.ok,
        campaign=written.config.campaign,
        root=str(written.workspace.root),
        problems=tuple(p.told(written.workspace.scrub) for p in findings.problems),
        absent=tuple(findings.absent),
        unchecked=tuple(findings.unchecked),
        notes=tuple(findings.notes),
        checked=CheckedEvidence(
            baselines=tuple(b.role for b in baselines if b.runs and not runs.all_absent),
            hypotheses=tuple(h.number for h in entries if _claims(h) and not runs.all_absent),
            runs=tuple(runs.names),
            files=runs.files,
        ),
    )


def _name_brought(written: Written, runs: CheckedRuns, findings: Findings) -> None:
    """Name what was checked and came with the repository: it fits together, but its author is unknown."""
    try:
        found = brought(written.workspace, look(written.workspace, written.progress_path)) & {*runs.names}
    except GpudebugError:
        return
    if found:
        findings.unchecked.append(f"{why_brought(found)}; if they are yours: {REMEDY}")


def _claims(entry: HypothesisEntry) -> bool:
    """Tell whether an entry has a verdict that names runs."""
    return entry.status in VERDICTS and bool(entry.runs)


def _baseline(
    written: Written,
    runs: CheckedRuns,
    entry: BaselineEntry,
    findings: Findings,
    pinned: ComparedSettings | None,
) -> None:
    shown = CheckedEntry(written, entry, findings)
    if entry.role not in ROLES or entry is not written.document.baseline(entry.role):
        if entry.runs or any(is_known(key) and surplus.measured(text) for key, text in entry.fields.items()):
            why = _SECOND if entry.role in ROLES else _NO_ROLE
            findings.differs(shown.at("baseline").but(line=entry.line, found=entry.title, why=why))
        return
    if not entry.runs:
        claimed = next((key for key in ("gpu util", "throughput", "metric") if entry.fields.get(key)), None)
        if claimed:
            shown.differs(claimed, found=entry.fields[claimed], why=_BY_HAND)
            return
    elif runs.all_absent:
        findings.is_absent(entry.runs, baseline=entry.role)
    elif (checked := runs.named(entry.runs, shown.at("runs"))) is not None:
        check_baseline(shown, entry, checked)
        terms.check_replayed(pinned, checked, shown.at("runs"), findings)
    shown.surplus(surplus.in_baseline(written.document, entry))


def _in_turn(written: Written, runs: CheckedRuns) -> None:
    """Check the runs without the accepted changes in turn with the baselines, on which their worth rests."""
    paired = {record.paired for record in runs.records if record.paired is not None}
    for name in written.workspace.run_names() if paired else ():
        if stored_record(written.workspace.run(name), "run.json").get("paired") in paired:
            runs.get(name, None)


def _hypothesis(
    written: Written,
    runs: CheckedRuns,
    entry: HypothesisEntry,
    findings: Findings,
    pinned: ComparedSettings | None,
) -> None:
    shown = CheckedEntry(written, entry, findings)
    if entry.status in VERDICTS and not entry.runs:
        shown.differs("status", found=entry.status.value, why=_BY_HAND)
        return
    if entry.status not in VERDICTS:
        if entry.runs:
            text = f"hypothesis {entry.number} is {entry.status}: its Result is of an earlier test"
            findings.notes.append(f"{text} and does not count")
            line = written.document.line_of(entry, "result")
            _former(shown, entry, runs, Former("result", line, None, entry.runs, entry.result))
    elif runs.all_absent:
        findings.is_absent(entry.runs, hypothesis=entry.number)
    else:
        _verdict(shown, entry, runs, pinned)
    for old in entry.earlier_results:
        _former(shown, entry, runs, Former("earlier result", *old))
    shown.surplus(surplus.in_hypothesis(written.document, entry))


def _verdict(
    shown: CheckedEntry, entry: HypothesisEntry, runs: CheckedRuns, pinned: ComparedSettings | None
) -> None:
    checked = runs.named(entry.runs, shown.at("runs"))
    at = shown.at("status").but(found=entry.status.value)
    verdict = check_verdict(shown, entry, runs, entry.runs, at)
    if verdict is not None:
        check_result(shown, entry, verdict)
        used = [run for one in verdict.runs if (run := runs.get(one.name, entry.number)) is not None]
        terms.check_terms(pinned, verdict, shown.findings)
        terms.check_replayed(pinned, used, shown.at("runs"), shown.findings)
        terms.check_one_pin(verdict, used, shown.at("runs"), shown.findings)
    if checked:
        check_change(shown, entry, checked)


def _former(shown: CheckedEntry, entry: HypothesisEntry, runs: CheckedRuns, former: Former) -> None:
    """A Result of an earlier test is its verdict's, too."""
    at = shown.at(former.field).but(line=former.line, found=former.status)
    if not former.runs:
        if former.status or any(surplus.measured(text) for text in former.values.values()):
            shown.findings.differs(at.but(why=_BY_HAND))
    elif runs.all_absent:
        shown.findings.is_absent(former.runs, hypothesis=entry.number)
    elif runs.named(former.runs, at) is not None:
        verdict = check_verdict(shown, entry, runs, former.runs, at)
        if verdict is not None:
            check_former(shown, former, verdict)


_BY_HAND = "UNVERIFIED: written by hand, without a run"
_NO_ROLE = "no baseline of gpudebug: it records those of workload and reference"
_SECOND = "a second baseline of this role: gpudebug keeps one"
