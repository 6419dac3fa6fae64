"""Changes to a progress file: each replaces or adds whole lines and keeps every other byte.

What is written takes the line ending, bullet and level of heading used around it. Text that comes in
is rendered elsewhere; a text that would reach beyond its own entry is a defect and raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.errors import ProgressError
from gpudebug.core.lazy import regex
from gpudebug.core.progress.blocks import Heading, width
from gpudebug.core.progress.entries import LEFT_OUT, BaselineEntry, HypothesisEntry, ProgressFile
from gpudebug.core.progress.fields import (
    RESULT_KEYS,
    Field,
    first_of,
    read_fields,
    read_status,
    result_items,
    run_names,
)
from gpudebug.core.progress.parser import parse
from gpudebug.core.progress.sanitise import harmless
from gpudebug.core.words import Status

NOTE_LIMIT = 300
_RENDERED_INDENT = 2
_BOM = b"\xef\xbb\xbf"
_HASHES = regex(rb"\A#{1,6}")
_BULLETS = regex(rb"^([ \t]*)- ", re.MULTILINE)
_ENDING = regex(rb"\r\n|\n|\r")
_NOTE_LEAD = " -–—:,.;|/*_`"
_SENTINEL = "\n\n### Hypothesis 999999999: end\n- **Status**: TESTING\n"


class Edit(NamedTuple):
    """Bytes `start` to `end` of the file become `text`."""

    start: int
    end: int
    text: bytes


def next_number(doc: ProgressFile) -> int:
    """Return the number after the highest one in the file; 1 in a file without hypotheses."""
    return max((entry.number for entry in doc.hypotheses), default=0) + 1


def with_heading(doc: ProgressFile, rendered: str) -> ProgressFile:
    """Return a blank file with the rendered head of a new one; a file with text in it as it is."""
    if doc.data.removeprefix(_BOM).strip():
        return doc
    head = _with_ending(doc, 0, rendered.strip("\n").encode() + b"\n")
    made = parse((_BOM if doc.data.startswith(_BOM) else b"") + head, doc.file)
    if made.hypotheses or made.baselines or made.outline.unclosed:
        raise ValueError("the rendered text is not the head of a progress file")
    return made


def add_hypothesis(doc: ProgressFile, rendered: str) -> bytes:
    """Return the file with a rendered entry at the end of its Hypotheses section, which is made if absent.

    If the last hypothesis is elsewhere, the entry follows it. Own sections stay where they are.
    Raises ProgressError when its number is taken or an unclosed fence would swallow the entry.
    """
    number = _rendered_hypothesis(rendered).number
    if twin := next((entry for entry in doc.hypotheses if entry.number == number), None):
        raise ProgressError(
            f"hypothesis {number} is already in the file",
            file=doc.file,
            line=twin.line,
            next=f"use {next_number(doc)}",
        )
    text = rendered.strip("\n").encode()
    section = _section(doc, "hypotheses")
    at = _section_end(doc, section, doc.hypotheses) if section else len(doc.data)
    if doc.hypotheses:
        last = doc.hypotheses[-1]
        inside = section is not None and section.start < last.start < at
        return _insert(doc, at if inside else last.end, _at_level(text, last.place.level))
    if section:
        return _insert(doc, at, _at_level(text, section.level + 1))
    return _insert(doc, at, b"## Hypotheses\n\n" + text)


def set_status(doc: ProgressFile, number: int, status: Status, note: str = "") -> bytes:
    """Return the file with the status of one hypothesis changed, in the style that its line has.

    An emoji before the status goes, as does a note on the old one. A missing line is added.
    """
    return _apply(doc.data, [_status_edit(doc, doc.hypothesis(number), status, note)])


def set_result(doc: ProgressFile, number: int, status: Status, result_block: str, note: str = "") -> bytes:
    """Return the file with status and Result of one hypothesis replaced; own bullets of the entry stay.

    Returns the file as it is if all runs that the block names are in the entry already.
    """
    entry = doc.hypothesis(number)
    new = _rendered_result(result_block)
    runs = run_names(new.text(" "))
    if runs and set(runs) <= set(entry.runs):
        return doc.data
    block = _styled(entry.fields, result_block.strip("\n").encode() + b"\n")
    edits = [_status_edit(doc, entry, status, note)]
    old = first_of(entry.fields, "result")
    if old is not None:
        edits.append(Edit(old.first.offset, old.end, _with_own_items(doc, old, block)))
        return _apply(doc.data, edits)
    before = first_of(entry.fields, "status")
    if before is not None:
        edits.append(_lines_after(doc, before.end, block))
    else:
        edits = [_status_edit(doc, entry, status, note, below=block)]
    return _apply(doc.data, edits)


def set_baseline(doc: ProgressFile, role: str, rendered: str) -> bytes:
    """Return the file with the rendered fields of one baseline; its heading and own bullets stay.

    A missing entry is added, with its section. Returns the file as it is when the entry names exactly
    the runs of the rendered one.
    """
    new = _rendered_baseline(rendered, role)
    old = doc.baseline(role)
    if old is None:
        return _add_baseline(doc, rendered.strip("\n").encode())
    if new.runs and set(new.runs) == set(old.runs):
        return doc.data
    fields = read_fields(doc.data, old.place.fields_start, old.place.fields_end, old.place.opaque)
    owned = [field for field in fields if field.name in new.fields or field.name == LEFT_OUT]
    block = rendered.strip("\n").encode().partition(b"\n")[2].strip(b"\n") + b"\n"
    if not owned:
        return _apply(doc.data, [_lines_after(doc, old.place.fields_start, _styled(fields, block))])
    first, *others = owned
    edits = [
        Edit(first.first.offset, first.end, _with_ending(doc, first.first.offset, _styled(owned, block)))
    ]
    edits += [Edit(field.first.offset, field.end, b"") for field in others]
    return _apply(doc.data, edits)


def _status_edit(
    doc: ProgressFile, entry: HypothesisEntry, status: Status, note: str, below: bytes = b""
) -> Edit:
    """Return the change of one status; `below` are lines to go with a status line that has to be added."""
    note = harmless(harmless(note, limit=NOTE_LIMIT).lstrip(_NOTE_LEAD), limit=NOTE_LIMIT)
    suffix = f" - {note}".encode() if note else b""
    field = first_of(entry.fields, "status")
    if field is None:
        return _missing_status(doc, entry, status.value.encode() + suffix, below)
    reading = read_status(field)
    if reading.status == status and reading.word.upper() == status and note in ("", reading.note):
        return Edit(reading.start, reading.start, b"")
    value = reading.opening + status.value.encode() + reading.closing + suffix
    start = reading.start
    if start == reading.end and doc.data[start : start + 1] in (b" ", b"\t"):
        start += 1  # A line that says nothing yet may end in the blank that belongs before the value.
    elif doc.data[start - 1 : start] not in b" \t\r\n":
        value = b" " + value
    return Edit(start, max(start, reading.end), value)


def _line_like(pattern: Field | None, word: bytes, value: bytes) -> bytes:
    """Return a line with another key and value in the style of a field's first line."""
    if pattern is None or pattern.key is None:
        return b"- **" + word + b"**: " + value + b"\n"
    key, line = pattern.key, pattern.first.text
    prefix = line[: key.at] + word + line[key.at + key.length : key.value_at]
    prefix = prefix if prefix.endswith((b" ", b"\t")) else prefix + b" "
    return prefix + value + key.open + b"\n"


def _missing_status(doc: ProgressFile, entry: HypothesisEntry, value: bytes, below: bytes) -> Edit:
    """Return a new status line, written as the entry's other fields are."""
    known = [field for field in entry.fields if field.name in ("description", "test method", "intervention")]
    result = first_of(entry.fields, "result")
    text = _line_like(known[-1] if known else result, b"Status", value) + below
    if known:
        return _lines_after(doc, known[-1].end, text)
    if result is not None:
        at = result.first.offset
        return Edit(at, at, _with_ending(doc, at, text))
    return _lines_after(doc, entry.place.fields_start, text)


def _add_baseline(doc: ProgressFile, text: bytes) -> bytes:
    section = _section(doc, "baselines")
    if section is not None:
        return _insert(doc, _section_end(doc, section, doc.baselines), _at_level(text, section.level + 1))
    if doc.baselines:
        last = doc.baselines[-1]
        return _insert(doc, last.end, _at_level(text, last.place.level))
    text = b"## Baselines\n\n" + text
    hypotheses = _section(doc, "hypotheses")
    if hypotheses is not None:
        return _insert(doc, hypotheses.start, text)
    if not doc.hypotheses:
        return _insert(doc, len(doc.data), text)
    first = doc.hypotheses[0]
    above = [h for h in doc.outline.headings if h.start < first.start and h.level < first.place.level]
    if above and above[-1].level > 1:
        return _insert(doc, above[-1].start, text)
    # Entries below the second level would become part of the new section: give them one of their own.
    return _insert(doc, first.start, text if first.place.level <= 2 else text + b"\n\n## Hypotheses")


def _section(doc: ProgressFile, word: str) -> Heading | None:
    """Return the heading of the Baselines or Hypotheses section."""
    entries = {entry.start for entry in doc.baselines} | {entry.start for entry in doc.hypotheses}
    for heading in doc.outline.headings:
        if heading.level > 3 or heading.start in entries:
            continue
        words = re.findall(rb"[a-z]+", heading.text.lower())
        plural = word.encode()
        if words and (words[0] == plural or (words[-1] == plural and len(words) == 2)):
            return heading
        if word == "baselines" and words in ([b"baseline"], [b"baseline", b"results"]):
            return heading
    return None


def _section_end(
    doc: ProgressFile, section: Heading, entries: Sequence[HypothesisEntry] | Sequence[BaselineEntry]
) -> int:
    """Return where a section ends: at the next heading of its level or above that is no entry of its kind."""
    own = {entry.start for entry in entries}
    for heading in doc.outline.headings:
        if heading.start > section.start and heading.level <= section.level and heading.start not in own:
            return heading.start
    return len(doc.data)


def _insert(doc: ProgressFile, at: int, text: bytes) -> bytes:
    """Return the file with a block set apart by blank lines in front of byte `at`, the start of a line."""
    for begin, end in doc.outline.opaque:
        if begin < at <= end and (at < end or (end >= len(doc.data) and doc.outline.unclosed)):
            raise ProgressError(
                "a code fence or comment that is never closed takes in the rest of the file",
                file=doc.file,
                line=doc.outline.unclosed,
                next="close it, then try again",
            )
    before, after = doc.data[:at].removeprefix(_BOM), doc.data[at:]
    lead = b""
    if before:
        lead = b"" if before.endswith((b"\n", b"\r")) else b"\n"
        lead += b"\n" if before[-4096:].splitlines()[-1].strip() else b""
    tail = b"\n\n" if after else b"\n"
    return doc.data[:at] + _with_ending(doc, at, lead + text.strip(b"\n") + tail) + after


def _lines_after(doc: ProgressFile, at: int, text: bytes) -> Edit:
    """Inserts lines at the start of the line at `at`, whatever the last line above ends in."""
    before = doc.data[:at]
    lead = b"" if not before or before.endswith((b"\n", b"\r")) else b"\n"
    following = doc.data[at:].partition(b"\n")[0].strip()
    # A paragraph right below a bullet would become a part of it.
    apart = b"" if not following or following[:1] in b"-*+#" or text[:1] not in b"-*+" else b"\n"
    return Edit(at, at, _with_ending(doc, at, lead + text + apart))


def _with_own_items(doc: ProgressFile, old: Field, block: bytes) -> bytes:
    """A new Result with what people wrote into the old one, above the figures if it is indented deeper."""
    block = _with_ending(doc, old.first.offset, block)
    own = [doc.data[i.start : i.end] for i in result_items(old) if i.name not in RESULT_KEYS]
    if all(width(item[: len(item) - len(item.lstrip())]) <= _RENDERED_INDENT for item in own):
        return block + b"".join(own)
    head, *figures = block.splitlines(keepends=True)
    ended = [
        item if item.endswith((b"\n", b"\r")) else _with_ending(doc, old.end, item + b"\n") for item in own
    ]
    return b"".join([head, *ended, *figures])


def _at_level(text: bytes, level: int) -> bytes:
    """Return a rendered entry with its heading at this level."""
    return _HASHES.sub(b"#" * min(level, 6), text)


def _styled(fields: Sequence[Field], block: bytes) -> bytes:
    """Return a rendered block with the bullet that the entry uses."""
    marker = next((field.marker for field in fields if field.marker and field.key), b"-")
    return _BULLETS.sub(rb"\1%s " % marker, block) if marker != b"-" else block


def _with_ending(doc: ProgressFile, at: int, text: bytes) -> bytes:
    """`text` with the line ending of the line above `at`, else of the line there."""
    above = doc.data[max(at - 2, 0) : at]
    if above.endswith(b"\r\n"):
        ending = b"\r\n"
    elif above.endswith((b"\n", b"\r")):
        ending = above[-1:]
    else:
        match = _ENDING.search(doc.data, at)
        ending = match[0] if match else doc.newline
    return text if ending == b"\n" else text.replace(b"\n", ending)


def _apply(data: bytes, edits: list[Edit]) -> bytes:
    parts, position = [], 0
    for edit in sorted(edits):
        parts += [data[position : edit.start], edit.text]
        position = edit.end
    return b"".join([*parts, data[position:]])


def _rendered_hypothesis(rendered: str) -> HypothesisEntry:
    entries = _entries_of(rendered)
    if len(entries.hypotheses) != 2 or entries.baselines or entries.hypotheses[0].start != 0:
        raise ValueError("the rendered text is not exactly one hypothesis")
    return entries.hypotheses[0]


def _rendered_baseline(rendered: str, role: str) -> BaselineEntry:
    entries = _entries_of(rendered)
    if len(entries.hypotheses) != 1 or [entry.role for entry in entries.baselines] != [role]:
        raise ValueError(f"the rendered text is not exactly one baseline of role {role!r}")
    return entries.baselines[0]


def _rendered_result(block: str) -> Field:
    entries = _entries_of("### Hypothesis 1: it\n" + block.strip("\n"))
    fields = entries.hypotheses[0].fields
    if len(entries.hypotheses) != 2 or entries.baselines or [field.name for field in fields] != ["result"]:
        raise ValueError("the rendered text is not exactly one Result")
    return fields[0]


def _entries_of(rendered: str) -> ProgressFile:
    """A rendered text, parsed with an entry behind it that vanishes if the text reaches beyond its end."""
    try:
        return parse((rendered.strip("\n") + _SENTINEL).encode(), "rendered text")
    except ProgressError as error:
        raise ValueError(str(error)) from error
