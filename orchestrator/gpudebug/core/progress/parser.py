"""Bytes of a progress file in, its entries out; what cannot be read without guessing is refused."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from gpudebug.core.errors import ProgressError
from gpudebug.core.lazy import regex
from gpudebug.core.progress.blocks import MOST_BLOCKS, Heading, Outline, outline, plain
from gpudebug.core.progress.entries import (
    BaselineEntry,
    EntrySpan,
    HypothesisEntry,
    ProgressFile,
    UnknownStatus,
)
from gpudebug.core.progress.fields import Field, first_of, read_fields, run_names, uncode
from gpudebug.core.words import Status

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LONE_CR = regex(rb"\r(?!\n)")
_LINE_ENDING = regex(rb"\r\n|\n|\r")

_HYPOTHESIS = regex(
    rb"((?:[^\w]|_|:[a-z0-9_+-]{1,40}:){0,40})hypothesis(?![A-Za-z])(.*)", re.IGNORECASE | re.DOTALL
)
_NUMBER = regex(
    rb"[\s*_`]*(?:\#|no\.?|number|-)?[\s*_`]*(\d{1,9})(?![A-Za-z0-9])(?!\.\d|[-/]\d)(.*)", re.I | re.DOTALL
)
_SEPARATOR = regex(r"\s*(?:[:：.)\]|]|[-–—]+(?=\s|\Z)|[–—]+|-(?=[A-Za-z]))?\s*")
_NAMELESS = regex(
    r"[\s*_`]*(?:\Z|\d|(?:\W{0,2}\w{0,2}\W{0,2}|one|two|three|four|five|six|seven|eight|nine|ten|tbd|todo)"
    r"\s*(?:[:：]|[-–—]+\s))",
    re.IGNORECASE,
)
_BASELINE = regex(
    r"[\W_]*baseline[\s*_`]*(?:[:：(]|[-–—]+\s)[\s*_`]*(?P<role>.*\S)"
    r"|[\W_]*baseline[\s*_`]+(?P<known>workload|reference)[\s*_`]*(?:\Z|[:：(–—-])"
    r"|[\W_]*(?P<first>workload|reference)[\s*_`]+baseline[\s*_`]*(?:\Z|[:：(–—-])",
    re.IGNORECASE,
)
_ROLES = ("workload", "reference")
_DECORATION = "*_`"

# A heading and a status as gpudebug writes them need no closer look, the status where an entry says
# the word nowhere else: this halves the time for a large file and changes no result.
_PLAIN_HEADING = regex(rb"Hypothesis (\d{1,9}):(?: (.*)|$)", re.DOTALL)
_PLAIN_STATUS = regex(
    rb"^- \*\*Status\*\*: (UNTESTED|TESTING|VALIDATED|REJECTED|INCONCLUSIVE|INVALID)\r?$", re.MULTILINE
)
_STATUSES = {status.value.encode(): status for status in Status}
MOST_ENTRIES = 15_000
"""Hypotheses and baselines: each takes some KB where the whole campaign is read."""
_UNNUMBERED_ENTRY_KEYS = ("description", "test method", "status")


class _Titled(NamedTuple):
    """A heading that begins an entry; a number of None is one that lacks it."""

    heading: Heading
    role: str | None
    number: int | None
    title: str


def parse(data: bytes, file: str) -> ProgressFile:
    """Return the entries of a progress file; `file` is its name in errors.

    Read as an entry: a heading of level 2 or deeper `Hypothesis N` or `Baseline: role` outside of code
    fences and HTML comments, with the bullets up to the next heading. All else is own text.

    Raises ProgressError, with line and next action, for a hypothesis without a number, a number twice,
    a merge-conflict marker, an unknown status, invalid UTF-8 in an entry, more entries or blocks than a
    campaign has, and for UTF-16.
    """
    if data.startswith(_UTF16):
        raise ProgressError("the file is UTF-16", file=file, line=1, next="save it as UTF-8")
    lead = len(_BOM) if data.startswith(_BOM) else 0
    scanned = data
    if data.count(b"\r") != data.count(b"\r\n"):
        scanned = _LONE_CR.sub(b"\n", data)
    if lead:
        # Blanks keep every offset; a heading on the first line may follow the mark directly.
        scanned = b"\n\n\n" + scanned[lead:]
    found = outline(scanned)
    if lead:
        found = _lines_up(found, lead)
    if found.conflict is not None:
        raise ProgressError(
            "merge-conflict marker", file=file, line=found.conflict, next="resolve the merge, then try again"
        )
    if found.beyond is not None:
        raise _too_many(f"{MOST_BLOCKS:,} headings and code blocks", file, found.beyond)
    return _ProgressReader(data, file, found).read()


def _too_many(what: str, file: str, line: int) -> ProgressError:
    return ProgressError(
        f"has more than {what}",
        file=file,
        line=line,
        next="move old entries to another file, or set progress: in gpudebug.yaml to a new one",
    )


def _lines_up(found: Outline, by: int) -> Outline:
    headings = [Heading(h.start, h.end, h.line - by, h.level, h.text) for h in found.headings]
    unclosed = found.unclosed - by if found.unclosed else None
    conflict, beyond = (at - by if at else None for at in (found.conflict, found.beyond))
    return Outline(headings, found.opaque, unclosed, conflict, beyond)


class _ProgressReader:
    def __init__(self, data: bytes, file: str, found: Outline) -> None:
        self.data = data
        self.file = file
        self.outline = found
        self.checked = _is_utf8(data)

    def read(self) -> ProgressFile:
        titled = [self._titled(index) for index in range(len(self.outline.headings))]
        starts = [index for index, each in enumerate(titled) if each is not None]
        if len(starts) > MOST_ENTRIES:
            line = self.outline.headings[starts[MOST_ENTRIES]].line
            raise _too_many(f"{MOST_ENTRIES:,} entries", self.file, line)
        free = 1 + max((each.number or 0 for each in titled if each is not None), default=0)
        baselines: list[BaselineEntry] = []
        hypotheses: list[HypothesisEntry] = []
        lines: dict[int, int] = {}
        for index, following in zip(starts, [*starts, len(titled)][1:], strict=True):
            each = titled[index]
            if each is None:
                continue
            place = self._place(index, following)
            if each.role is not None:
                baselines.append(self._baseline(each, place))
                continue
            self._refuse_unusable(each, lines, free)
            hypotheses.append(self._hypothesis(each, place))
        untitled = (
            h.text
            for h, each in zip(self.outline.headings, titled, strict=True)
            if each is None and h.level == 1
        )
        ending = _LINE_ENDING.search(self.data)
        return ProgressFile(
            file=self.file,
            data=self.data,
            title=next(untitled, b"").decode("utf-8", "replace"),
            baselines=tuple(baselines),
            hypotheses=tuple(hypotheses),
            newline=ending[0] if ending else b"\n",
            outline=self.outline,
        )

    def _titled(self, index: int) -> _Titled | None:
        heading = self.outline.headings[index]
        if heading.level > 1 and (plain := _PLAIN_HEADING.match(heading.text)):
            return _Titled(heading, None, int(plain[1]), self._decode(heading.start, plain[2] or b"").strip())
        match = _HYPOTHESIS.match(heading.text)
        if match is None:
            return self._titled_baseline(heading) if b"baseline" in heading.text.lower() else None
        if heading.level == 1 and not first_of(self._fields(self._place(index, index + 1)), "status"):
            return None
        number = _NUMBER.match(match[2])
        if number is None:
            return _Titled(heading, None, None, "") if self._lacks_number(index, match[2]) else None
        title = self._decode(heading.start, number[2])
        mark = match[1][len(match[1].rstrip(b"*_`")) :].decode("ascii")
        if mark:
            # Emphasis that was opened before the word closes somewhere in what is left.
            title = title.replace(mark, "", 1)
        found = _SEPARATOR.match(title)
        return _Titled(heading, None, int(number[1]), title[found.end() if found else 0 :].strip())

    def _titled_baseline(self, heading: Heading) -> _Titled | None:
        text = self._decode(heading.start, heading.text)
        match = _BASELINE.match(text)
        if match is None or heading.level == 1:
            return None
        role = (match["role"] or match["known"] or match["first"]).strip(" )*_`").lower()
        word = re.match(r"\w+", role)
        role = word[0] if word and word[0] in _ROLES else role
        return _Titled(heading, role, None, text.strip(_DECORATION)) if role else None

    def _lacks_number(self, index: int, rest: bytes) -> bool:
        """Whether a heading with the word Hypothesis means an entry and not a section about hypotheses."""
        if _NAMELESS.match(rest.decode("utf-8", "replace")):
            return True
        place = self._place(index, index + 1)
        fields = self._fields(place)
        return any(first_of(fields, key) for key in _UNNUMBERED_ENTRY_KEYS)

    def _place(self, index: int, following: int) -> EntrySpan:
        """Find the span of the entry of heading `index`; `following` is the index of the next entry's."""
        headings = self.outline.headings
        heading, size = headings[index], len(self.data)
        fields_end = headings[index + 1].start if index + 1 < len(headings) else size
        last = next((i for i in range(index + 1, following) if headings[i].level <= heading.level), following)
        end = headings[last].start if last < len(headings) else size
        opaque = self.outline.opaque
        spans: tuple[tuple[int, int], ...] = ()
        if opaque:
            first = bisect_left(opaque, (heading.end, 0))
            spans = tuple(opaque[first : bisect_left(opaque, (fields_end, 0))])
        return EntrySpan(heading.start, heading.end, fields_end, end, heading.level, spans)

    def _refuse_unusable(self, each: _Titled, lines: dict[int, int], free: int) -> None:
        line = each.heading.line
        if each.number is None:
            raise ProgressError(
                "this hypothesis has no number that can be read",
                file=self.file,
                line=line,
                next=f"give it one, for example 'Hypothesis {free}: …'",
            )
        earlier = lines.setdefault(each.number, line)
        if earlier != line:
            raise ProgressError(
                f"hypothesis {each.number} is here and on line {earlier}",
                file=self.file,
                line=line,
                next=f"renumber one of them; {free} is free",
            )

    def _hypothesis(self, each: _Titled, place: EntrySpan) -> HypothesisEntry:
        self._check_utf8(place)
        status = self._plain_status(place)
        try:
            return HypothesisEntry(
                self.data,
                number=each.number or 0,
                title=each.title,
                line=each.heading.line,
                place=place,
                status=status,
            )
        except UnknownStatus as error:
            raise self._unknown_status(error) from None

    def _plain_status(self, place: EntrySpan) -> Status | None:
        if place.opaque:
            return None
        text = self.data[place.fields_start : place.fields_end]
        match = _PLAIN_STATUS.search(text)
        if match is None or text.lower().count(b"status") != 1:
            return None
        return _STATUSES[match[1]]

    def _unknown_status(self, error: UnknownStatus) -> ProgressError:
        from difflib import get_close_matches

        near = get_close_matches(error.word.upper(), [status.value for status in Status], n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return ProgressError(
            f"status {error.word[:40]!a} is not one of {', '.join(Status)}{meant}",
            file=self.file,
            line=error.line,
            next="begin the status with one of them, or delete the line for UNTESTED",
        )

    def _baseline(self, each: _Titled, place: EntrySpan) -> BaselineEntry:
        self._check_utf8(place)
        values: dict[str, str] = {}
        for field in self._fields(place):
            if field.name:
                value = uncode(field.text(" "))
                values.setdefault(field.name, value if field.name == "command" else plain(value))
        return BaselineEntry(
            role=each.role or "",
            title=each.title,
            fields=values,
            runs=run_names(values.get("runs", "")),
            start=place.start,
            end=place.end,
            line=each.heading.line,
            place=place,
        )

    def _fields(self, place: EntrySpan) -> list[Field]:
        return read_fields(self.data, place.fields_start, place.fields_end, place.opaque)

    def _check_utf8(self, place: EntrySpan) -> None:
        if not self.checked:
            self._decode(place.start, self.data[place.start : place.fields_end])

    def _decode(self, start: int, text: bytes) -> str:
        """Decode `text`, which is in the file at or after `start`; ProgressError if it is not UTF-8."""
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            at = max(self.data.find(text, start), start) + error.start
            raise ProgressError(
                "this entry is not valid UTF-8",
                file=self.file,
                line=len((self.data[:at] + b"x").splitlines()),
                next="save the file as UTF-8",
            ) from None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
