"""What other monitors recorded, as rows in the columns of ours: tables, boxes, trees and printed lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice

from gpudebug.core.errors import GpudebugError
from gpudebug.core.lazy import regex
from gpudebug.core.recordings.boxes import Boxes, is_boxed, is_rule
from gpudebug.core.recordings.cells import dated, moment
from gpudebug.core.recordings.collect import Collector, MonitorRows
from gpudebug.core.recordings.headless import ADD, columns_of, looks_headerless
from gpudebug.core.recordings.lines import cleaner
from gpudebug.core.recordings.names import FIGURES
from gpudebug.core.recordings.printed import printed
from gpudebug.core.recordings.sources import BOXED, CSV, JSON, LINES, QUERY, TEXT, version_of
from gpudebug.core.recordings.tables import NamedColumns, header_of
from gpudebug.core.recordings.trees import (
    MOST_BYTES,
    TreeReader,
    exporter_documents,
    indented_documents,
    is_training,
    json_documents,
    xml_documents,
)
from gpudebug.core.samples.row import COLUMNS
from gpudebug.core.samples.table import MOST_ROWS, capped

_PEEK = 400
_HEAD_LINES = 120
_AHEAD = 4
_UNIT_LINE = regex(r"#?\s*(ID|Id|Idx|YYYYMMDD|HH:MM:SS)\b|\s*\(DID")
_PROMPT = regex(r"(\[[^\]]{1,80}\]\S{0,9}[$%>#]|\S{0,80}[$%>#]|PS [^>]{0,120}>)(\s+\S.*)?")
_PAGE = regex(r"\s*(<!doctype html|<html\b)", re.IGNORECASE)
_TITLE = regex(r"[=*#-]{3,}.*[=*#-]{3,}")
_TREE = regex(r"\s*(<\?xml|<nvidia_smi_log|[\[{]\s*[\[{\"\]}])")
_INDENTED = regex(
    r"(?m)^(?:# (?:HELP|TYPE) )?DCGM_FI_\w+[ {]|^=+ ?NVSMI LOG|^GPU: \d+\s*$|^GPU\[\d+\]\s*: |"
    r"^\s*NPU ID\s+: \d+"
)
_LOG_WORDS = regex(r"(?i)\b(loss|epoch|iter(ation)?s?|step)\b")
_EPOCH = regex(r"1\d{9}(?:\.\d+)?|1\d{12}")
_LEAST_ROWS = 3
_UNKNOWN = NamedColumns(QUERY, 0, (), str.split)
_MOST_UNREAD, _MOST_OF_A_LOG = 0.25, 0.1


def recognised(head: str) -> str | None:
    """Return which monitor's recording begins so; None if it is none, or one of our own sampler.

    It is one if a header or a row of one stands in it, and hardly anything else.
    """
    head = head.lstrip("\ufeff")
    lines = _cleaned(head)
    if not lines or {*lines[0].split(",")} <= {*COLUMNS}:
        return None
    if _TREE.match(head):
        return _tree_recognised(head)
    if _INDENTED.search(head[:8192]) and not _LOG_WORDS.search(head[:8192]):
        return read_monitor([head], "").source
    undated = [line for line in lines if not _is_stamp(line)]
    if looks_headerless(undated[:-1] or undated):
        columns, _ = columns_of(undated)
        return columns.source if columns else QUERY
    reader, found = _look(head)
    strange = [line for line in reader.strange if not _PROMPT.match(line)]
    if not (found.parts or found.headers):
        return None
    most = 0.0 if found.source in BOXED else _MOST_OF_A_LOG * len(lines)
    if any(_LOG_WORDS.search(line) for line in strange) and len(strange) > most:
        return None
    if (reader.preamble or found.source in BOXED) and len(strange) > _MOST_UNREAD * len(lines):
        return None
    return found.source


def _cleaned(head: str) -> list[str]:
    lines = head.splitlines()[:_HEAD_LINES]
    return [line for line in map(cleaner(lines), lines) if line.strip()]


@lru_cache(maxsize=1)
def _look(head: str) -> tuple[_Reader, MonitorRows]:
    lines = _cleaned(head)
    reader = _Reader()
    for number, line in enumerate(lines, start=1):
        reader.take(line + "\n", number, lines[number : number + _AHEAD])
    return reader, reader.finish()


def readings_within(head: str, end: str = "") -> str | None:
    """Return which monitor's readings are among the first or last lines of a log; None if none are."""
    for text in (head.lstrip("\ufeff"), "\n".join(end.splitlines()[-_HEAD_LINES:])):
        reader, found = _look(text)
        if found.parts and (reader.strange or text != head):
            return found.source
        rows = [line for line in _cleaned(text) if looks_headerless([line, line])]
        if len(rows) >= _LEAST_ROWS:
            return (columns_of(rows)[0] or _UNKNOWN).source
    return None


def _tree_recognised(head: str) -> str | None:
    collector = Collector(JSON)
    trees = TreeReader(collector)
    xml = head.lstrip().startswith("<")
    if xml:
        return "nvidia-smi -q -x" if "<nvidia_smi_log" in head else None
    found = False
    try:
        for document in json_documents(head):
            if is_training(document) or not isinstance(document, (dict, list)):
                return None
            found = trees.take(document) or found
    except ValueError:
        if not found and not _cut_tree(head, trees):
            return None
    result = collector.finish()
    sure = any(
        one.sure and one.quantity in FIGURES for part in result.parts for _, one in part.columns.figures
    )
    return result.source if sure else None


def _cut_tree(head: str, trees: TreeReader) -> bool:
    """Try a document that is longer than the head: its first devices."""
    for end in (at.end() for at in islice(re.finditer(r"\}", head), 400)):
        for close in ("]", "]}", "}"):
            try:
                (document,) = json_documents(head[:end] + close)
            except ValueError:
                continue
            return not is_training(document) and trees.take(document)
    return False


def read_monitor(lines: Iterable[str], file: str) -> MonitorRows:
    """Read a recording that is `recognised`. Raises GpudebugError if what it lacks cannot be assumed."""
    iterator = capped(lines)
    peeked = list(islice(iterator, _PEEK))
    clean = cleaner(peeked)
    peeked = [clean(line) for line in peeked]
    head = "".join(peeked).lstrip("\ufeff")
    if _TREE.match(head) or _INDENTED.search(head[:8192]):
        return _read_tree(head, iterator, file)
    reader = _Reader()
    reader.collector.dates_as_in(head)
    filled = [line for line in head.splitlines(keepends=True) if line.strip() and not _is_stamp(line)]
    if looks_headerless(filled[:3]):
        columns, note = columns_of([line for line in filled if line.endswith("\n")])
        if columns is None:
            raise GpudebugError(note, file=file, next=ADD)
        reader.collector.notes.append(note)
        reader.collector.begin(columns, 1)
    window = peeked
    for count, line in enumerate(chain(peeked, map(clean, iterator)), start=1):
        if count > MOST_ROWS:
            raise GpudebugError(
                f"has more than {MOST_ROWS:,} rows", file=file, next="is this the right file?"
            )
        reader.take(line.lstrip("\ufeff") if count == 1 else line, count, window[count : count + _AHEAD])
    found = reader.finish()
    found.version = version_of(found.source, head)
    return found


def _read_tree(head: str, rest: Iterable[str], file: str) -> MonitorRows:
    text, size = [head], len(head)
    for line in rest:
        size += len(line)
        if size > MOST_BYTES:
            raise GpudebugError(
                f"is more than {MOST_BYTES >> 20} MB of one document",
                file=file,
                next="is this the right file?",
            )
        text.append(line)
    whole = "".join(text)
    collector = Collector(JSON)
    trees = TreeReader(collector, TEXT if _INDENTED.search(head[:8192]) and not _TREE.match(head) else JSON)
    exported = "DCGM_FI_" in whole[:8192]
    of_lines = exporter_documents if exported else indented_documents
    documents: Callable[[], Iterable[object]] = lambda: of_lines(whole.splitlines())  # noqa: E731
    if _TREE.match(whole):
        is_xml = whole.lstrip().startswith("<")
        documents = lambda: xml_documents(whole) if is_xml else json_documents(whole)  # noqa: E731
    try:
        for document in documents():
            trees.take(document, head[:4096] if not _TREE.match(whole) else "")
    except ValueError:
        collector.notes.append("the file breaks off or is damaged: what is before that was read")
    found = collector.finish()
    found.version = version_of(found.source, whole[:65536])
    return found


def _is_stamp(line: str) -> bool:
    """Tell whether a line is a moment alone, of a calendar or in seconds since 1970."""
    return moment(line) is not None or _EPOCH.fullmatch(line.strip()) is not None


def _only_draws(text: str) -> bool:
    return not text[0].isalnum() and (is_rule(text) or _TITLE.fullmatch(text) is not None)


class _Reader:
    """Takes the lines of one file in order."""

    def __init__(self) -> None:
        self.collector = Collector(CSV)
        self.strange: list[str] = []
        self.preamble = False
        self._boxes = Boxes(self.collector)
        self._odd: tuple[int, int, int] | None = None
        self._header = ""

    def take(self, line: str, number: int, after: Sequence[str]) -> None:
        """Take a line; `after` are those that follow it."""
        if self._header and line.rstrip().endswith(self._header) and line.strip() != self._header:
            self._interrupted(line.rstrip().removesuffix(self._header), number)
            line = self._header + "\n"
        if is_boxed(line) and not is_rule(line) and not self._tabled:
            if not self._takes(printed(line), number):
                self._boxes.take(line, number)
            return
        self._boxes.end()
        text = line.strip()
        if not text:
            self.collector.block()
        elif not self._is_row(line) and _is_stamp(text):
            self.collector.stamp(text)
        elif _only_draws(text):
            self.collector.stamp(dated(text) or "")
        elif not self._take_text(line, number, after):
            self._is_strange(line, number)

    @property
    def _tabled(self) -> bool:
        columns = self.collector.columns
        return columns is not None and not columns.boxed

    def _is_row(self, line: str) -> bool:
        columns = self.collector.columns
        return columns is not None and len(columns.split(line)) == columns.width

    def _take_text(self, line: str, number: int, after: Sequence[str]) -> bool:
        found = printed(line)
        if found is not None:
            return self._takes(found, number)
        hashed = line.lstrip().startswith("#")
        if _UNIT_LINE.match(line.lstrip()):
            columns = header_of(line, after=after) if hashed else None
            if columns is not None:
                self.collector.begin(columns, number)
            return True
        columns = self.collector.columns
        is_row = columns is not None and not hashed and self._whole(line, columns)
        if columns is not None and is_row and self.collector.take(columns.split(line)):
            return True
        found_header = header_of(line, after=after) if line.endswith("\n") else None
        if found_header is not None:
            self.collector.begin(found_header, number)
            self._header = line.strip()
            return True
        return hashed

    def _takes(self, found: tuple[NamedColumns, list[str]] | None, number: int) -> bool:
        """Take a line that names its figures itself."""
        if found is None:
            return False
        itself, cells = found
        if self.collector.columns is None or self.collector.columns.layout != itself.layout:
            self.collector.begin(itself, number)
        return self.collector.take(cells)

    def _interrupted(self, start: str, number: int) -> None:
        """A row in which a header stands: its last cell may be half of a figure."""
        columns = self.collector.columns
        cells = columns.split(start) if columns else []
        if columns is None or len(cells) != columns.width or not self.collector.take([*cells[:-1], ""]):
            self._is_strange(start + "\n", number)

    def _whole(self, line: str, columns: NamedColumns) -> bool:
        """Whether a row is not cut: without its end its last cell may be half of a figure."""
        if line.endswith("\n"):
            return True
        last = {at for at, _ in columns.figures}
        cells = columns.split(line)
        return len(cells) == columns.width and (
            columns.width - 1 not in last or re.search(r"\d ?[%A-Za-z]+$", cells[-1]) is not None
        )

    def _is_strange(self, line: str, number: int) -> None:
        known = self.collector.columns
        date = dated(line) if known is None or not known.timed else None
        if date is not None and not _LOG_WORDS.search(line):
            self.collector.stamp(date)
            return
        self.strange.append(line)
        if _PAGE.match(line):
            self.collector.notes.append(f"at line {number} an HTML page begins, an error of who delivered it")
        columns = self.collector.columns
        if columns is None:
            self.preamble = True
            return
        if columns.source in (*BOXED, LINES):
            return
        if _PROMPT.match(line.strip()) and not line.lstrip().startswith("<"):
            return
        self.collector.unreadable += 1
        width = len(columns.split(line))
        if line.endswith("\n") and width != columns.width and self._odd is None:
            self._odd = (number, width, columns.width)

    def finish(self) -> MonitorRows:
        self._boxes.end()
        found = self.collector.finish()
        found.notes += self._boxes.notes
        if self._odd:
            line, width, named = self._odd
            cells = "1 cell" if width == 1 else f"{width} cells"
            found.notes.append(f"at line {line} a row has {cells} where the header names {named}")
        if found.unreadable:
            rows = "row" if found.unreadable == 1 else "rows"
            found.notes.append(f"{found.unreadable:,} {rows} could not be read")
        return found
