"""What becomes of a hypothesis: its trial begins, its change is accepted, or it is to be tested again."""

from __future__ import annotations

from gpudebug.core.progress.entries import HypothesisEntry, ProgressFile
from gpudebug.core.progress.fields import EARLIER_RESULT, EARLIER_RUNS, Field, earlier, first_of
from gpudebug.core.progress.splice import (
    Edit,
    _apply,
    _line_like,
    _lines_after,
    _status_edit,
    _styled,
    _with_ending,
)
from gpudebug.core.words import Status

_LONGEST_KEY = 60


def set_testing(doc: ProgressFile, number: int, note: str, intervention: str | None = None) -> bytes:
    """Return the file with one hypothesis TESTING, `note` behind it; `intervention` replaces its change.

    An intervention that is missing is added in front of the status, or below the last known field.
    """
    entry = doc.hypothesis(number)
    edits = [_status_edit(doc, entry, Status.TESTING, note)]
    if intervention is not None:
        edits.append(_intervention_edit(doc, entry, intervention))
    return _apply(doc.data, edits)


def next_acceptance(doc: ProgressFile) -> int:
    """Return the number after the highest Accepted of the file; 1 if nothing is accepted."""
    return max((entry.accepted or 0 for entry in doc.hypotheses), default=0) + 1


def set_accepted(doc: ProgressFile, number: int, order: int) -> bytes:
    """Return the file with `Accepted: ORDER` below the status of one hypothesis, in the style of that line.

    Returns the file as it is where the entry is accepted already. ValueError for one without a status.
    """
    entry = doc.hypothesis(number)
    if entry.accepted is not None:
        return doc.data
    status = first_of(entry.fields, "status")
    if status is None:
        raise ValueError(f"hypothesis {number} has no status and cannot be accepted")
    text = _line_like(status, b"Accepted", str(order).encode())
    return _apply(doc.data, [_lines_after(doc, status.end, text)])


def reopen(doc: ProgressFile, number: int) -> bytes:
    """Return the file with one hypothesis UNTESTED again, its Result kept as `Earlier result (STATUS)`.

    The next one is `Earlier result 2 (STATUS)`, and so on. Of the Result only its key changes.
    """
    entry = doc.hypothesis(number)
    turn = max((earlier(field.name) for field in entry.fields), default=0) + 1
    nth = b" %d" % turn if turn > 1 else b""
    key = EARLIER_RESULT.capitalize().encode() + nth + b" (" + entry.status.value.encode() + b")"
    edits = [_status_edit(doc, entry, Status.UNTESTED, "")]
    results = [field for field in entry.fields if field.name == "result"]
    for field in results:
        edits.append(_renamed(field, key))
        edits += _kept_note(field, entry)
    runs = (field for field in entry.fields if field.name == "runs")
    edits += [_renamed(field, EARLIER_RUNS.capitalize().encode() + nth) for field in runs]
    status = first_of(entry.fields, "status")
    if not results and status is not None:
        text = _line_like(status, key, entry.status_note.encode())
        edits.append(_lines_after(doc, status.end, text.rstrip(b" \t\n") + b"\n"))
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


def _renamed(field: Field, word: bytes) -> Edit:
    """Another word for a field's key; what it says in parentheses stays if there is room."""
    assert field.key is not None
    at = field.first.offset + field.key.at
    written = field.first.text[field.key.at : field.key.at + field.key.length]
    rest = written.partition(b"(")
    tail = b" " + rest[1] + rest[2] if rest[1] and len(word) + len(written) < _LONGEST_KEY else b""
    return Edit(at, at + field.key.length, word + tail)


def _kept_note(field: Field, entry: HypothesisEntry) -> list[Edit]:
    """What stood behind the status moves to its Result, where that has no values on the status's level."""
    if not entry.status_note or field.flat or field.key is None:
        return []
    at = field.first.offset + field.key.value_at
    before = field.first.text[: field.key.value_at]
    lead = b"" if before.endswith((b" ", b"\t")) else b" "
    joint = b"; " if field.value else b""
    return [Edit(at, at, lead + entry.status_note.encode() + joint)]
