"""Figures that a training writes into tables: CSV with a head, and one JSON object a line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite

from gpudebug.core.trainlog.logger_files import WrittenScalars
from gpudebug.core.trainlog.names import classify
from gpudebug.core.trainlog.quantities import quantity
from gpudebug.core.trainlog.text import as_number
from gpudebug.core.words import WorkName

MAX_ROWS = 200_000
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n)|([^\r\n]+)\Z")


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
