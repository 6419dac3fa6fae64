"""The progress file's values beside what follows from the runs, field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core import progress
from gpudebug.core.progress import BaselineEntry, HypothesisEntry
from gpudebug.core.progress.blocks import plain
from gpudebug.core.progress.surplus import Surplus, figured, measured
from gpudebug.core.records import Verdict
from gpudebug.core.redaction.alike import alike, reworded
from gpudebug.core.statistics.numbers import UNKNOWN
from gpudebug.core.statistics.units import JUDGED, learning_set_in, set_in
from gpudebug.core.verdict.work import choose_learning
from gpudebug.core.words import AS_PLANNED, Outcome
from gpudebug.edges import templates
from gpudebug.engine.campaign.baselines import metric_of
from gpudebug.engine.campaign.files import Written
from gpudebug.engine.campaign.measured_code import tested_change
from gpudebug.engine.trial.baseline_entry import entry_fields
from gpudebug.engine.trial.result import result_block, runs_of
from gpudebug.engine.verify.findings import Finding, Findings
from gpudebug.engine.verify.runs import Checked, is_older


class Former(NamedTuple):
    """A Result that a later test took the place of, or that a person's UNTESTED left behind."""

    field: str
    line: int
    status: str | None
    runs: tuple[str, ...]
    values: Mapping[str, str]


class CheckedEntry:
    """One entry of the progress file under check."""

    def __init__(self, written: Written, entry: BaselineEntry | HypothesisEntry, findings: Findings) -> None:
        self.written = written
        self.entry = entry
        self.findings = findings

    def at(self, field: str) -> Finding:
        """Return a problem in this entry's field, without its values."""
        entry = self.entry
        line = self.written.document.line_of(entry, field)
        hypothesis = entry.number if isinstance(entry, HypothesisEntry) else None
        role = entry.role if isinstance(entry, BaselineEntry) else None
        path = self.written.progress_path
        return Finding(field, file=path, line=line, hypothesis=hypothesis, baseline=role)

    def surplus(self, claims: Sequence[Surplus]) -> None:
        """Report what gpudebug did not write in a line of its own."""
        for claim in claims:
            self.findings.differs(
                self.at(claim.key).but(found=claim.text or claim.key, line=claim.line, why=claim.why)
            )

    def differs(self, field: str, **fields: Any) -> None:
        self.findings.differs(self.at(field).but(**fields))

    def compare(self, expected: Mapping[str, str], found: Mapping[str, str], *, older: bool = False) -> None:
        """Compare each value of `expected`, and every figure of a checked key that `expected` lacks.

        An entry of an `older` version may give another reason why a value is unknown.
        """
        for field, value in expected.items():
            text = found.get(field)
            if text is None or not (_says(field, value, text) or (older and _same_unknown(value, text))):
                self.differs(field, expected=value, found=text)
        for field in sorted(_CHECKED & found.keys() - expected.keys()):
            if measured(found[field]):
                self.differs(field, found=found[field], why=_NONE_WRITTEN)


_CHECKED = frozenset({"gpu util", "metric", "work", "throughput", "training", "loss"})
_NONE_WRITTEN = "a figure that gpudebug does not write here"


def _says(field: str, expected: str, found: str) -> bool:
    """Tell whether it says what follows. A person may add words to the notes, and no figures."""
    expected, found = " ".join(expected.split()), " ".join(found.split())
    # Notes are kept as they are written: a formatter may have put escapes into them.
    for text in (found, plain(found)) if field == "notes" else (found,):
        if field == "notes" and text.startswith(expected):
            return not figured(text[len(expected) :])
        if alike(expected, text):
            return True  # Older entries say no more than the figure.
    return False


def _same_unknown(expected: str, found: str) -> bool:
    unknown = all(text.partition(" ")[0] == UNKNOWN for text in (expected, found))
    return unknown and reworded(expected, found)


def check_baseline(shown: CheckedEntry, entry: BaselineEntry, runs: Sequence[Checked]) -> None:
    """Each figure of a baseline's entry beside that of the entry which would be written now."""
    measured = [run.measured for run in runs if run.measured is not None]
    if len(measured) < len(runs):
        return
    for m in measured:
        _check_part(shown, f"baseline-{entry.role}", m.record.role, m.record.outcome, m.folder.name)
        if (m.record.reason or "").startswith("imported from"):
            shown.findings.notes.append(
                f"run {m.folder.name} is {m.record.reason}: its command, code and device are "
                "the importer's claim"
            )
    unit = set_in(entry.fields.get("work", ""))
    # Older entries have the trend of the log's loss, whatever learning was judged by.
    said = entry.fields.get("loss", "").partition(JUDGED)[2]
    learning = choose_learning([m.evidence for m in measured], learning_set_in(said)) if said else None
    fields = entry_fields(entry.role, measured, metric_of(entry), unit, learning)
    text = templates.render("baseline.md.j2", **fields)
    expected = progress.parse(f"## Baselines\n\n{text}".encode("utf-8", "replace"), "").baselines[0]
    values = {k: v for k, v in expected.fields.items() if k != "runs"}
    shown.compare(values, entry.fields, older=is_older(measured))


def _check_part(shown: CheckedEntry, wanted: str, role: str, outcome: Outcome | None, name: str) -> None:
    if role != wanted or outcome not in AS_PLANNED:
        found = f"runs/{name}: {role}, {outcome or 'unfinished'}"
        shown.differs("runs", expected=f"completed runs of {wanted}", found=found, run=name)


def check_result(shown: CheckedEntry, entry: HypothesisEntry, verdict: Verdict) -> None:
    """Status and each value of a Result beside those of the Result which would be written now."""
    if entry.status is not verdict.status:
        shown.differs("status", expected=verdict.status.value, found=entry.status.value)
    runs, expected = _result_of(shown, verdict)
    if list(entry.runs) != runs:
        shown.differs("runs", expected=", ".join(runs), found=", ".join(entry.runs))
    shown.compare(expected, entry.result)


def _result_of(shown: CheckedEntry, verdict: Verdict) -> tuple[list[str], dict[str, str]]:
    """Return the runs and values of the Result that would be written of a verdict now."""
    recorded = verdict.model_dump(mode="json")
    runs = runs_of(recorded)
    block = result_block(recorded, runs, shown.written.workspace.scrub)
    text = f"### Hypothesis {verdict.hypothesis}: x\n{block}".encode("utf-8", "replace")
    expected = progress.parse(text, "").hypotheses[0].result
    return runs, {k: v for k, v in expected.items() if k != "runs"}


def check_former(shown: CheckedEntry, former: Former, verdict: Verdict) -> None:
    """What is left of an earlier test beside its verdict: its status, its runs, each value that it shows."""
    runs, expected = _result_of(shown, verdict)
    at = shown.at(former.field).but(line=former.line)
    if former.status is not None and former.status != verdict.status.value:
        shown.findings.differs(at.but(expected=verdict.status.value, found=former.status))
    if list(former.runs) != runs:
        shown.findings.differs(at.but(expected=", ".join(runs), found=", ".join(former.runs)))
    for key, found in former.values.items():
        value = expected.get(key)
        if key not in ("runs", "summary") and (value is None or not _says(key, value, found)):
            shown.findings.differs(at.but(expected=value, found=f"{key}: {found}"))


def check_change(shown: CheckedEntry, entry: HypothesisEntry, runs: Sequence[Checked]) -> None:
    """The entry's change is the one that its runs tested, and they are this hypothesis's runs.

    The last one counts: in an earlier one the code may have crashed before it was mended.
    """
    records = [run.measured.record for run in runs if run.measured is not None]
    trial = next((r for r in reversed(records) if not r.role.startswith("baseline-")), None)
    if trial is None:
        return
    if trial.hypothesis != entry.number:
        found = f"runs/{trial.name}, of hypothesis {trial.hypothesis}"
        shown.differs("runs", expected=f"runs of hypothesis {entry.number}", found=found, run=trial.name)
    if tested_change(shown.written.workspace, entry.intervention) != trial.change_digest:
        shown.differs("intervention", expected=trial.change, found=entry.intervention)
