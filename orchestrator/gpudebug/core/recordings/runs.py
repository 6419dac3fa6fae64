"""The runs of one recording: where one ends and another begins, each as the text of a samples.csv."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import median
from typing import NoReturn

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.columns import CSV, DCGMI, DMON, IDENTITIES
from gpudebug.core.recordings.monitors import MonitorRows, Stretched, read_monitor
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.trainlog.logger_files import SystemReading, read_wandb_system

# Without a row for so long, and for so many usual periods, nobody recorded: what follows is another run.
PAUSE_S = 30.0
PAUSE_PERIODS = 20.0
# A GPU's row so long before its last one is no jitter of a clock that is being set.
BACK_S = 1.0
# Every GPU idle, its memory given back, for so long between two busy stretches: no process was there. A
# training that loads, evaluates on the host or compiles keeps its memory. Other programs' looks at a GPU, and
# a desktop, read a few percent.
RELEASED_S = 10.0
RELEASED_SHARE = 0.1
IDLE = 5.0
# As `MIN_RUN_WINDOW_S`: what is busy for less is not a run.
BUSY_S = 5.0
# Rows of one tick lie this much closer than ticks do, in most groups: a monitor stalls now and
# then, and half of what comes in eights looks like fours.
_CLOSE = 1 / 3
_GROUPS = 0.6
_MOST_GPUS = 16
_LOOKED_AT = 600
# A job array's, or a month of nights. Text of each is shown.
MOST_RUNS = 200
# So many headers with a tick's rows between them are a loop's.
_TICKS = 3


@dataclass(frozen=True)
class RecordedRun:
    """One run: its rows with `elapsed` from its beginning, which lies `start_s` after that of the file.

    `begins` says what told it from the run before it.
    """

    rows: tuple[DeviceReading, ...]
    start_s: float
    end_s: float
    begins: str | None = None

    def text(self) -> str:
        """As samples.csv has it."""
        return HEADER + "".join(map(csv_row, self.rows))


@dataclass(frozen=True)
class MonitorRecording:
    """What a monitor recorded: at least one run. `notes` say what was assumed, left out or not read."""

    source: str
    runs: tuple[RecordedRun, ...]
    unreadable: int
    notes: tuple[str, ...]


def read_recording(lines: Iterable[str], file: str) -> MonitorRecording:
    """Return the runs of a recording that `recognised` knows.

    Raises GpudebugError if it has no row, no times, or several rows a tick that no column tells apart.
    """
    found = read_monitor(lines, file)
    if not found.parts:
        unread = f" that can be read: {'; '.join(found.notes)}" if found.unreadable else ""
        raise GpudebugError(f"has no sample{unread}", file=file, next="give a recording with rows")
    for part in found.parts:
        _refuse_unnamed(part, file)
    first = 0.0 if _counts_from_launch(found) else None
    runs: list[RecordedRun] = []
    for part in found.parts:
        why = "the columns change" if runs else None
        numbers = _numbers(part)
        for rows, reason in _runs_of(part):
            first = rows.times[0] if first is None else first
            runs.append(_run(rows, numbers, first, reason or why))
            if len(runs) > MOST_RUNS:
                _refuse_many(runs, file)
    notes = [*found.notes, *_lost(runs)]
    return MonitorRecording(found.source, tuple(runs), found.unreadable, tuple(notes))


def _counts_from_launch(found: MonitorRows) -> bool:
    """Whether times are seconds since a launch, as `elapsed` of other monitors is, and not of a clock."""
    part = found.parts[0]
    return found.source == CSV and part.times[0] < 3600 and min(part.times) >= 0


def _refuse_unnamed(part: Stretched, file: str) -> None:
    if part.columns.identity:
        return
    rows = rows_a_tick(part.times)
    if rows > 1:
        raise GpudebugError(
            f"has {rows} rows a tick and no column that tells the GPUs apart",
            file=file,
            line=part.line,
            next=f"add index (or {', '.join(IDENTITIES[1:])}) to the query and record again: nvidia-smi "
            "--query-gpu=timestamp,index,utilization.gpu,power.draw,memory.used --format=csv",
        )


def _refuse_many(runs: Sequence[RecordedRun], file: str) -> NoReturn:
    reasons = Counter(re.sub(r"\d+", "…", run.begins) for run in runs if run.begins)
    why, count = reasons.most_common(1)[0]
    raise GpudebugError(
        f"holds more than {MOST_RUNS} runs ({why} before {count} of them)",
        file=file,
        next="give the rows of one run; if several machines wrote it, record uuid with --query-gpu too: "
        "their GPUs share an index",
    )


def rows_a_tick(times: Sequence[float]) -> int:
    """Return how many rows come together, over and over; 1 if they come one by one."""
    gaps = [after - before for before, after in pairwise(times[:_LOOKED_AT])]
    for count in range(2, _MOST_GPUS + 1):
        for phase in range(count):
            groups = [gaps[at : at + count] for at in range(phase, len(gaps) - count + 1, count)]
            if len(groups) < 3:
                break
            close = sum(max(g[:-1]) <= _CLOSE * g[-1] and g[-1] > 0 for g in groups)
            if close >= _GROUPS * len(groups):
                return count
    return 1


@dataclass(slots=True)
class _Streak:
    """Rows of one header between two cuts: their places, the time of each GPU's last one, and the bounds of
    all their times. `begins` is what told them from those before."""

    begins: str | None
    rows: list[int] = field(default_factory=list)
    last: dict[str, float] = field(default_factory=dict)
    least: float = inf
    most: float = -inf

    def take(self, row: int, key: str, time: float) -> None:
        self.rows.append(row)
        self.last[key] = time
        self.least, self.most = min(self.least, time), max(self.most, time)

    def is_beside(self, other: _Streak) -> bool:
        """Tell whether it is of other GPUs at the same time."""
        together = self.least <= other.most and other.least <= self.most
        return together and self.last.keys().isdisjoint(other.last)

    def join(self, other: _Streak) -> None:
        self.rows += other.rows
        self.last |= other.last
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)


def _stretches(part: Stretched) -> list[_Streak]:
    """Rows cut where their order in the file does: where a GPU's time goes back, and at early headers.

    The rows of one GPU may stand after those of another, and two monitors with clocks of their own may write
    into one file: both are one run.
    """
    headers = set(_early_headers(part))
    found: list[_Streak] = []
    for row, (key, time) in enumerate(zip(part.keys, part.times, strict=True)):
        back = bool(found) and time < found[-1].last.get(key, time) - BACK_S
        if back or row in headers or not found:
            found.append(_Streak("the time goes back" if back else "a header in the middle" if row else None))
        found[-1].take(row, key, time)
    joined = found[:1]
    for one in found[1:]:
        if one.is_beside(joined[-1]):
            joined[-1].join(one)
        else:
            joined.append(one)
    return joined


def _in_time(part: Stretched, rows: Sequence[int]) -> Stretched:
    """These rows in the order of their times."""
    order = sorted(rows, key=part.times.__getitem__)
    return Stretched(
        part.columns,
        part.line,
        [part.times[row] for row in order],
        [part.keys[row] for row in order],
        [part.readings[row] for row in order],
    )


def _runs_of(part: Stretched) -> Iterator[tuple[Stretched, str | None]]:
    """Yield the rows of each run under one header, with what begins it."""
    usual, free = _period(part), _free_levels(part)
    longest = max(PAUSE_S, PAUSE_PERIODS * usual)
    for stretch in _stretches(part):
        rows = _in_time(part, stretch.rows)
        marks = {
            at: f"a pause of {after - before:.0f} s"
            for at, (before, after) in enumerate(pairwise(rows.times), start=1)
            if after - before > longest
        }
        for at, why in _released(rows, free):
            marks.setdefault(at, why)
        for begin, end in pairwise([0, *sorted(marks), len(rows.times)]):
            if end > begin:
                cut = slice(begin, end)
                times, keys, readings = rows.times[cut], rows.keys[cut], rows.readings[cut]
                one = Stretched(part.columns, part.line, times, keys, readings)
                yield one, marks.get(begin) or (None if begin else stretch.begins)


def _period(part: Stretched) -> float:
    """Return the usual time between two rows of one GPU."""
    last: dict[str, float] = {}
    gaps = []
    for key, time in zip(part.keys, part.times, strict=True):
        if key in last:
            gaps.append(time - last[key])
        last[key] = time
    return median(gaps) if gaps else 1.0


def _early_headers(part: Stretched) -> list[int]:
    """Return where a header stands that a monitor would not have repeated yet.

    dmon repeats its header every so many rows: the most rows between two headers are its own, and fewer end a
    run. A CSV has one header, unless a loop calls the monitor anew for each tick.
    """
    if not part.repeats:
        return []
    edges = [0, *part.repeats]
    blocks = [after - before for before, after in pairwise(edges)]
    if part.columns.source not in (DMON, DCGMI):
        a_tick_each = len(blocks) >= _TICKS and median(blocks) <= _MOST_GPUS
        return [] if a_tick_each else [at for at in part.repeats if 0 < at < len(part.times)]
    usual = max(*blocks, len(part.times) - edges[-1])
    return [
        at for at, size in zip(part.repeats, blocks, strict=True) if size < usual and 0 < at < len(part.times)
    ]


def _released(part: Stretched, free: Mapping[str, float] | None) -> list[tuple[int, str]]:
    """Where to cut between two stretches in which memory was held, if all was given back between them."""
    held = _held(part, free)
    found = []
    for (_, end), (start, _) in pairwise(held):
        middle = (part.times[end] + part.times[start]) / 2
        at = next(i for i in range(end, start + 1) if part.times[i] >= middle)
        seconds = part.times[start] - part.times[end]
        found.append((at, f"every GPU idled with its memory free for {seconds:.0f} s"))
    return found


def _held(part: Stretched, free: Mapping[str, float] | None) -> list[tuple[int, int]]:
    """First and last row of each stretch in which a GPU was busy or held memory for `BUSY_S` or longer."""
    if free is None:
        return []
    in_use: set[str] = set()
    found: list[list[int]] = []
    for at, (key, row) in enumerate(zip(part.keys, part.readings, strict=True)):
        if row.gpu_util is not None and row.mem_used_mb is not None:
            idles = row.gpu_util <= IDLE and row.mem_used_mb <= free[key]
            (in_use.discard if idles else in_use.add)(key)
        if not in_use:
            continue
        if found and part.times[at] - part.times[found[-1][1]] < RELEASED_S:
            found[-1][1] = at
        else:
            found.append([at, at])
    return [(start, end) for start, end in found if part.times[end] - part.times[start] >= BUSY_S]


def _free_levels(part: Stretched) -> dict[str, float] | None:
    """Up to how many MiB a GPU counts as free; None if memory does not tell.

    What never falls below half of its most was held all the time, or never used: that GPU's memory tells
    nothing, and it is free at any.
    """
    used: dict[str, list[float]] = {}
    for key, row in zip(part.keys, part.readings, strict=True):
        if row.mem_used_mb is not None:
            used.setdefault(key, []).append(row.mem_used_mb)
    if not used or set(used) != set(part.keys):
        return None
    telling = {key for key, v in used.items() if min(v) <= max(v) / 2}
    if not telling:
        return None
    return {
        key: min(v) + RELEASED_SHARE * (max(v) - min(v)) if key in telling else max(v)
        for key, v in used.items()
    }


def _numbers(part: Stretched) -> Mapping[str, int] | None:
    """Return the number of each GPU; None if its index tells.

    An index that is missing, or the same for all, tells nothing: GPUs are numbered as they come.
    """
    numbers = {key: i for i, key in enumerate(dict.fromkeys(part.keys))}
    indices = {r.gpu_index for r in part.readings}
    return None if None not in indices and len(indices) == len(numbers) else numbers


def _run(rows: Stretched, numbers: Mapping[str, int] | None, first: float, why: str | None) -> RecordedRun:
    begins, ends = rows.times[0], rows.times[-1]
    start = first if why is None else begins
    readings = tuple(
        r._replace(elapsed=max(0.0, time - start), gpu_index=r.gpu_index if numbers is None else numbers[key])
        for r, time, key in zip(rows.readings, rows.times, rows.keys, strict=True)
    )
    return RecordedRun(readings, begins - first, ends - first, why)


def _lost(runs: Sequence[RecordedRun]) -> list[str]:
    """GPUs that stop before their run does: they are gone, or their last rows are."""
    notes = []
    for number, run in enumerate(runs, start=1):
        ends: dict[int | None, float] = {}
        for row in run.rows:
            ends[row.gpu_index] = row.elapsed or 0.0
        last = max(ends.values())
        gone = {index: end for index, end in ends.items() if last - end > max(PAUSE_S, 0.1 * last)}
        which = f" of run {number}" if len(runs) > 1 else ""
        notes += [f"GPU {index}{which} has no row after {end:.1f} s" for index, end in gone.items()]
    return notes


SOURCE = "W&B system metrics"

_GPU = re.compile(r"(?:system\.)?gpu\.(\d{1,4})\.(\w+)")
_COLUMNS = {
    "gpu": "gpu_util",
    "memory": "mem_util",
    "memoryAllocatedBytes": "mem_used_mb",
    "powerWatts": "power_w",
    "smClock": "sm_clock_mhz",
    "memoryClock": "mem_clock_mhz",
    "temp": "temperature_c",
}


def read_wandb_run(data: bytes, file: str) -> MonitorRecording:
    """Return the readings of its GPUs; `elapsed` counts from the first of them.

    Raises GpudebugError if it holds none: a run without a GPU, of which W&B records the host alone, or a file
    that breaks off before the first.
    """
    found = read_wandb_system(data)
    rows = list(_rows(found.readings))
    if not rows:
        why = f"{found.note} and " if found.note else ""
        raise GpudebugError(
            f"{why}has no GPU in its system metrics", file=file, next="gpudebug analyze shows its losses"
        )
    notes = (f"the file {found.note}: what is before that was read",) if found.note else ()
    run = RecordedRun(tuple(rows), rows[0].elapsed or 0.0, rows[-1].elapsed or 0.0)
    return MonitorRecording(SOURCE, (run,), 0, notes)


def _rows(readings: Iterable[SystemReading]) -> Iterable[DeviceReading]:
    start: float | None = None
    for reading in sorted(readings, key=lambda r: r.time):
        by_gpu: dict[int, dict[str, float]] = {}
        for key, value in reading.values.items():
            named = _GPU.fullmatch(key)
            if named and named.group(2) in _COLUMNS:
                by_gpu.setdefault(int(named.group(1)), {})[_COLUMNS[named.group(2)]] = value
        for index, values in sorted(by_gpu.items()):
            used, busy = values.pop("mem_used_mb", None), values.pop("gpu_util", None)
            start = reading.time if start is None else start
            yield DeviceReading(
                elapsed=reading.time - start,
                gpu_index=index,
                gpu_util=busy if busy is None or 0 <= busy <= 100 else None,
                mem_used_mb=None if used is None else used / 2**20,
                new_samples=1,
                **values,  # type: ignore[arg-type]
            )
