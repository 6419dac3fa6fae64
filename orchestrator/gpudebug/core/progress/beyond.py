"""What a reader of an entry takes for a figure, a status or an acceptance beside the lines that are checked.

gpudebug writes each key once. A second line of a known key, a figure outside of its place, or a remark
behind a verdict says more than the evidence does, whatever the evidence says.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from gpudebug.core.progress import shapes
from gpudebug.core.progress.entries import BaselineEntry, HypothesisEntry, ProgressFile
from gpudebug.core.progress.fields import (
    EARLIER_RESULT,
    RESULT_KEYS,
    Field,
    ResultItem,
    earlier,
    is_known,
    is_result,
    read_fields,
    read_status,
    result_items,
    result_values,
)
from gpudebug.core.progress.shapes import fold, measured
from gpudebug.core.progress.shown import ShownLine, shown_lines
from gpudebug.core.words import VERDICTS

_CLAIMS = frozenset({"status", "accepted", "accepted by", "result", "gpu util", *RESULT_KEYS})
_BASELINE = frozenset({"command", "gpu util", "metric", "work", "throughput", "training", "loss"})
_FREE = ("description", "test method")
_COLUMN = re.compile(r"\b(?:before|after|delta|gpu|util\w*|improvement|throughput|speed-?up|result)\b", re.I)
_PSEUDO = re.compile(r"\W*(?:hypothesis\W*(?:\d|[IVX]+\b)|h\d+\b|(?:\w+\W+)?baseline\b)", re.IGNORECASE)
_SEE = re.compile(r"\W*\((?:see|cf)\b[^()]*\)\W*", re.IGNORECASE)
_TARGET = re.compile(r"\A[*_`\s]*\(\S*\)")

TWICE = "a second line of this key: gpudebug writes one"
OUTSIDE = "a figure that no run of this entry supports"
BESIDE = "own text with a figure inside of the Result: move it out of there"
REMARK = "a remark behind the status: gpudebug writes none"
UNJUDGED = "a figure of a hypothesis that has no verdict"
NO_ENTRY = "a figure outside of every entry"
TITLE = "a verdict or a figure in a title: gpudebug writes none there"
NAMES = "more than the names of runs"


class Beyond(NamedTuple):
    """A claim beside those that are checked: its key, its 1-based line and what it says."""

    key: str
    line: int
    text: str
    why: str


class _EntryClaims:
    """What is found in one entry. `checked` are offsets of lines that something else looks at, `free` those
    of a person's own text, in which only what is written as gpudebug writes it claims."""

    def __init__(self) -> None:
        self.found: list[Beyond] = []
        self.checked: set[int] = set()
        self.free: set[int] = set()

    def whole(self, field: Field) -> None:
        self.checked.update(line.offset for line in (field.first, *field.rest))


def in_hypothesis(document: ProgressFile, entry: HypothesisEntry) -> list[Beyond]:
    """Return what a hypothesis claims beside its checked lines, in the order of the file."""
    judged = entry.status in VERDICTS
    bare = not judged and not entry.runs
    read = _EntryClaims()
    seen: set[tuple[str, int]] = set()
    if shapes.titled(fold(entry.title)):
        read.found.append(_at(document, entry.start, "title", entry.title, TITLE))
    for field in entry.fields:
        turn = (field.name, earlier(field.name))
        if is_result(field.name):
            _in_result(document, field, read, checked=not bare or turn[1] > 0, first=turn not in seen)
        elif turn in seen and field.name == "intervention":
            read.found.append(_at(document, field.first.offset, field.name, field.text(" "), TWICE))
        elif field.name in _FREE:
            _free(field, read)
        elif field.name == "runs" or turn[1]:
            _runs(document, field, read, first=turn not in seen)
        elif not is_known(field.name):
            _own(document, field, read, bare=bare)
        elif turn not in seen and field.name not in RESULT_KEYS:
            if field.name == "status":
                read.found += _behind_status(document, field, judged)
            read.whole(field)
        seen.add(turn)
    read.found += _lines(document, entry, read, UNJUDGED if bare else OUTSIDE)
    return _once(read.found)


def in_baseline(document: ProgressFile, entry: BaselineEntry) -> list[Beyond]:
    """Return what a baseline claims beside its checked lines, in the order of the file."""
    place = entry.place
    read = _EntryClaims()
    seen: set[str] = set()
    for field in read_fields(document.data, place.fields_start, place.fields_end, place.opaque):
        first = field.name not in seen
        if field.name == "runs":
            _runs(document, field, read, first=first)
        elif field.name in _BASELINE and first:
            read.whole(field)
        elif not is_known(field.name) or field.name in (*_FREE, "notes"):
            _own(document, field, read, bare=False)
        seen.add(field.name)
    title = fold(entry.title)
    if shapes.figured(title) or shapes.titled(title):
        read.found.append(_at(document, entry.start, "title", entry.title, OUTSIDE))
    read.found += _lines(document, entry, read, OUTSIDE)
    return _once(read.found)


def _once(found: list[Beyond]) -> list[Beyond]:
    """Return the first claim of each line, in the order of the file."""
    lines: dict[int, Beyond] = {}
    for each in found:
        lines.setdefault(each.line, each)
    return [lines[line] for line in sorted(lines)]


def outside(document: ProgressFile) -> list[Beyond]:
    """Claims in no entry, but for what an entry that is named on the same line says as well."""
    spans = sorted(
        [(b.start, b.end) for b in document.baselines] + [(h.start, h.end) for h in document.hypotheses]
    )
    found: list[Beyond] = []
    position = 0
    for start, end in [*spans, (len(document.data), len(document.data))]:
        for line in shown_lines(document, position, start):
            key, text = line.keyed or ("text", line.text)
            ours = key in _CLAIMS or earlier(key) > 0
            if line.fenced:
                claim = ours and shapes.only_ours(key) and shapes.starts(key, text)
            else:
                strict = shapes.figured(line.text) and _pseudo(document, line)
                claim = strict or (ours and shapes.starts(key, text)) or _claims(line)
            if claim and not line.text.startswith("Goal:") and not _borne_out(document, line.text):
                found.append(_at(document, line.offset, key, line.written, NO_ENTRY))
        position = max(position, end)
    return found


def _pseudo(document: ProgressFile, line: ShownLine) -> bool:
    """Tell whether a line is below a heading that a reader takes for an entry's."""
    headings = document.outline.headings
    at = bisect_right(headings, line.offset, key=lambda heading: heading.start) - 1
    return at >= 0 and _PSEUDO.match(fold(headings[at].text.decode("utf-8", "replace"))) is not None


def _borne_out(document: ProgressFile, text: str) -> bool:
    """Tell whether the hypotheses that a line names say all of its verdicts and figures."""
    numbers = {int(n) for n in re.findall(r"(?i)\b(?:hypothesis |h)(\d{1,9})\b", text)}
    named = [h for h in document.hypotheses if h.number in numbers]
    said = shapes.tokens(" ".join(fold(f"{h.status}; {'; '.join(h.result.values())}") for h in named))
    return bool(shapes.tokens(text)) and shapes.tokens(text) <= said


def _claims(line: ShownLine) -> bool:
    """Tell whether a line claims in any words; a table's cell with the heading of its column."""
    if not line.cells:
        return shapes.claimed(line.text)
    cells = [(fold(head), cell) for head, cell in line.cells]
    return any(shapes.claimed(c) or (_COLUMN.search(h) and shapes.figured(c)) for h, c in cells)


def _in_result(
    document: ProgressFile, result: Field, read: _EntryClaims, *, checked: bool, first: bool
) -> None:
    """Twins and own figures of a Result; the lines that something else compares are checked."""
    inline = result.value.decode("utf-8", "replace")
    values, items = result_values(result), result_items(result)
    seen = set(values) - {item.name for item in items} - {"summary"}
    at = result.first.offset
    if first:
        read.checked.add(at)
    if not checked and measured(fold(inline)) and not shapes.choice(inline):
        read.found.append(_at(document, at, "result", inline, UNJUDGED))
    elif measured(fold(values.get("summary", ""))):
        read.found.append(_at(document, at, "result", values["summary"], BESIDE))
    doubled = inline and any(len(re.findall(rf"(?i)\b{name}[*_`]*:", inline)) > 1 for name in RESULT_KEYS)
    if doubled or (seen and items and seen & {item.name for item in items}):
        read.found.append(_at(document, at, "result", inline, TWICE))
    for item in items:
        if item.name in RESULT_KEYS:
            if item.name in seen:
                read.found.append(_at(document, item.start, item.name, item.text, TWICE))
            elif checked:
                seen.add(item.name)
                _checked_item(document, result, item, read)
        elif measured(fold(item.text)) or (item.name and measured(item.name.upper())):
            read.found.append(_at(document, item.start, item.name or "result", item.text, BESIDE))


def _checked_item(document: ProgressFile, result: Field, item: ResultItem, read: _EntryClaims) -> None:
    read.checked.update(line.offset for line in result.rest if item.start <= line.offset < item.end)
    if item.name == "runs" and shapes.beside_runs(item.text):
        read.found.append(_at(document, item.start, "runs", item.text, NAMES))


def _runs(document: ProgressFile, field: Field, read: _EntryClaims, *, first: bool) -> None:
    if first:
        read.whole(field)
        if shapes.beside_runs(field.text(" ")):
            read.found.append(_at(document, field.first.offset, field.name, field.text(" "), NAMES))


def _free(field: Field, read: _EntryClaims) -> None:
    read.checked.add(field.first.offset)
    read.free.update(line.offset for line in field.rest)


def _behind_status(document: ProgressFile, status: Field, judged: bool) -> Iterator[Beyond]:
    reading = read_status(status)
    value = document.data[reading.start : reading.end].decode("utf-8", "replace")
    before = value.partition(reading.word)[0] if reading.word else ""
    rest = " ".join(line.text.decode("utf-8", "replace").strip() for line in status.rest if not line.hidden)
    if rest.startswith(value.strip()):
        rest = ""
    linked = before.rstrip("*_`").endswith("[")
    note = fold(f"{_TARGET.sub('', reading.note) if linked else reading.note} {rest}")
    claim = shapes.begins(note) or shapes.figured(note) or measured(re.sub(r"\d", "", note))
    plain = re.search(r"\w", note) is None or _SEE.fullmatch(note)
    if measured(before) or claim or (judged and not plain):
        yield _at(document, reading.start, "status", value.strip() or note, REMARK)


def _own(document: ProgressFile, field: Field, read: _EntryClaims, *, bare: bool) -> None:
    """An own bullet that looks like a result: `Speedup: 9x`, `A100: +95pp`. Its further lines are looked at
    one by one as well."""
    text = field.text(" ") if field.key else field.first.text.decode("utf-8", "replace").lstrip(" \t-*+")
    key, text = fold(field.name), fold(text)
    read.checked.add(field.first.offset)
    whole = f"{key}: {text}" if key else text
    like = shapes.gained(key) and measured(text) and not shapes.hoped(whole)
    begins = not bare and shapes.begins(text) and not shapes.hoped(whole)
    if like or begins or shapes.claimed(whole) or (key.startswith("accepted") and shapes.starts(key, text)):
        read.found.append(_at(document, field.first.offset, field.name or "text", text, OUTSIDE))


def _lines(
    document: ProgressFile, entry: HypothesisEntry | BaselineEntry, read: _EntryClaims, why: str
) -> Iterator[Beyond]:
    """Yield every other line of an entry, its own sections among them, that claims."""
    data = document.data[entry.place.fields_start : entry.end]
    if sum(1 for line in data.splitlines() if line.strip()) == len(read.checked):
        return  # As gpudebug wrote it: each line is one that is checked.
    for line in shown_lines(document, entry.place.fields_start, entry.end):
        key, text = line.keyed or ("text", line.text)
        ours = key in _CLAIMS or earlier(key) > 0
        if line.offset in read.checked:
            continue
        if line.fenced:
            claim = ours and shapes.only_ours(key) and shapes.starts(key, text)
        elif line.offset in read.free:
            claim = ours and shapes.starts(key, text)
        else:
            claim = _claims(line) or (ours and shapes.says(key, text))
        if claim:
            twin = key in ("status", "accepted", "result")
            yield _at(document, line.offset, key, line.written, TWICE if twin else why)


def _at(document: ProgressFile, offset: int, key: str, text: str, why: str) -> Beyond:
    line = len((document.data[:offset] + b"x").splitlines())
    name = EARLIER_RESULT if earlier(key) else key
    return Beyond(name, line, text, why)
