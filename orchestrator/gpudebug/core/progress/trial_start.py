"""The splice that begins a trial: TESTING with its claim, and the change where it was written just now."""

from __future__ import annotations

from gpudebug.core.progress.entries import HypothesisEntry, ProgressFile
from gpudebug.core.progress.fields import Field, first_of
from gpudebug.core.progress.splice import Edit, _apply, _lines_after, _status_edit, _styled, _with_ending
from gpudebug.core.words import Status


def set_testing(doc: ProgressFile, number: int, note: str, intervention: str | None = None) -> bytes:
    """Return the file with one hypothesis TESTING, `note` behind it; `intervention` replaces its change.

    An intervention that is missing is added in front of the status, or below the last known field.
    """
    entry = doc.hypothesis(number)
    edits = [_status_edit(doc, entry, Status.TESTING, note)]
    if intervention is not None:
        edits.append(_intervention_edit(doc, entry, intervention))
    return _apply(doc.data, edits)


def _intervention_edit(doc: ProgressFile, entry: HypothesisEntry, text: str) -> Edit:
    field = first_of(entry.fields, "intervention")
    if field is not None:
        return _replaced(doc, field, text)
    line = _styled(entry.fields, f"- **Intervention**: {text}\n".encode())
    status = first_of(entry.fields, "status")
    if status is not None:
        at = status.first.offset
        return Edit(at, at, _with_ending(doc, at, line))
    known = [f for f in entry.fields if f.name in ("description", "test method")]
    return _lines_after(doc, known[-1].end if known else entry.place.fields_start, line)


def _replaced(doc: ProgressFile, field: Field, text: str) -> Edit:
    """Return the value of a field, in the style of its key; lines that continued it go."""
    key = field.key
    assert key is not None  # a field without a key has no name
    start = field.first.offset + key.value_at
    last = doc.data[: field.end]
    end = len(last.rstrip(b"\r\n"))
    lead = b"" if doc.data[start - 1 : start] in (b" ", b"\t") else b" "
    return Edit(start, max(start, end), lead + text.encode() + key.open)
