"""samples.csv, and other monitors' CSVs: reading rows back without trusting them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import PurePath
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.samples.row import HostReading

# Columns of a training program's own table, which may list utilisation among its metrics.
METRICS = frozenset({"loss", "train_loss", "step", "global_step", "epoch"})
_FROM_FIRST_ROW = frozenset({"timestamp", "datetime"})
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
# A number of at least this is a time of day since 1970; the unit follows from its size.
_EPOCH = 1e8
EPOCH_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (_EPOCH, 1.0))
_DATE = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)


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
# What other monitors call our columns, after `_plain`; where one name could mean two things it is not here.
_NAMES = {name: (name,) for name in _COLUMNS} | {
    "elapsed": (
        *("elapsed", "elapsed_s", "elapsed_sec", "elapsed_seconds", "elapsed_time"),
        *("timestamp", "datetime", "time", "time_s"),
    ),
    "gpu_util": (
        *("gpu_util", "gpu_util_percent", "gpu_util_pct", "gpu_utilization", "gpu_utilization_percent"),
        *("gpu_utilization_pct", "gpu_utilisation", "utilization_gpu"),
    ),
    "mem_used_mb": (
        *("mem_used_mb", "mem_used_mib", "memory_used", "memory_used_mb", "memory_used_mib"),
        *("gpu_mem_used_mb", "gpu_memory_used_mb"),
    ),
    "gpu_index": ("gpu_index", "gpu_id", "index"),
    "gpu_uuid": ("gpu_uuid", "uuid"),
}


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
    """Tell whether text starts with a header of samples.csv, ours or another monitor's."""
    return _columns(head.split("\n", 1)[0]) is not None


def read_samples(lines: Iterable[str], file: str) -> SampleTable:
    """Parse samples.csv, each line with its newline; of an open text file no line is read beyond a cap.

    The seed monitor's five columns, nvidia-smi's and alike are read too: a time of day (ISO 8601 or since
    1970) becomes seconds since the first row. Raises GpudebugError if the header is not one of samples.
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
    from_first_row: bool


def _columns(header: str) -> _Columns | None:
    names = [_plain(cell) for cell in header.lstrip("\ufeff").split(",")]
    at = {}
    for column, spellings in _NAMES.items():
        found = next((s for s in spellings if s in names), None)
        if found is not None:
            at[column] = names.index(found)
    if "elapsed" not in at or "gpu_util" not in at or METRICS.intersection(names):
        return None
    return _Columns(at, len(names), names[at["elapsed"]] in _FROM_FIRST_ROW)


def _plain(name: str) -> str:
    """`utilization.gpu [%]` -> `utilization_gpu`."""
    # Another opening bracket ends the try: one try for each would take as long as the square of their number.
    name = re.sub(r"\[[^\[\]]*\]|\([^()]*\)", "", name.strip().strip('"').lower())
    return re.sub(r"[.\s%_-]+", "_", name).strip("_")


class _Rows:
    """Reads the rows of one file; the first one says what kind of time the file counts."""

    def __init__(self, columns: _Columns) -> None:
        self._columns = columns
        self._plan = [(_PARSERS.get(name, _number), columns.at.get(name, _ABSENT)) for name in _COLUMNS[1:]]
        if "new_samples" not in columns.at:
            self._plan[_COLUMNS.index("new_samples") - 1] = (lambda _: 1, _ABSENT)
        self._unit = 1.0
        self._start: float | None = None
        self._dated = False

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
        # Last, so that a row that is refused does not set the start.
        return Sample(self._elapsed(cells[self._columns.at["elapsed"]]), *found)

    def _elapsed(self, text: str) -> float:
        date = _DATE.fullmatch(text) if ":" in text else None
        time = _since_1970(date) if date else _figure(text)
        if time is None:
            raise ValueError(text)
        if self._start is None:
            absolute = time >= _EPOCH
            if absolute and not date:
                self._unit = next(unit for least, unit in EPOCH_UNITS if time >= least)
            self._start = time if absolute or self._columns.from_first_row else 0.0
            self._dated = date is not None
        if self._dated is not (date is not None):
            raise ValueError(text)
        elapsed = (time - self._start) * self._unit
        if elapsed < 0:
            raise ValueError(text)
        return elapsed


def _since_1970(date: re.Match[str]) -> float:
    """Seconds since 1970 of a date that `_DATE` matched; UTC if it names no offset."""
    year, month, day, clock, fraction, offset = date.groups()
    zone = "+00:00" if offset in (None, "Z") else f"{offset[:3]}:{offset[-2:]}"
    moment = datetime.fromisoformat(f"{year}-{month}-{day}T{clock}{zone}").astimezone(timezone.utc)
    return moment.timestamp() + float(f"0.{fraction or 0}")


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
    """Return a finite decimal number in ASCII; None if the cell is empty or says that it has none."""
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
    if not math.isfinite(value):
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


def column_of(name: str) -> str | None:
    """Return which of our columns other monitors call so."""
    plain = _plain(name)
    return next((column for column, spellings in _NAMES.items() if plain in spellings), None)


def since_1970(text: str) -> float | None:
    """Seconds of a date and a time of day, in UTC if it names no offset; None if it is none."""
    date = _DATE.fullmatch(text)
    try:
        return _since_1970(date) if date else None
    except ValueError:
        return None


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
