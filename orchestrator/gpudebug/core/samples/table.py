"""samples.csv: reading rows back without trusting them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.samples.row import HostReading

# Columns of a training program's own table, which may list utilisation among its metrics.
METRICS = frozenset({"loss", "train_loss", "step", "global_step", "epoch"})
_LACKING = frozenset({"n/a", "[n/a]", "[not supported]"})
_NAN = ("nan", "-nan", "+nan")
"""What other programs write for a figure that they lack; of the utilisation or the time it is an error."""

_MAX_FIELD = 1000
LONGEST_LINE = 1 << 16
MOST_LONG_LINES = 16
MOST_ROWS = 2_000_000
"""A day at four ticks a second on five devices; whatever writes more writes something else."""
MOST_DEVICES = 256
"""More than a node has: a file that names more names no devices there."""

_ABSENT = -1
LARGEST = 1e21
"""A hundred times the nanoseconds since 1970: sums and products of such figures are numbers still."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One device's readings at one tick; a field is None if the cell was empty."""

    elapsed: float
    gpu_util: float | None
    mem_used_mb: float | None
    gpu_index: int
    gpu_uuid: str
    new_samples: int | None
    rss_mb: float | None
    log_bytes: int | None
    sm_clock_mhz: float | None = None
    throttle: str | None = None
    foreign_procs: int | None = None
    foreign_cpu: float | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None
    cpu_util: float | None = None
    cpu_wait: float | None = None
    cpu_throttled: float | None = None
    cpu_stolen: float | None = None
    foreign_demand: float | None = None
    mem_util: float | None = None
    mem_total_mb: float | None = None
    power_w: float | None = None
    mem_clock_mhz: float | None = None
    temperature_c: float | None = None
    energy_j: float | None = None


_COLUMNS = tuple(f.name for f in fields(Sample))


@dataclass(slots=True)
class SampleTable:
    """Rows in file order, and how many could not be read (a torn last line, garbage).

    `refused` says why the rest of the file was not read: the rows are not the whole then.
    """

    rows: list[Sample] = field(default_factory=list)
    unreadable: int = 0
    refused: str | None = None

    @property
    def devices(self) -> list[tuple[int, str]]:
        """(index, uuid) of each device, in order of appearance."""
        return list(dict.fromkeys((r.gpu_index, r.gpu_uuid) for r in self.rows))

    @property
    def by_device(self) -> dict[tuple[int, str], list[Sample]]:
        """The rows of each device, in order of appearance."""
        return by_device(self.rows)

    @property
    def log_times(self) -> list[tuple[float, int]]:
        """(elapsed seconds, size of train.log in bytes) at each tick."""
        first = self.devices[:1]
        return [
            (r.elapsed, r.log_bytes)
            for r in self.rows
            if r.log_bytes is not None and [(r.gpu_index, r.gpu_uuid)] == first
        ]


def by_device(rows: Iterable[Sample]) -> dict[tuple[int, str], list[Sample]]:
    """Return the rows of each device, in order of appearance."""
    found: dict[tuple[int, str], list[Sample]] = {}
    for row in rows:
        found.setdefault((row.gpu_index, row.gpu_uuid), []).append(row)
    return found


def looks_like_samples(head: str) -> bool:
    """Tell whether text starts with a header of samples.csv."""
    return _columns(head.split("\n", 1)[0]) is not None


def read_samples(lines: Iterable[str], file: str) -> SampleTable:
    """Parse samples.csv, each line with its newline; of an open text file no line is read beyond a cap.

    A header may name some of its columns only. Raises GpudebugError if it is not one of samples.
    """
    iterator = capped(lines)
    columns = _columns(next(iterator, ""))
    if columns is None:
        raise GpudebugError(
            "not a samples CSV: the first line must name at least elapsed and gpu_util",
            file=file,
            line=1,
            next="record one with `gpudebug sample -o samples.csv -- CMD`",
        )
    rows = _Rows(columns)
    out = SampleTable()
    devices: set[tuple[int, str]] = set()
    long = 0
    for line in iterator:
        if len(line) >= LONGEST_LINE and (long := long + 1) > MOST_LONG_LINES:
            out.refused = f"samples.csv has lines of more than {LONGEST_LINE >> 10} KB"
            return out
        if len(out.rows) + out.unreadable >= MOST_ROWS:
            out.refused = f"samples.csv has more than {MOST_ROWS:,} rows"
            return out
        if not line.strip():
            continue
        sample = rows.read(line) if line.endswith("\n") else None
        if sample is None:
            out.unreadable += 1
            continue
        devices.add((sample.gpu_index, sample.gpu_uuid))
        if len(devices) > MOST_DEVICES:
            out.refused = f"samples.csv names more than {MOST_DEVICES} devices"
            return out
        out.rows.append(sample)
    return out


def capped(lines: Iterable[str]) -> Iterator[str]:
    """Return the lines, and of an open file a long one in pieces."""
    readline = getattr(lines, "readline", None)
    return iter(lines) if readline is None else iter(lambda: str(readline(LONGEST_LINE)), "")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where our columns are, by name, in rows of `width` cells."""

    at: dict[str, int]
    width: int


def _columns(header: str) -> _Columns | None:
    names = [cell.strip().strip('"').lower() for cell in header.lstrip("\ufeff").split(",")]
    at = {column: names.index(column) for column in _COLUMNS if column in names}
    if "elapsed" not in at or "gpu_util" not in at or METRICS.intersection(names):
        return None
    return _Columns(at, len(names))


class _Rows:
    """Reads the rows of one file."""

    def __init__(self, columns: _Columns) -> None:
        self._columns = columns
        self._plan = [(_PARSERS.get(name, _number), columns.at.get(name, _ABSENT)) for name in _COLUMNS[1:]]
        if "new_samples" not in columns.at:
            self._plan[_COLUMNS.index("new_samples") - 1] = (lambda _: 1, _ABSENT)

    def read(self, line: str) -> Sample | None:
        text = line.rstrip("\r\n")
        cells = text.split(",")
        if len(cells) != self._columns.width:
            return None
        if len(text) > _MAX_FIELD and any(len(c) > _MAX_FIELD for c in cells):
            return None
        # Our own rows have neither: this halves the time for a long file and changes no result.
        if '"' in text or text.split(None, 1) != [text]:
            cells = [c.strip().strip('"') for c in cells]
        try:
            return self._sample(cells)
        except ValueError:
            return None

    def _sample(self, cells: list[str]) -> Sample:
        # What a file has no column for.
        cells.append("")
        found = [parse(cells[place]) for parse, place in self._plan]
        return Sample(self._elapsed(cells[self._columns.at["elapsed"]]), *found)

    @staticmethod
    def _elapsed(text: str) -> float:
        time = _figure(text)
        if time is None or time < 0:
            raise ValueError(text)
        return time


def _number(text: str) -> float | None:
    """Return a figure beside the utilisation, which may be not a number."""
    return None if text.lower() in _NAN else _figure(text)


def _beside(text: str) -> float | None:
    """Return a figure that no row is refused for: another monitor may write another unit there."""
    try:
        return _number(text)
    except ValueError:
        return None


def _figure(text: str) -> float | None:
    """Return a decimal number in ASCII below LARGEST; None if the cell is empty or says that it has none."""
    if not text:
        return None
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    try:
        value = float(text)
    except ValueError:
        if text.lower() in _LACKING:
            return None
        raise
    if not abs(value) < LARGEST:
        raise ValueError(text)
    return value


def _count(text: str) -> int | None:
    number = _number(text)
    if number is None:
        return None
    if number < 0 or not number.is_integer():
        raise ValueError(text)
    return int(number)


def _utilisation(text: str) -> float | None:
    value = _figure(text.removesuffix("%"))
    if value is not None and not 0 <= value <= 100:
        raise ValueError(value)
    return value


_PARSERS: dict[str, Callable[[str], Any]] = {
    "gpu_util": _utilisation,
    "mem_used_mb": lambda text: _number(text if text[-1:] != "B" else re.sub(r" ?Mi?B$", "", text)),
    "gpu_index": lambda text: _count(text) or 0,
    "gpu_uuid": str,
    "throttle": lambda text: text or None,
    **dict.fromkeys(("new_samples", "log_bytes", "foreign_procs"), _count),
    **dict.fromkeys(_COLUMNS[_COLUMNS.index("mem_util") :], _beside),
}


def name_on(node: str, samples: str) -> str:
    """Return the file of another node beside the first one's: `samples.n1.csv` beside `samples.csv`."""
    path = PurePath(samples)
    return f"{path.stem}.{node}{path.suffix}"


_NO_HOST: dict[str, Any] = dict.fromkeys({*HostReading._fields, "log_bytes"} & {*_COLUMNS})


def joined(first: SampleTable, others: Sequence[SampleTable]) -> SampleTable:
    """Return all rows, the first node's first; of other nodes' the devices, which their UUIDs tell apart.

    What could not be read of another node's file is left to its devices, which then have too few readings.
    """
    known = {uuid for _, uuid in first.devices}
    # Of the columns of the host those of a run are its first node's.
    rows = [replace(row, **_NO_HOST) for table in others for row in table.rows if row.gpu_uuid not in known]
    return replace(first, rows=[*first.rows, *rows]) if rows else first
