"""What a progress file holds, as values: baselines, hypotheses and their bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from gpudebug.core.errors import ProgressError
from gpudebug.core.lazy import regex
from gpudebug.core.progress.blocks import Outline, options
from gpudebug.core.progress.fields import (
    ENTRY_KEYS,
    Field,
    earlier,
    first_of,
    is_result,
    read_fields,
    read_status,
    result_items,
    result_values,
    run_names,
    uncode,
)
from gpudebug.core.words import Status

_CAUSE = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_ORDER = regex(r"[1-9][0-9]{0,5}")
_NO_CHANGE = frozenset({"", "-", "none", "n/a", "tbd", "…", "..."})


class EntrySpan(NamedTuple):
    """Where an entry is: byte offsets of its lines and of its fields, and its level of heading."""

    start: int
    fields_start: int
    fields_end: int
    end: int
    level: int
    opaque: tuple[tuple[int, int], ...]


class EarlierResult(NamedTuple):
    """A Result that a later test took the place of: its line, the status in its key, its runs and values."""

    line: int
    status: str | None
    runs: tuple[str, ...]
    values: dict[str, str]


LEFT_OUT = "left out"
"""The key by which a baseline names the runs of its recording that count for nothing, with why."""


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """One baseline. `role` is `workload`, `reference` or other text in lower case.

    `fields` has normalised lower-case keys (`gpu util`, `throughput`); `runs` are names of run folders.
    """

    role: str
    title: str
    fields: dict[str, str]
    runs: tuple[str, ...]
    start: int
    end: int
    line: int
    place: EntrySpan


class HypothesisEntry:
    """One hypothesis. Its status is read at once, its other fields when they are asked for.

    `start` and `end` are the byte offsets of its lines, `line` the 1-based line of its heading.
    """

    __slots__ = ("_data", "_fields", "_result", "_runs", "line", "number", "place", "status", "title")

    def __init__(
        self, data: bytes, *, number: int, title: str, line: int, place: EntrySpan, status: Status | None
    ) -> None:
        self._data = data
        self._fields: list[Field] | None = None
        self._result: dict[str, str] | None = None
        self._runs: tuple[str, ...] | None = None
        self.number = number
        self.title = title
        self.line = line
        self.place = place
        self.status = status if status is not None else self._read_status()

    def __repr__(self) -> str:
        return f"HypothesisEntry({self.number}, {self.title!r}, {self.status}, line {self.line})"

    @property
    def start(self) -> int:
        return self.place.start

    @property
    def end(self) -> int:
        return self.place.end

    @property
    def fields(self) -> list[Field]:
        """Every bullet of the entry, own ones included."""
        if self._fields is None:
            place = self.place
            self._fields = read_fields(self._data, place.fields_start, place.fields_end, place.opaque)
        return self._fields

    @property
    def description(self) -> str:
        return self._text("description")

    @property
    def test_method(self) -> str:
        return self._text("test method")

    @property
    def intervention(self) -> str | None:
        """The change in `propose`'s syntax on one line; None if it is still to be written."""
        text = options(uncode(self._text("intervention", " ")))
        return None if text.lower() in _NO_CHANGE else text

    @property
    def cause(self) -> str | None:
        """The id of the catalogue's root cause that it tests; None if there is none, or prose."""
        text = uncode(self._text("cause", " "))
        return text if _CAUSE.fullmatch(text) else None

    @property
    def status_note(self) -> str:
        """The text after the status word."""
        field = first_of(self.fields, "status")
        return read_status(field).note if field else ""

    @property
    def status_line(self) -> int | None:
        """1-based line of the status, None when the entry has none."""
        field = first_of(self.fields, "status")
        return self.line_of(read_status(field).start) if field else None

    @property
    def result(self) -> dict[str, str]:
        """The Result's values by lower-case key such as `gpu util before`; empty when it is missing."""
        if self._result is None:
            field = first_of(self.fields, "result")
            self._result = result_values(field) if field else {}
        return self._result

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the run folders that the entry rests on."""
        if self._runs is None:
            self._runs = run_names(f"{self.result.get('runs', '')} {self._text('runs')}")
        return self._runs

    @property
    def earlier_runs(self) -> tuple[str, ...]:
        """Names of the run folders that results rested on which a later test took the place of."""
        return run_names(" ".join(field.text(" ") for field in self.fields if earlier(field.name)))

    @property
    def earlier_results(self) -> list[EarlierResult]:
        """What later tests took the place of, in the order of the file."""
        runs_of = (f for f in self.fields if earlier(f.name) and not is_result(f.name))
        flat = {earlier(f.name): run_names(f.text(" ")) for f in runs_of}
        found = []
        for field in self.fields:
            turn = earlier(field.name)
            if turn and is_result(field.name) and field.key is not None:
                written = field.first.text[field.key.at : field.key.at + field.key.length]
                word = re.search(rb"\((.*?)\)?\Z", written)
                values = result_values(field)
                runs = run_names(values.get("runs", "")) or flat.get(turn, ())
                line = self.line_of(field.first.offset)
                found.append(EarlierResult(line, word[1].decode() if word else None, runs, values))
        return found

    @property
    def accepted(self) -> int | None:
        """As which one the change was accepted into the baseline, 1 for the first; None if it was not."""
        texts = (field.text(" ").strip("*_`") for field in self.fields if field.name == "accepted")
        return next((int(text) for text in texts if _ORDER.fullmatch(text)), None)

    def line_of(self, offset: int) -> int:
        """1-based line of a byte offset inside the entry."""
        return self.line + len((self._data[self.start : offset] + b"x").splitlines()) - 1

    def _text(self, name: str, joint: str = "\n") -> str:
        field = first_of(self.fields, name)
        return field.text(joint) if field else ""

    def _read_status(self) -> Status:
        field = first_of(self.fields, "status")
        reading = read_status(field) if field else None
        if reading is None:
            return Status.UNTESTED
        if reading.status is None:
            raise UnknownStatus(reading.word, self.line_of(reading.start))
        return reading.status


class UnknownStatus(Exception):
    """A status whose first word is not one of the six; `parse` turns it into a ProgressError."""

    def __init__(self, word: str, line: int) -> None:
        super().__init__(word)
        self.word = word
        self.line = line


@dataclass(frozen=True, slots=True)
class ProgressFile:
    """One parsed progress file. `data` is what was read, `newline` its first line ending.

    `outline` has every heading of the file and the spans of its code fences and comments.
    """

    file: str
    data: bytes
    title: str
    baselines: tuple[BaselineEntry, ...]
    hypotheses: tuple[HypothesisEntry, ...]
    newline: bytes
    outline: Outline

    def hypothesis(self, number: int) -> HypothesisEntry:
        """Return the hypothesis with this number; ProgressError when there is none."""
        for entry in self.hypotheses:
            if entry.number == number:
                return entry
        raise ProgressError(
            f"there is no hypothesis {number}", file=self.file, next="see the numbers with `gpudebug status`"
        )

    def baseline(self, role: str) -> BaselineEntry | None:
        """Return the first baseline of this role, None when it is missing."""
        return next((entry for entry in self.baselines if entry.role == role), None)

    def line_of(self, entry: BaselineEntry | HypothesisEntry, name: str) -> int:
        """1-based line of an entry's field or Result value (`improvement`); its heading's without one."""
        place = entry.place
        fields = read_fields(self.data, place.fields_start, place.fields_end, place.opaque)
        result, own = first_of(fields, "result"), first_of(fields, name)
        found = own.first.offset if own else None
        if result is not None and name not in ENTRY_KEYS:
            inside = (item.start for item in result_items(result) if item.name == name)
            found = next(inside, result.first.offset if found is None else found)
        if found is None:
            return entry.line
        return entry.line + len((self.data[entry.start : found] + b"x").splitlines()) - 1
