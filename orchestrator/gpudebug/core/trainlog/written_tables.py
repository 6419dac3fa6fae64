"""Figures that a training writes into tables: CSV with a head, and one JSON object a line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from math import isfinite

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.logger_files import WrittenScalars
from gpudebug.core.trainlog.names import classify
from gpudebug.core.trainlog.quantities import quantity
from gpudebug.core.trainlog.text import as_number
from gpudebug.core.words import WorkName

MAX_ROWS = 200_000
MAX_LISTS = 16
_NEXT = regex(r"[\s,]*")
_LINE = regex(r"([^\r\n]*)(?:\r\n|\r|\n)|([^\r\n]+)\Z")


def head_of_csv(data: bytes) -> bytes:
    """Return the line that names the columns."""
    lines = (line for line in data.splitlines(keepends=True) if not line.startswith(b"#"))
    return next(lines, b"")


def of_last_run(
    before: bytes, added: bytes, read: Callable[[bytes], WrittenScalars], head: bytes = b""
) -> WrittenScalars:
    """The figures of a table to which each run adds its own, of which `before` was there before this one.

    They are what was `added`, below `head`, if its counter begins again there. Else the table is written anew
    by each run.
    """
    old, new = read(before), read(head + added)
    again = any(
        points[0][0] < old.values[name][-1][0] for name, points in new.values.items() if name in old.values
    )
    return new if again else read(before + added)


def read_csv(text: str) -> WrittenScalars:
    """The columns of numbers, over the column that counts environment steps, else steps, else the rows."""
    whole = text if text.endswith("\n") else text[: text.rfind("\n") + 1]
    lines = (line for line in _lines(whole) if not line.startswith("#"))
    refused: list[str] = []
    found = _of_rows(_readable(csv.DictReader(lines), refused))
    if refused:
        found.note = refused[0]
    elif whole != text:
        found.note = "ends in the middle of a line"
    return found


def _lines(text: str) -> Iterator[str]:
    """Yield the lines one at a time: a list of short ones takes twenty times the text."""
    return (match[1] or match[2] or "" for match in _LINE.finditer(text))


def _readable(rows: csv.DictReader[str], refused: list[str]) -> Iterator[Mapping[str, object]]:
    """The rows up to one that is none, of which `refused` is told: a quote that is never closed, say."""
    try:
        yield from rows
    except csv.Error as e:
        refused.append(f"cannot be read from line {rows.line_num + 1} on: {e}")


def read_jsonl(text: str) -> WrittenScalars:
    """As `read_csv`, of an object a line; nested ones as `a.b`."""
    last = bad = 0

    def rows() -> Iterator[Mapping[str, object]]:
        nonlocal last, bad
        for last, line in enumerate(_lines(text), 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                bad = last
                continue
            if isinstance(row, dict):
                yield _flat(row)

    found = _of_rows(rows())
    if bad:
        found.note = f"line {bad} is no JSON" if bad < last else "ends in the middle of a line"
    return found


_LIST = regex(r"\[\s*\{")
_TRACED = {"ph", "ts", "traceEvents"}
_EVENT = {"iter", "metric", "variant", "value"}
_HEAD = 64 << 10
_COLUMN = regex(r"\"[\w./ -]{0,60}loss[\w./ -]{0,60}\"\s*:\s*(?:\[\s*)?(?:[-\d]|NaN|Inf|null)", re.I)
"""A loss, or a list of losses."""
_CLOCKS = ("elapsed_time", "time_elapsed", "_runtime")


def records_in(text: str) -> tuple[list[Mapping[str, object]], str | None]:
    """Return the flat records of a JSON document, and where it breaks off, if it does; none of a document
    that is not of a training.

    They are those of the first list with a loss and a counter, of lists of events with a name and a value
    each, the rows of columns (`{"loss": [2.5, 2.1]}`), or one summary with a loss and a counter.
    """
    decoder = json.JSONDecoder()
    for start in islice(_LIST.finditer(text), MAX_LISTS):
        rows: list[Mapping[str, object]] = []
        at, note = start.end() - 1, None
        while text[at : at + 1] == "{":
            try:
                row, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                note = f"is cut off in record {len(rows) + 1}"
                break
            rows.append(_flat(row))
            at = _NEXT.match(text, at).end()  # type: ignore[union-attr]
        if rows and rows[0].keys() >= _EVENT:
            return _of_events(text)
        if rows and _of_training(rows[0]):
            return rows, note
    return _of_object(text), None


def _of_events(text: str) -> tuple[list[Mapping[str, object]], str | None]:
    """Read ClearML's events, a list a line: the name of a figure is its metric and variant."""
    rows: list[Mapping[str, object]] = []
    for line in _lines(text):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return rows, "ends in the middle of a line"
        events = [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []
        rows += [
            {"iter": e["iter"], f"{e['variant']}/{e['metric']}": e["value"]}
            for e in events
            if e.keys() >= _EVENT and not str(e["metric"]).startswith(":")
        ]
    return rows, None


def _of_object(text: str) -> list[Mapping[str, object]]:
    """Return the rows of an object of columns, or the object itself if it sums a training up."""
    if not _COLUMN.search(text[:_HEAD]):
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, dict):
        return []
    columns = {n: v for n, v in found.items() if isinstance(v, list) and any(map(_is_number, v[:1]))}
    if any(classify(name).kind == "loss" for name in columns):
        count = max(map(len, columns.values()))
        return [{n: v[at] for n, v in columns.items() if at < len(v)} for at in range(count)]
    flat = _flat(found)
    return [flat] if _of_training(flat) else []


def _is_number(value: object) -> bool:
    return value is None or as_number(value) is not None


def _of_training(row: Mapping[str, object]) -> bool:
    kinds = {classify(name).kind for name, value in row.items() if as_number(value) is not None}
    return not _TRACED & row.keys() and "loss" in kinds and bool(kinds & {"step", "epoch", "other"})


def as_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[tuple[bytes, float | None]]:
    """Yield each record as a line of a log, with the seconds since launch that it names."""
    for row in rows:
        clock = next((found for name in _CLOCKS if (found := as_number(row.get(name))) is not None), None)
        yield json.dumps(row).encode() + b"\n", clock


def _flat(row: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, dict) and prefix.count(".") < 4:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _of_rows(rows: Iterable[Mapping[str, object]]) -> WrittenScalars:
    found, ranks = WrittenScalars(), _Ranks()
    for number, row in enumerate(rows):
        if number >= MAX_ROWS:
            found.note = f"has more than {MAX_ROWS} rows"
            break
        values = {name: value for name, text in row.items() if (value := as_number(text)) is not None}
        step = _position(values, number, ranks)
        for name, value in values.items():
            found.add(name, step, value)
    return found


class _Ranks(dict[str, "int | None"]):
    """How well each column counts what was done, looked at once: None if it does not."""

    def __missing__(self, name: str) -> int | None:
        self[name] = _rank(name)
        return self[name]


def _position(values: Mapping[str, float], row: int, ranks: _Ranks) -> int:
    counters = [
        (rank, value)
        for name, value in values.items()
        if (rank := ranks[name]) is not None and value >= 0 and isfinite(value)
    ]
    return int(min(counters, key=lambda one: one[0])[1]) if counters else row


def _rank(name: str) -> int | None:
    found = quantity(name)
    if found is not None and found.kind == "count" and found.unit == WorkName.ENVIRONMENT_STEPS:
        return found.tier
    return 9 if classify(name).kind == "step" else None
