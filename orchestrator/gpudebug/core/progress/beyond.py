"""What a reader of an entry takes for a figure, a status or an acceptance beside the lines that are checked.

gpudebug writes each key once. A second line of a known key, a figure outside of its place, or a remark
behind a verdict says more than the evidence does, whatever the evidence says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpudebug.core.progress.entries import BaselineEntry, HypothesisEntry, ProgressFile
from gpudebug.core.progress.fields import (
    EARLIER_RESULT,
    RESULT_KEYS,
    Field,
    earlier,
    is_known,
    is_result,
    key_on,
    read_fields,
    read_status,
    result_items,
    result_values,
)
from gpudebug.core.words import VERDICTS

_CLAIMS = frozenset({"status", "accepted", "result", "gpu util", *RESULT_KEYS})
_BASELINE = frozenset({"command", "gpu util", "metric", "throughput", "training", "loss", "notes", "runs"})
_MEASURED = re.compile(
    r"\d|\b(?:VALIDATED|REJECTED|INCONCLUSIVE|INVALID|SUCCESS|FAILED|CONVERGING|PLATEAU|DIVERGING)\b"
)
_UNIT = r"\d[\d.,]*\s?(?:%|pp\b|x\b|×|times\b|percent|points|[a-z]+/s\b)"
_WITH_UNIT = re.compile(_UNIT, re.IGNORECASE)
_FIGURE = re.compile(rf"[\W_]*(?:{_UNIT}|(?<=\+)\d)", re.IGNORECASE)
_RESULT_LIKE = re.compile(
    r"\b(?:speed|speedup|gain|util|gpu|improve|improved|improvement|faster|delta|results?|verdict|outcome|score"
    r"|throughput|measured|validated|rejected|verified)\b"
)
_HOPED = re.compile(r"\b(?:expected|estimated|predicted|hoped|target|goal|wanted|idea|prior)\b")
_LEAD = re.compile(
    rb"[ \t]*(?:>[ \t]*)*(?:#{1,6}[ \t]+)?(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?"
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)

TWICE = "a second line of this key: gpudebug writes one"
OUTSIDE = "a figure that no run of this entry stands for"
BESIDE = "own text with a figure inside of the Result: move it out of there"
REMARK = "a remark behind the status: gpudebug writes none"
UNJUDGED = "a figure of a hypothesis that has no verdict"
NO_ENTRY = "a figure outside of every entry"


class Beyond(NamedTuple):
    """A claim beside those that are checked: its key, its 1-based line and what it says."""

    key: str
    line: int
    text: str
    why: str


def measured(text: str) -> bool:
    """Whether a text says a number, a verdict or an outcome."""
    return _MEASURED.search(text) is not None


def in_hypothesis(document: ProgressFile, entry: HypothesisEntry) -> list[Beyond]:
    """What a hypothesis claims beside its checked lines, in the order of the file."""
    judged = entry.status in VERDICTS
    known: set[int] = set()
    found: list[Beyond] = []
    seen: set[tuple[str, int]] = set()
    for field in entry.fields:
        turn = (field.name, earlier(field.name))
        if is_result(field.name):
            found += _in_result(document, field, known, checked=judged or bool(entry.runs) or turn[1] > 0)
        elif field.name == "status" and turn not in seen:
            found += _behind_status(document, field, judged)
        elif not is_known(field.name):
            found += _own(document, field)
        checked = field.name not in RESULT_KEYS or field.name == "runs"
        if turn not in seen and checked:
            known.add(field.first.offset)
        elif turn in seen and field.name == "intervention":
            found.append(_at(document, field.first.offset, field.name, field.text(" "), TWICE))
        seen.add(turn)
    found += _lines(document, entry, known, OUTSIDE if judged or entry.runs else UNJUDGED)
    return _once(found)


def in_baseline(document: ProgressFile, entry: BaselineEntry) -> list[Beyond]:
    """What a baseline claims beside its checked lines, in the order of the file."""
    place = entry.place
    known: set[int] = set()
    found: list[Beyond] = []
    seen: set[str] = set()
    for field in read_fields(document.data, place.fields_start, place.fields_end, place.opaque):
        if field.name in _BASELINE and field.name not in seen:
            known.add(field.first.offset)
            seen.add(field.name)
        elif not is_known(field.name):
            found += _own(document, field)
    if measured(entry.title.lower().partition(entry.role)[2]):
        found.append(_at(document, entry.start, "title", entry.title, OUTSIDE))
    found += _lines(document, entry, known, OUTSIDE)
    return _once(found)


def _once(found: list[Beyond]) -> list[Beyond]:
    """The first claim of each line, in the order of the file."""
    lines: dict[int, Beyond] = {}
    for each in found:
        lines.setdefault(each.line, each)
    return [lines[line] for line in sorted(lines)]


def outside(document: ProgressFile) -> list[Beyond]:
    """Figures written as gpudebug writes them, but in no entry."""
    spans = sorted(
        [(b.start, b.end) for b in document.baselines] + [(h.start, h.end) for h in document.hypotheses]
    )
    found: list[Beyond] = []
    position = 0
    for start, end in [*spans, (len(document.data), len(document.data))]:
        for offset, key, text in _keyed(document, position, start):
            written = key.startswith("gpu util ") or key in ("improvement", "accepted", "status")
            if written and measured(text):
                found.append(_at(document, offset, key, text, NO_ENTRY))
        position = max(position, end)
    return found


def _in_result(document: ProgressFile, result: Field, known: set[int], *, checked: bool) -> Iterator[Beyond]:
    """Twins and own figures of a Result; the lines that are checked become `known`."""
    inline = result.value.decode("utf-8", "replace")
    values = result_values(result)
    items = result_items(result)
    seen = set(values) - {item.name for item in items} - {"summary"}
    if not checked and measured(inline):
        yield _at(document, result.first.offset, "result", inline, UNJUDGED)
    elif measured(values.get("summary", "")):
        yield _at(document, result.first.offset, "result", values["summary"], BESIDE)
    doubled = inline and any(len(re.findall(rf"(?i)\b{name}[*_`]*:", inline)) > 1 for name in RESULT_KEYS)
    if doubled or (seen and items and seen & {item.name for item in items}):
        yield _at(document, result.first.offset, "result", inline, TWICE)
    for item in items:
        if item.name in RESULT_KEYS:
            if item.name in seen:
                yield _at(document, item.start, item.name, item.text, TWICE)
            elif checked:
                seen.add(item.name)
                known.add(item.start)
        elif measured(item.text) or (item.name and measured(item.name.upper())):
            yield _at(document, item.start, item.name or "result", item.text, BESIDE)


def _behind_status(document: ProgressFile, status: Field, judged: bool) -> Iterator[Beyond]:
    reading = read_status(status)
    value = document.data[reading.start : reading.end].decode("utf-8", "replace")
    before = value.partition(reading.word)[0] if reading.word else ""
    rest = " ".join(line.text.decode("utf-8", "replace").strip() for line in status.rest if not line.hidden)
    if rest.startswith(value.strip()):
        rest = ""
    note = f"{reading.note} {rest}".strip()
    claim = _FIGURE.match(note) or _WITH_UNIT.search(note) or measured(re.sub(r"\d", "", note))
    if measured(before) or (judged and note) or (note and claim and not judged):
        yield _at(document, reading.start, "status", value.strip() or note, REMARK)


def _own(document: ProgressFile, field: Field) -> Iterator[Beyond]:
    """An own bullet that looks like a result: `Speedup: 9x`, `A100: +95pp`."""
    text = field.text(" ") if field.key else field.first.text.decode("utf-8", "replace").lstrip(" \t-*+")
    if _HOPED.search(field.name):
        return
    like = _RESULT_LIKE.search(field.name) is not None
    if (like and measured(text)) or _FIGURE.match(text) or re.match(r"[\W_]*(?:VALIDATED|REJECTED)\b", text):
        yield _at(document, field.first.offset, field.name or "text", text, OUTSIDE)


def _lines(
    document: ProgressFile, entry: HypothesisEntry | BaselineEntry, known: set[int], why: str
) -> Iterator[Beyond]:
    """Every other line of an entry, its own sections among them, that says a known key and a figure."""
    data = document.data[entry.place.fields_start : entry.end]
    if sum(1 for line in data.splitlines() if line.strip()) == len(known):
        return  # As gpudebug wrote it: each line is one that is checked.
    for offset, key, text in _keyed(document, entry.place.fields_start, entry.end):
        if offset not in known and measured(text):
            twin = key in ("status", "accepted", "result")
            yield _at(document, offset, key, text, TWICE if twin else why)


def _keyed(document: ProgressFile, start: int, end: int) -> Iterator[tuple[int, str, str]]:
    """(offset, key, value) of the lines with a key that claims; what a comment hides is not shown."""
    data = document.data[start:end]
    if b"<!--" in data:
        data = _COMMENT.sub(lambda match: re.sub(rb"[^\n]", b" ", match[0]), data)
    offset = start
    for raw in data.splitlines(keepends=True):
        text = raw.rstrip()
        found = _row(text) if text.lstrip()[:1] == b"|" else key_on(text, _lead(text))
        if found is not None and (found[0] in _CLAIMS or earlier(found[0])):
            yield offset, found[0], found[1]
        offset += len(raw)


def _lead(text: bytes) -> int:
    match = _LEAD.match(text)
    return match.end() if match else 0


def _row(text: bytes) -> tuple[str, str] | None:
    """A table's row as key and value."""
    first, _, rest = text.strip().strip(b"|").partition(b"|")
    found = key_on(first.strip() + b": " + rest.replace(b"|", b" "), 0)
    return found if rest else None


def _at(document: ProgressFile, offset: int, key: str, text: str, why: str) -> Beyond:
    line = len((document.data[:offset] + b"x").splitlines())
    name = EARLIER_RESULT if earlier(key) else key
    return Beyond(name, line, text, why)
