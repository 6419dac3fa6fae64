"""What `nvidia-smi`, `dcgmi dmon` and CSVs of other monitors recorded, as rows in the columns of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.columns import (
    ADD,
    CSV,
    DCGMI,
    DMON,
    NVIDIA_SMI,
    PMON,
    MonitorColumns,
    columns_of,
    dmon_columns,
    looks_headerless,
    moment,
    number,
    query_columns,
    throttle,
    whole,
)
from gpudebug.core.samples.row import COLUMNS, TEXTS, WHOLE, DeviceReading
from gpudebug.core.samples.table import EPOCH_UNITS, MOST_ROWS, capped

_PEEK = 400
_DAY = 86_400.0
_TICK_S = 1.0
"""What dmon waits between two readings unless `-d` says otherwise, as dcgmi's does."""
_ENTITY = re.compile(
    r"\s*(GPU|GPU-I|GPU-CI|GPU_I|GPU_CI|Switch|CPU|CPU Core|Link|NvSwitch)\s+(\d{1,4})(?=\s|$)"
)
_UNIT_LINE = re.compile(r"#?\s*(ID|Id|Idx|YYYYMMDD|HH:MM:SS)\b")
OWN = "new_samples"
"""A column that only our own sampler writes."""


@dataclass(slots=True)
class Stretched:
    """Rows that one header stands for, in order: `times` in seconds, `keys` what tells their GPUs apart."""

    columns: MonitorColumns
    line: int
    times: list[float] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    readings: list[DeviceReading] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MonitorRows:
    """All that was read of a file. `unreadable` counts lines, `notes` say what was left out or assumed."""

    source: str
    parts: list[Stretched]
    unreadable: int
    notes: list[str]
    timed: bool


def recognised(head: str) -> str | None:
    """Return which monitor's recording begins so; None if it is none, or one of our own sampler."""
    lines = [line for line in head.lstrip("\ufeff").splitlines()[:8] if line.strip()]
    if not lines:
        return None
    if lines[0].lstrip().startswith("#"):
        found = dmon_columns(_words(lines[0]))
        return found.source if found else None
    cells = _cells(lines[0])
    if OWN in cells:
        return None
    found = query_columns(cells)
    if found is not None and ("elapsed" in found.at or found.source != CSV):
        return found.source
    # A last line may be cut where the head ends.
    return NVIDIA_SMI if looks_headerless(lines[:-1] or lines) else None


def read_monitor(lines: Iterable[str], file: str) -> MonitorRows:
    """Read a recording that is `recognised`. Raises GpudebugError if what it lacks cannot be assumed."""
    iterator = capped(lines)
    peeked = list(islice(iterator, _PEEK))
    reader = _Reader(file)
    first = next((line for line in peeked if line.strip()), "").lstrip("\ufeff")
    if not first.lstrip().startswith("#") and query_columns(_cells(first)) is None:
        columns, note = columns_of([line for line in peeked if line.strip() and line.endswith("\n")])
        if columns is None:
            raise GpudebugError(note, file=file, next=ADD)
        reader.notes.append(note)
        reader.begin(columns, 1)
    for count, line in enumerate(chain(peeked, iterator), start=1):
        if count > MOST_ROWS:
            raise GpudebugError(
                f"has more than {MOST_ROWS:,} rows", file=file, next="is this the right file?"
            )
        reader.take(line.lstrip("\ufeff") if count == 1 else line, count)
    return reader.finish()


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"').strip() for cell in line.rstrip("\r\n").split(",")]


def _words(line: str) -> list[str]:
    """Return those of a line of dmon, whether its columns are aligned or a CSV."""
    text = line.strip().lstrip("#").strip()
    return [w.strip() for w in text.split(",")] if "," in text else text.split()


class _Reader:
    """Takes the lines of one file in order."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.notes: list[str] = []
        self._parts: list[Stretched] = []
        self._unreadable = 0
        self._odd: tuple[int, int, int] | None = None
        self._others: dict[str, int] = {}
        self._seen: set[str] = set()
        self._tick = 0
        self._day = 0.0
        self._unit: float | None = None
        self._gract = False

    def begin(self, columns: MonitorColumns, line: int) -> None:
        """A header: the rows that follow have these columns."""
        if self._parts and self._parts[-1].columns == columns:
            self._parts[-1].repeats.append(len(self._parts[-1].readings))
            return
        if columns.source == PMON:
            raise GpudebugError(
                "is a recording of nvidia-smi pmon: of processes, not of GPUs",
                file=self.file,
                next="record nvidia-smi dmon -o DT, or --query-gpu=timestamp,index,utilization.gpu,…",
            )
        if "elapsed" not in columns.at and columns.source not in (DMON, DCGMI):
            raise GpudebugError(
                "has no time of its rows",
                file=self.file,
                line=line,
                next="record again with --query-gpu=timestamp,index,utilization.gpu,…",
            )
        if self._parts:
            self.notes.append(f"the columns change at line {line}: what follows is a recording of its own")
        self._parts.append(Stretched(columns, line))
        self._seen = set()
        self._tick += 1

    def take(self, line: str, count: int) -> None:
        if not line.strip():
            return
        if line.lstrip().startswith("#") or _UNIT_LINE.match(line.lstrip()):
            found = dmon_columns(_words(line)) if line.lstrip().startswith("#") else None
            if found is not None:
                self.begin(found, count)
            return
        if not self._parts:
            found = query_columns(_cells(line))
            if found is not None:
                self.begin(found, count)
            return
        # A last line without its end was cut while it was written.
        if line.endswith("\n") and self._row(line):
            return
        found = query_columns(_cells(line)) if self._parts[-1].columns.source not in (DMON, DCGMI) else None
        if found is not None and line.endswith("\n"):
            self.begin(found, count)
            return
        self._unreadable += 1
        width = len(self._split(line))
        if line.endswith("\n") and width != self._parts[-1].columns.width and self._odd is None:
            self._odd = (count, width, self._parts[-1].columns.width)

    def _split(self, line: str) -> list[str]:
        source = self._parts[-1].columns.source
        if source == DCGMI:
            return _ENTITY.sub(lambda m: f"{m.group(1).replace(' ', '')}:{m.group(2)}", line, count=1).split()
        return _words(line) if source == DMON else _cells(line)

    def _row(self, line: str) -> bool:
        """Take in a row; False if it is none."""
        part = self._parts[-1]
        cells = self._split(line)
        if len(cells) != part.columns.width:
            return False
        entity = cells[part.columns.at["entity"]] if "entity" in part.columns.at else ""
        kind, _, index = entity.partition(":")
        if entity and kind != "GPU":
            self._others[kind] = self._others.get(kind, 0) + 1
            return bool(index)
        try:
            values = {
                c: _value(c, cells[at], part.columns) for c, at in part.columns.at.items() if c in COLUMNS
            }
            key = index or _key(part.columns, cells)
            values["gpu_util"] = self._utilisation(values.get("gpu_util"), part.columns, cells)
            time = self._time(part.columns, cells, key)
        except ValueError:
            return False
        if index:
            values["gpu_index"] = int(index)
        values["elapsed"] = time
        values.setdefault("new_samples", 1)
        if not values.get("gpu_uuid"):
            values["gpu_uuid"] = _name(part.columns, cells)
        part.times.append(time)
        part.keys.append(key)
        part.readings.append(DeviceReading(**values))
        return True

    def _utilisation(self, value: Any, columns: MonitorColumns, cells: Sequence[str]) -> float | None:
        if "gpu_util" not in columns.at and "gract" in columns.at:
            ratio = number(cells[columns.at["gract"]])
            value, self._gract = (None if ratio is None else 100 * ratio), True
        if value is not None and not 0 <= value <= 100:
            raise ValueError(value)
        return None if value is None else float(value)

    def _time(self, columns: MonitorColumns, cells: Sequence[str], key: str) -> float:
        at = columns.at
        if columns.source in (DMON, DCGMI):
            if "time" in at:
                return self._clock(cells[at["time"]], cells[at["date"]] if "date" in at else None)
            if key in self._seen:
                self._seen, self._tick = set(), self._tick + 1
            self._seen.add(key)
            return self._tick * _TICK_S
        time = moment(cells[at["elapsed"]])
        if time is None:
            raise ValueError(cells)
        if self._unit is None:
            self._unit = next((unit for least, unit in EPOCH_UNITS if time >= least), 1.0)
        return time * self._unit

    def _clock(self, time: str, date: str | None) -> float:
        """Seconds of dmon's time of day, on over midnight if no date stands beside it."""
        day = re.sub(r"^(\d{4})/?(\d\d)/?(\d\d)$", r"\1-\2-\3", date) if date else "1970-01-02"
        found = moment(f"{day} {time}")
        if found is None:
            raise ValueError(time)
        if date:
            return found
        last = self._parts[-1].times[-1] if self._parts[-1].times else found
        if found + self._day < last - _DAY / 2:
            self._day += _DAY
        return found + self._day

    def finish(self) -> MonitorRows:
        parts = [part for part in self._parts if part.readings]
        source = (parts or self._parts)[0].columns.source if self._parts else CSV
        timed = all("elapsed" in p.columns.at or "time" in p.columns.at for p in parts)
        if not timed:
            self.notes.append(
                f"its rows have no time: one second a tick is assumed, {source}'s own delay"
                + (" (record with -o DT)" if source == DMON else "")
            )
        if self._gract:
            self.notes.append("gpu_util is GRACT, the share of time with the graphics engine active")
        if self._others:
            kinds = ", ".join(f"{count} rows of {kind}" for kind, count in sorted(self._others.items()))
            self.notes.append(f"left out: {kinds}")
        if self._odd:
            line, found, named = self._odd
            self.notes.append(f"at line {line} a row has {found} cells where the header names {named}")
        if self._unreadable:
            rows = "row" if self._unreadable == 1 else "rows"
            self.notes.append(f"{self._unreadable:,} {rows} could not be read")
        return MonitorRows(source, parts, self._unreadable, self.notes, timed)


def _value(column: str, cell: str, columns: MonitorColumns) -> Any:
    if column == "elapsed":
        return None
    if column == "throttle":
        return throttle(cell)
    if column in TEXTS:
        return cell.replace(",", " ") or None
    if column in WHOLE:
        return whole(cell)
    return number(cell, column, columns.units.get(column))


def _key(columns: MonitorColumns, cells: Sequence[str]) -> str:
    """Return what tells a GPU from the others of its tick; nothing if no column does."""
    found = (columns.at.get(c) for c in ("gpu_uuid", "bus_id", "serial", "gpu_index", "bus"))
    return next((cells[at] for at in found if at is not None and cells[at]), "")


def _name(columns: MonitorColumns, cells: Sequence[str]) -> str | None:
    found = (columns.at.get(c) for c in ("bus_id", "serial", "bus"))
    return next((cells[at].replace(",", " ") for at in found if at is not None and cells[at]), None)
