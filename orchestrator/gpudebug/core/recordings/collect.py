"""Rows of a recording, gathered: which GPU each is of, and when it was read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.cells import days_first
from gpudebug.core.recordings.names import GRACT, SHARES
from gpudebug.core.recordings.rows import Reading, RecordedClock, readings
from gpudebug.core.recordings.sources import COMPUTE_APPS, DMON, OTHERS, PMON, delay_of
from gpudebug.core.recordings.tables import NamedColumns
from gpudebug.core.samples.row import COLUMNS, DeviceReading
from gpudebug.core.words import counted

# Rows of one tick lie this much closer than ticks do, in most groups: a monitor stalls now and
# then, and half of what comes in eights looks like fours.
_CLOSE = 1 / 3
_GROUPS = 0.6
MOST_GPUS = 16
# So few rows, some of them so much closer than others, may be of several GPUs.
_LEAST_ROWS = 12
_BURST = 0.05
_LOOKED_AT = 600
_NONE = ("0", "0.0")
"""GPUs of a host that has none: its utilisation is no 0."""


class Row(NamedTuple):
    """One device at one time: `key` tells it from others, None if that is not known."""

    time: float
    key: str | None
    reading: DeviceReading
    shares: Mapping[str, float | None] = {}


@dataclass(slots=True)
class RowStretch:
    """Rows of the same columns, in order; `repeats` are rows in front of which the header stands again.

    `timed` is `clock`, `stamps` (dates between the rows), `assumed` (the monitor's own delay) or `order`.
    """

    columns: NamedColumns
    line: int
    rows: list[Row] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)
    timed: str = "clock"

    @property
    def times(self) -> list[float]:
        return [row.time for row in self.rows]


@dataclass(slots=True)
class MonitorRows:
    """All that was read of a file. `unreadable` counts lines, `notes` say what was left out or assumed.

    `between` says what tells one part from the next, `from_launch` is whether its times count from a launch,
    `dated` whether they are of a calendar. `without` counts rows of a host without a GPU.
    """

    source: str
    parts: list[RowStretch]
    unreadable: int
    notes: list[str]
    version: str | None = None
    from_launch: bool = False
    dated: bool = False
    headers: int = 0
    without: int = 0
    between: str = "the columns change"

    @property
    def timed(self) -> bool:
        return all(part.timed != "order" for part in self.parts)


@dataclass(slots=True)
class _Gathered:
    """Rows of one stretch before their GPUs and times are settled: `stamp` of each, of which date,
    its `tick`, and its cells that are `words` if no column that is known tells GPUs apart."""

    part: RowStretch
    stamps: list[float | None] = field(default_factory=list)
    dates: list[int] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    words: list[Sequence[str]] = field(default_factory=list)


class Collector:
    """Takes headers, dates and rows of one file in order."""

    def __init__(self, other: str) -> None:
        self.other = other
        self.notes: list[str] = []
        self.unreadable = 0
        self.headers = 0
        self.clock = RecordedClock()
        self._gathered: list[_Gathered] = []
        self._stamp: float | None = None
        self._dates = 0
        self._stamp_clock = RecordedClock()
        self._seen: set[str] = set()
        self._tick = 0
        self._others: Counter[str] = Counter()
        self._without = 0

    def dates_as_in(self, text: str) -> None:
        """Read dates with the day in front if one of these has it there."""
        self.clock.day_first = self._stamp_clock.day_first = days_first(text)

    @property
    def columns(self) -> NamedColumns | None:
        return self._gathered[-1].part.columns if self._gathered else None

    def begin(self, columns: NamedColumns, line: int) -> None:
        """A header: the rows that follow have these columns."""
        self.headers += 1
        last = self._gathered[-1].part if self._gathered else None
        if last is not None and last.columns.layout == columns.layout:
            last.repeats.append(len(last.rows))
            self.block()
            return
        if last is not None and last.rows:
            self.notes.append(f"the columns change at line {line}: what follows is a recording of its own")
        self._gathered.append(_Gathered(RowStretch(columns, line)))
        self.block()

    def stamp(self, cell: str) -> None:
        """A date on a line of its own: what follows was read then."""
        try:
            self._stamp = self._stamp_clock.seconds(cell)
        except ValueError:
            return
        self._dates += 1
        self.block()

    def block(self) -> None:
        """What follows is no more of the same reading, unless a column says so."""
        if self._gathered:
            self._gathered[-1].blocks.append(len(self._gathered[-1].part.rows))
        if self.columns is not None and not self.columns.identity:
            self._seen.clear()
            self._tick += 1

    def take(self, cells: Sequence[str], of_row: NamedColumns | None = None) -> bool:
        """Take in a row of the last header, or of columns of its own; False if it is none."""
        gathered = self._gathered[-1]
        columns = of_row or gathered.part.columns
        if len(cells) != columns.width:
            return False
        entity = cells[columns.places[of.ENTITY]] if of.ENTITY in columns.quantities else ""
        kind, _, number = entity.partition(":")
        if entity and kind != "GPU":
            self._others[kind] += 1
            return bool(number)
        if of.COUNT in columns.quantities and cells[columns.places[of.COUNT]].strip() in _NONE:
            self._without += 1
            return True
        try:
            found = readings(columns.figures, cells)
            time = self._time(columns, cells) if columns.timed else 0.0
        except ValueError:
            return False
        if entity and not number:
            return False
        for one in found:
            self._put(gathered, one, time)
        if not columns.identity:
            gathered.words += [[cell if cell[:1].isalpha() else "" for cell in cells]] * len(found)
        return True

    def _time(self, columns: NamedColumns, cells: Sequence[str]) -> float:
        places = columns.places
        date = cells[places[of.DATE]] if of.DATE in places else None
        place = places[of.TIME]
        return self.clock.seconds(cells[place], date, dict(columns.figures)[place].unit)

    def _put(self, gathered: _Gathered, one: Reading, time: float) -> None:
        if one.key in self._seen:
            self._seen.clear()
            self._tick += 1
        if gathered.part.columns.identity:
            self._seen.add(one.key)
        gathered.part.rows.append(_row(one, time))
        gathered.stamps.append(self._stamp)
        gathered.dates.append(self._dates)
        gathered.ticks.append(self._tick)

    def finish(self) -> MonitorRows:
        """Settle of which GPU each row is, and when it was read."""
        kept = [one for one in self._gathered if one.part.rows]
        for one in kept:
            note = _settle(one)
            self.notes += [note] if note and note not in self.notes else []
        parts = [one.part for one in kept]
        for part in parts:
            self._doubt_shares(part)
        shown = kept or self._gathered
        source = shown[0].part.columns.source if shown else self.other
        self._remark(parts, source)
        first = parts[0].timed if parts else "clock"
        clock = self._stamp_clock if first == "stamps" else self.clock
        return MonitorRows(
            source,
            parts,
            self.unreadable,
            self.notes,
            from_launch=first == "clock" and clock.counts_from_launch and source in OTHERS,
            dated=first in ("clock", "stamps") and clock.dated,
            headers=self.headers,
            without=self._without,
        )

    def _doubt_shares(self, part: RowStretch) -> None:
        """Drop a utilisation of 0 to 1 without a unit: percent of an idle GPU, or shares of a busy one."""
        if part.columns.source not in OTHERS or any(
            one.quantity == "gpu_util" and one.unit for _, one in part.columns.figures
        ):
            return
        values = [row.reading.gpu_util for row in part.rows if row.reading.gpu_util is not None]
        if values and max(values) <= 1 and any(0 < value < 1 for value in values):
            part.rows = [row._replace(reading=row.reading._replace(gpu_util=None)) for row in part.rows]
            self.notes.append("its utilisation is 0 to 1: whether that is percent or a share is unknown")

    def _remark(self, parts: Sequence[RowStretch], source: str) -> None:
        delayed = next((part.columns.source for part in parts if part.timed == "assumed"), None)
        if delayed is not None:
            self.notes.append(
                f"its rows have no time: one second a tick is assumed, {delayed}'s own delay"
                + (" (record with -o DT)" if delayed in (DMON, PMON) else "")
            )
        if any(part.columns.only_power for part in parts):
            self.notes.append("its power is taken for a GPU's: no name in it says of what it is")
        if source == "codecarbon":
            self.notes.append("its figures are of all GPUs together")
        if any(part.timed == "order" for part in parts) and sum(len(p.rows) for p in parts) > 1:
            self.notes.append("its rows have no time: no period, no gaps and no window are known")
        if any(GRACT in part.columns.quantities for part in parts):
            self.notes.append("gpu_util is GRACT, the share of time with the graphics engine active")
        if source in (PMON, COMPUTE_APPS):
            self.notes.append("its rows are of processes: what each GPU did is not in the file")
        if self._others:
            kinds = ", ".join(f"{count} rows of {kind}" for kind, count in sorted(self._others.items()))
            self.notes.append(f"left out: {kinds}")


def _row(one: Reading, time: float) -> Row:
    values = dict(one.values)
    shares = {name: values.pop(name, None) for name in SHARES if name in values}
    gract = values.pop(GRACT, None)
    if gract is not None:
        values.setdefault("gpu_util", 100 * gract if gract <= 1 else gract)
    known = {name: value for name, value in values.items() if name in COLUMNS}
    reading = DeviceReading(
        elapsed=time, gpu_index=one.index, gpu_uuid=one.label or None, new_samples=1, **known
    )
    return Row(time, one.key, reading, shares)


def _settle(gathered: _Gathered) -> str | None:
    """Give each row its time and its GPU; return what was assumed."""
    part = gathered.part
    if not part.columns.timed:
        times = _untimed(gathered)
        part.rows = [row._replace(time=time) for row, time in zip(part.rows, times, strict=True)]
    if _counts_rows(part):
        part.rows = [Row(r.time, "", r.reading._replace(gpu_index=None), r.shares) for r in part.rows]
    elif part.columns.identity:
        if any(row.key for row in part.rows):
            part.rows = [row if row.key else row._replace(key=None) for row in part.rows]
        return None
    blocks = _blocks(gathered)
    if not blocks:
        part.rows = [row._replace(key=None) for row in part.rows]
        return None
    sizes = Counter(len(block) for block in blocks)
    size, _ = sizes.most_common(1)[0]
    if size == 1:
        return None
    whole = [block for block in blocks if len(block) == size]
    place = _telling_column(gathered, whole)
    if place is not None:
        named = zip(part.rows, gathered.words, strict=True)
        part.rows = [row._replace(key=cells[place]) for row, cells in named]
        name = part.columns.names[place]
        return (
            f"its rows are told apart by column {name!r}: whether each is of another GPU is not in the file"
        )
    keys: list[str | None] = [None] * len(part.rows)
    for block in whole:
        for position, at in enumerate(block):
            keys[at] = str(position)
    part.rows = [row._replace(key=key) for row, key in zip(part.rows, keys, strict=True)]
    order = f"no column tells its {size} GPUs apart: they are numbered by their order"
    if len(whole) == len(blocks):
        return order
    odd = len(blocks) - len(whole)
    return (
        f"{order}; {odd} of {counted(len(blocks), 'reading')} have not {size} rows, so it is not known of "
        "which GPU they are: figures by GPU are without them"
    )


def _counts_rows(part: RowStretch) -> bool:
    """Whether an index that should tell GPUs apart is the number of the row: no two rows have the same."""
    if part.columns.quantities & {*of.IDENTITIES, of.HOST} != {of.INDEX}:
        return False
    return len(part.rows) > MOST_GPUS and len({row.reading.gpu_index for row in part.rows}) == len(part.rows)


def _telling_column(gathered: _Gathered, blocks: Sequence[range]) -> int | None:
    """Return the first column that names each row of a reading, with the same names in all of them."""
    for at, name in enumerate(gathered.part.columns.names if gathered.words else ()):
        each = [{gathered.words[row][at] for row in block} for block in blocks]
        alike = len(each[0]) == len(blocks[0]) and all(one == each[0] for one in each)
        if name and alike and all(each[0]):
            return at
    return None


def _untimed(gathered: _Gathered) -> list[float]:
    """Return times of rows without a column of time: of dates between them, of ticks, or of their order."""
    part = gathered.part
    delay = delay_of(part.columns.source)
    stamps = [stamp for stamp in gathered.stamps if stamp is not None]
    by_key = Counter(row.key for row in part.rows)
    several = len(set(stamps)) > 1 or max(by_key.values()) == 1 or not part.columns.identity
    if delay is None and len(stamps) == len(part.rows) and several and _stamped_blocks(gathered):
        part.timed = "stamps"
        return _within_seconds(stamps, gathered.dates)
    part.timed = "order" if delay is None else "assumed"
    ticks = gathered.ticks if part.columns.identity or delay is None else range(len(part.rows))
    return [(tick - ticks[0]) * (delay or 1.0) for tick in ticks]


def _within_seconds(stamps: Sequence[float], dates: Sequence[int]) -> list[float]:
    """Return times of rows: several dates of one second lie evenly in it."""
    alike = defaultdict[float, dict[int, int]](dict)
    for stamp, date in zip(stamps, dates, strict=True):
        alike[stamp].setdefault(date, len(alike[stamp]))
    return [stamp + alike[stamp][date] / len(alike[stamp]) for stamp, date in zip(stamps, dates, strict=True)]


def _stamped_blocks(gathered: _Gathered) -> bool:
    """Whether no date has more rows than a host has GPUs."""
    counts = Counter((row.key, date) for row, date in zip(gathered.part.rows, gathered.dates, strict=True))
    most = max(counts.values())
    return most == 1 if gathered.part.columns.identity else most <= MOST_GPUS


def _blocks(gathered: _Gathered) -> list[range]:
    """Return the rows that were read together, where no column tells their GPUs apart; none if they are too
    few to show it."""
    rows = gathered.part.rows
    each = [range(at, at + 1) for at in range(len(rows))]
    if gathered.part.timed == "clock":
        return _close_rows(gathered.part.times, each)
    edges = sorted({0, *gathered.blocks, len(rows)})
    blocks = [range(begin, end) for begin, end in pairwise(edges) if end > begin]
    sizes = Counter(map(len, blocks))
    _, count = sizes.most_common(1)[0]
    alone = len(blocks) == 1 and gathered.part.timed != "stamps"
    if alone or max(sizes) > MOST_GPUS or count < _GROUPS * len(blocks):
        return each
    return blocks


def _close_rows(times: Sequence[float], each: list[range]) -> list[range]:
    """Return the ticks of rows that come several together, `each` row if they come one by one."""
    count = rows_a_tick(times)
    if count == 1:
        gaps = [abs(after - before) for before, after in pairwise(times)]
        burst = len(gaps) > 0 and min(gaps) < _BURST * max(gaps) and len(times) < _LEAST_ROWS
        return [] if burst else each
    near = _CLOSE * (times[-1] - times[0]) * count / len(times)
    edges = [0, *(at for at, (a, b) in enumerate(pairwise(times), start=1) if abs(b - a) > near), len(times)]
    return [range(begin, end) for begin, end in pairwise(edges) if end > begin]


def rows_a_tick(times: Sequence[float]) -> int:
    """Return how many rows come together, over and over; 1 if they come one by one."""
    gaps = [after - before for before, after in pairwise(times[:_LOOKED_AT])]
    for count in range(2, MOST_GPUS + 1):
        for phase in range(count):
            groups = [gaps[at : at + count] for at in range(phase, len(gaps) - count + 1, count)]
            if len(groups) < 3:
                break
            close = sum(max(g[:-1]) <= _CLOSE * g[-1] and g[-1] > 0 for g in groups)
            if close >= _GROUPS * len(groups):
                return count
    return 1
