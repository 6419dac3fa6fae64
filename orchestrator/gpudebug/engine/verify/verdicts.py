"""A verdict.json: judged again from the run folders that it names, by the terms that it keeps."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.errors import GpudebugError, StoreError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.records import UsedRun, Verdict
from gpudebug.core.redaction import alike
from gpudebug.core.verdict.gates import RULE
from gpudebug.edges import store
from gpudebug.engine.campaign.files import Written, record_of
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.trial.judge import CRASH, asked, judge_runs
from gpudebug.engine.verify.entries import CheckedEntry
from gpudebug.engine.verify.findings import Finding, Findings
from gpudebug.engine.verify.runs import Checked, CheckedRuns, is_older, report, short_digest
from gpudebug.engine.verify.words import check_confirmed

_NAME = "verdict.json"
_DERIVED = set(Verdict.model_fields) - {"format", "rule", "runs"}


def check_verdict(
    shown: CheckedEntry, entry: HypothesisEntry, runs: CheckedRuns, names: Sequence[str], at: Finding
) -> Verdict | None:
    """Return the verdict that an entry must show: as it follows now, else as it is stored. None without one.

    An older version's must have the same figures, in its own words; one of an older rule is shown as it is.
    `names` are the runs that a Result of it names, `at` is the problem if none of them holds a verdict.
    """
    findings, workspace = shown.findings, shown.written.workspace
    folder = next((f for f in map(workspace.run, reversed(names)) if f.has(_NAME)), None)
    if folder is None:
        findings.differs(at.but(why="UNVERIFIED: none of its runs holds a verdict"))
        return None
    where = Finding(_NAME, file=folder.path / _NAME, hypothesis=entry.number, run=folder.name)
    stored = _stored(folder, where, findings)
    if stored is None:
        return None
    if stored.hypothesis != entry.number:
        why = "the verdict is on another hypothesis"
        findings.differs(
            where.but(field="hypothesis", expected=entry.number, found=stored.hypothesis, why=why)
        )
        return None
    _say_terms(shown.written, stored, findings)
    check_confirmed(shown.written, stored, where, findings)
    used = _used(runs, stored, where, findings)
    again = _again(stored, *used, where, findings) if used else None
    if again is None:
        return stored
    older = used is not None and is_older(used[1])
    expected = again.model_dump(mode="json", include=_DERIVED)
    report(findings, where, folder, _NAME, list(alike.differences(expected, folder.read(_NAME), older=older)))
    return stored if older else again


def _stored(folder: store.RunFolder, where: Finding, findings: Findings) -> Verdict | None:
    try:
        return Verdict.model_validate(record_of(folder, _NAME))
    except (store.OtherFormat, store.NotPermitted) as e:
        findings.unchecked.append(f"hypothesis {where.hypothesis}: {e.file} {e.message}")
    except GpudebugError as e:
        findings.differs(where.but(why=e.message))
    except ValueError:
        findings.differs(where.but(why="is not what gpudebug writes"))
    return None


def _used(
    runs: CheckedRuns, stored: Verdict, where: Finding, findings: Findings
) -> tuple[list[MeasuredRun], list[MeasuredRun], list[MeasuredRun]] | None:
    """Return the runs of baseline and trial that the verdict used, and earlier crashes of the change; None if
    it cannot be judged from them."""
    parts: dict[str, list[MeasuredRun]] = {"baseline": [], "trial": [], CRASH: []}
    whole = True
    for used in stored.runs:
        checked = runs.get(used.name, where.hypothesis)
        if checked is None:
            why = "a run that the verdict used is not here"
            findings.differs(where.but(field="runs", found=f"runs/{used.name}", why=why))
        else:
            _check_digest(used, checked, where, findings)
        if checked is None or checked.measured is None or used.part not in parts:
            whole = False
        else:
            parts[used.part].append(checked.measured)
    judged = parts["baseline"] and parts["trial"]
    if whole and not judged:
        why = "it names no run of the baseline, or none of the trial"
        findings.differs(where.but(field="runs", why=why))
    return (parts["baseline"], parts["trial"], parts[CRASH]) if whole and judged else None


def _check_digest(used: UsedRun, checked: Checked, where: Finding, findings: Findings) -> None:
    """What is altered since its run was sealed is a problem already."""
    path = checked.folder.path / "evidence.json"
    if "evidence.json" in checked.altered:
        return
    try:
        found = store.file_digest(path) if path.is_file() else None
    except StoreError:  # That it is unreadable is reported of its run.
        return
    if found not in (None, used.evidence_sha256):
        why = "the verdict was reached by other evidence of this run"
        findings.differs(
            where.but(
                field="evidence.json",
                expected=short_digest(used.evidence_sha256),
                found=short_digest(found),
                file=path,
                run=used.name,
                why=why,
            )
        )


def _again(
    stored: Verdict,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    crashes: Sequence[MeasuredRun],
    where: Finding,
    findings: Findings,
) -> Verdict | None:
    """Return the verdict as this gpudebug reaches it."""
    about = f"hypothesis {stored.hypothesis}"
    if stored.terms is None:
        findings.unchecked.append(f"{about}: its verdict keeps no terms to judge it by again")
        return None
    if stored.rule != RULE:
        findings.unchecked.append(
            f"{about}, runs/{where.run}: recorded by an older rule ({stored.rule}; this gpudebug has rule "
            f"{RULE}), not derived again"
        )
        return None
    try:
        return judge_runs(
            stored.hypothesis,
            stored.terms,
            before,
            after,
            stored.remarks,
            confirmed=stored.confirmed,
            more=stored.more,
            crashes=crashes,
        )
    except GpudebugError as e:
        findings.differs(where.but(why=f"cannot be judged again: {e.message}"))
    except (ValueError, ArithmeticError):
        findings.differs(where.but(field="terms", why="nothing can be judged by these"))
    return None


def _say_terms(written: Written, stored: Verdict, findings: Findings) -> None:
    """Terms other than those of gpudebug.yaml are allowed, and worth knowing."""
    if stored.terms is None:
        return
    now, then = (
        t.model_dump(mode="json", exclude={"work", "learning"}) for t in (asked(written.config), stored.terms)
    )
    other = [f"{d.field} {d.found}, now {d.expected}" for d in alike.differences(now, then)]
    if other:
        findings.notes.append(
            f"hypothesis {stored.hypothesis} was judged by other terms than gpudebug.yaml has now: "
            f"{'; '.join(other)}"
        )
