"""The runs of one recording: where one ends and another begins, each as the text of a samples.csv."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from statistics import median
from typing import TYPE_CHECKING, NoReturn

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.collect import MOST_GPUS, MonitorRows, Row, RowStretch
from gpudebug.core.recordings.monitors import read_monitor
from gpudebug.core.recordings.sources import COMPUTE_APPS, delay_of
from gpudebug.core.recordings.whole import summed_up, usual_period
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.samples.table import MOST_DEVICES

if TYPE_CHECKING:
    from gpudebug.core.answers.analyze import WholeRecording

# Without a row for so long, and for so many usual periods, nobody recorded: what follows is another run.
PAUSE_S = 30.0
PAUSE_PERIODS = 20.0
_AS_SLOW = 2.0
# A GPU's row so long before its last one is no jitter of a clock that is being set.
BACK_S = 1.0
# Rows out of order lie no closer than this part of the usual period once they are sorted.
_SORTED = 0.5
# Every GPU idle, its memory given back, for so long and so many readings between two busy stretches: no
# process was there. A training that loads, evaluates on the host or compiles keeps its memory. Other
# programs' looks at a GPU, and a desktop, read a few percent.
RELEASED_S = 10.0
RELEASED_PERIODS = 10.0
RELEASED_SHARE = 0.1
IDLE = 5.0
# As `MIN_RUN_WINDOW_S`: what is busy for less is not a run.
BUSY_S = 5.0
# A job array's, or a month of nights. Text of each is shown.
MOST_RUNS = 200
# So many headers with a tick's rows between them are a loop's.
_TICKS = 3
# A header after so many usual periods without a row begins a run: a writer that repeats it does not wait.
_HEADER_PERIODS = 3.0


@dataclass(frozen=True)
class RecordedRun:
    """One run: its rows with `elapsed` from its beginning, which lies `start_s` after that of the file.

    `begins` says what told it from the run before it; `whole` is what all of its rows show.
    """

    rows: tuple[DeviceReading, ...]
    start_s: float
    end_s: float
    begins: str | None
    whole: WholeRecording

    def text(self) -> str:
        """As samples.csv has it."""
        return HEADER + "".join(map(csv_row, self.rows))


@dataclass(frozen=True)
class MonitorRecording:
    """What a monitor recorded: at least one run. `notes` say what was assumed, left out or not read.

    `timed` is false if nothing says when its rows were read; `whole` is of all runs together.
    """

    source: str
    runs: tuple[RecordedRun, ...]
    unreadable: int
    notes: tuple[str, ...]
    timed: bool
    whole: WholeRecording


def read_recording(lines: Iterable[str], file: str) -> MonitorRecording:
    """Return the runs of a recording that `recognised` knows. Raises GpudebugError if it has no row."""
    found = read_monitor(lines, file)
    if found.source == COMPUTE_APPS:
        raise GpudebugError(
            f"is a recording of {COMPUTE_APPS}: of processes, not of GPUs",
            file=file,
            next="record nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw --format=csv",
        )
    if not found.parts:
        if found.without:
            raise GpudebugError(
                f"is a recording by {found.source} of a host without a GPU",
                file=file,
                next="give one of a host with GPUs",
            )
        unread = f" that can be read: {'; '.join(found.notes)}" if found.unreadable else ""
        names = "its header alone: " if found.headers else ""
        raise GpudebugError(
            f"is {names}{found.source} with no sample{unread}", file=file, next="give a recording with rows"
        )
    return recorded(found, file)


def recorded(found: MonitorRows, file: str) -> MonitorRecording:
    """Return the runs of what was read."""
    times = found.parts[0].times
    first = 0.0 if found.from_launch and min(times) >= 0 and times[0] < 3600 else None
    runs: list[RecordedRun] = []
    everything: list[Row] = []
    notes = list(found.notes)
    for part in found.parts:
        why = found.between if runs else None
        if part.timed != found.parts[0].timed:
            first = None
        numbers = _numbers_of(part.rows)
        told = sorted(numbers.values()) != list(range(len(numbers)))
        if told and len(numbers) > max(MOST_GPUS, len(part.rows) / 4):
            raise GpudebugError(
                f"has {len(numbers)} values in the column that should tell its GPUs apart",
                file=file,
                line=part.line,
                next="name the index of a GPU gpu_id, and its utilisation gpu_util",
            )
        if len(numbers) > MOST_DEVICES:
            raise GpudebugError(
                f"names more than {MOST_DEVICES} devices", file=file, next="is this the right file?"
            )
        for rows, reason in _runs_of(part, notes):
            first = rows.rows[0].time if first is None else first
            run = _run(rows, numbers, first, reason or why, found)
            if not run.rows:
                continue
            runs.append(run)
            everything += rows.rows
            if len(runs) > MOST_RUNS:
                _refuse_many(runs, file)
    if not runs:
        raise GpudebugError(
            "has several rows at a time and no column that tells the GPUs apart",
            file=file,
            next="record again with --query-gpu=timestamp,index,utilization.gpu,power.draw,memory.used",
        )
    whole = runs[0].whole
    if len(runs) > 1:
        whole = summed_up(everything, found, _numbers_of(everything), timed=_follow(runs, found))
        periods = {run.whole.period_s for run in runs}
        whole = replace(whole, period_s=periods.pop() if len(periods) == 1 else whole.period_s)
    notes += _lost(runs)
    return MonitorRecording(found.source, tuple(runs), found.unreadable, tuple(notes), found.timed, whole)


def _follow(runs: Sequence[RecordedRun], found: MonitorRows) -> bool:
    """Whether runs follow each other on one clock."""
    alike = len({part.timed for part in found.parts}) == 1
    return found.timed and alike and all(a.end_s <= b.start_s for a, b in pairwise(runs))


def _refuse_many(runs: Sequence[RecordedRun], file: str) -> NoReturn:
    reasons = Counter(re.sub(r"\d+", "…", run.begins) for run in runs if run.begins)
    why, count = reasons.most_common(1)[0]
    raise GpudebugError(
        f"holds more than {MOST_RUNS} runs ({why} before {count} of them)",
        file=file,
        next="give the rows of one run; if several machines wrote it, record uuid with --query-gpu too: "
        "their GPUs share an index",
    )


@dataclass(slots=True)
class _Streak:
    """Rows of one header between two cuts: their places, the time of each GPU's last one, and the bounds of
    all their times. `begins` is what told them from those before."""

    begins: str | None
    rows: list[int] = field(default_factory=list)
    last: dict[str | None, float] = field(default_factory=dict)
    least: float = inf
    most: float = -inf

    def take(self, at: int, row: Row) -> None:
        self.rows.append(at)
        self.last[row.key] = row.time
        self.least, self.most = min(self.least, row.time), max(self.most, row.time)

    def is_beside(self, other: _Streak) -> bool:
        """Tell whether it is of other GPUs at the same time."""
        together = self.least <= other.most and other.least <= self.most
        return together and self.last.keys().isdisjoint(other.last)

    def join(self, other: _Streak) -> None:
        self.rows += other.rows
        self.last |= other.last
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)


def _streaks(part: RowStretch) -> list[_Streak]:
    """Rows cut where their order in the file does: where a GPU's time goes back, and at early headers.

    The rows of one GPU may stand after those of another, and two monitors with clocks of their own may write
    into one file: both are one run.
    """
    headers = set(_early_headers(part))
    found: list[_Streak] = []
    for at, row in enumerate(part.rows):
        back = bool(found) and row.time < found[-1].last.get(row.key, row.time) - BACK_S
        if back or at in headers or not found:
            found.append(_Streak("the time goes back" if back else "a header in the middle" if at else None))
        found[-1].take(at, row)
    joined = found[:1]
    for one in found[1:]:
        if one.is_beside(joined[-1]):
            joined[-1].join(one)
        else:
            joined.append(one)
    return joined


def _by_time(row: Row) -> float:
    return row.time


def _only_out_of_order(part: RowStretch) -> bool:
    """Whether rows are those of one recording once they are sorted: none is of a time that another has."""
    last: dict[str | None, float] = {}
    gaps: list[float] = []
    for row in sorted(part.rows, key=_by_time):
        if row.key in last:
            gaps.append(row.time - last[row.key])
        last[row.key] = row.time
    return bool(gaps) and min(gaps) >= _SORTED * median(gaps) > 0


def _runs_of(part: RowStretch, notes: list[str]) -> Iterator[tuple[RowStretch, str | None]]:
    """Yield the rows of each run under one header, with what begins it."""
    streaks = _streaks(part)
    if any(one.begins == "the time goes back" for one in streaks) and _only_out_of_order(part):
        notes.append("its rows are out of order: they were sorted by their time")
        part.rows.sort(key=_by_time)
        part.repeats = []
        streaks = _streaks(part)
    usual, free = usual_period(part.rows) or 1.0, _free_levels(part.rows)
    longest = max(PAUSE_S, PAUSE_PERIODS * usual)
    for streak in streaks:
        rows = sorted((part.rows[at] for at in streak.rows), key=_by_time)
        marks: dict[int, str] = {}
        if part.timed != "order":
            marks = {at: f"a pause of {gap:.0f} s" for at, gap in _pauses(rows, longest)}
            for at, why in _released(rows, free, max(RELEASED_S, RELEASED_PERIODS * usual)):
                marks.setdefault(at, why)
        for begin, end in pairwise([0, *sorted(marks), len(rows)]):
            if end > begin:
                one = RowStretch(part.columns, part.line, rows[begin:end], timed=part.timed)
                yield one, marks.get(begin) or (None if begin else streak.begins)


def _pauses(rows: Sequence[Row], longest: float) -> Iterator[tuple[int, float]]:
    """Where the rows go on after more than `longest` seconds, and after how many.

    Rows that came as slowly before or after it were read less often there: that is no pause.
    """
    gaps = [(at, gap) for at, (a, b) in enumerate(pairwise(rows), start=1) if (gap := b.time - a.time) > 0]
    for (_, before), (at, gap), (_, after) in zip(
        [(0, 0.0), *gaps], gaps, [*gaps[1:], (0, 0.0)], strict=False
    ):
        if gap > max(longest, _AS_SLOW * before, _AS_SLOW * after):
            yield at, gap


def _early_headers(part: RowStretch) -> list[int]:
    """Return where a header stands that a monitor would not have repeated yet.

    dmon repeats its header every so many rows: the most rows between two headers are its own, and fewer end a
    run. A CSV has one header, unless a loop calls the monitor anew for each tick or its writer does not wait.
    """
    if not part.repeats or part.timed in ("order", "stamps"):
        return []
    edges = [0, *part.repeats]
    blocks = [after - before for before, after in pairwise(edges)]
    inside = [at for at in part.repeats if 0 < at < len(part.rows)]
    if delay_of(part.columns.source) is None:
        if len(blocks) >= _TICKS and median(blocks) <= MOST_GPUS:
            return []
        longest = _HEADER_PERIODS * (usual_period(part.rows) or 0.0)
        return [at for at in inside if not 0 <= part.rows[at].time - part.rows[at - 1].time <= longest]
    usual = max(*blocks, len(part.rows) - edges[-1])
    early = {at for at, size in zip(part.repeats, blocks, strict=True) if size < usual}
    return [at for at in inside if at in early]


def _released(
    rows: Sequence[Row], free: Mapping[str | None, float] | None, least: float
) -> list[tuple[int, str]]:
    """Where to cut between two stretches in which memory was held, if all was given back for `least` seconds
    between them."""
    found = []
    for (_, end), (start, _) in pairwise(_held(rows, free, least)):
        middle = (rows[end].time + rows[start].time) / 2
        at = next(i for i in range(end, start + 1) if rows[i].time >= middle)
        seconds = rows[start].time - rows[end].time
        found.append((at, f"every GPU idled with its memory free for {seconds:.0f} s"))
    return found


def _held(
    rows: Sequence[Row], free: Mapping[str | None, float] | None, least: float
) -> list[tuple[int, int]]:
    """First and last row of each stretch in which a GPU was busy or held memory for `BUSY_S` or longer."""
    if free is None:
        return []
    in_use: set[str | None] = set()
    found: list[list[int]] = []
    for at, row in enumerate(rows):
        shown = row.reading
        if shown.gpu_util is not None and shown.mem_used_mb is not None:
            idles = shown.gpu_util <= IDLE and shown.mem_used_mb <= free[row.key]
            (in_use.discard if idles else in_use.add)(row.key)
        if not in_use:
            continue
        if found and row.time - rows[found[-1][1]].time < least:
            found[-1][1] = at
        else:
            found.append([at, at])
    return [(start, end) for start, end in found if rows[end].time - rows[start].time >= BUSY_S]


def _free_levels(rows: Sequence[Row]) -> dict[str | None, float] | None:
    """Up to how many MiB a GPU counts as free; None if memory does not tell.

    What never falls below half of its most was held all the time, or never used: that GPU's memory tells
    nothing, and it is free at any.
    """
    used: dict[str | None, list[float]] = {}
    for row in rows:
        if row.reading.mem_used_mb is not None:
            used.setdefault(row.key, []).append(row.reading.mem_used_mb)
    if not used or set(used) != {row.key for row in rows}:
        return None
    telling = {key for key, v in used.items() if min(v) <= max(v) / 2}
    if not telling:
        return None
    return {
        key: min(v) + RELEASED_SHARE * (max(v) - min(v)) if key in telling else max(v)
        for key, v in used.items()
    }


def _numbers_of(rows: Sequence[Row]) -> Mapping[str | None, int]:
    """Return the number of each GPU: its index, or as they come if that is missing or the same for all."""
    by_key = {row.key: row.reading.gpu_index for row in rows if row.key is not None}
    told = set(by_key.values())
    if None in told or len(told) < len(by_key):
        return {key: number for number, key in enumerate(by_key)}
    return {key: index for key, index in by_key.items() if index is not None}


def _run(
    part: RowStretch, numbers: Mapping[str | None, int], first: float, why: str | None, found: MonitorRows
) -> RecordedRun:
    begins, ends = part.rows[0].time, part.rows[-1].time
    start = first if why is None else begins
    timed = part.timed != "order"
    readings = tuple(
        row.reading._replace(elapsed=max(0.0, row.time - start) if timed else 0.0, gpu_index=numbers[row.key])
        for row in part.rows
        if row.key is not None
    )
    of_part = replace(
        found, source=part.columns.source, dated=found.dated and part.timed in ("clock", "stamps")
    )
    whole = summed_up(part.rows, of_part, numbers, timed=timed)
    return RecordedRun(readings, begins - first, ends - first, why, whole)


def _lost(runs: Sequence[RecordedRun]) -> list[str]:
    """GPUs that stop before their run does: they are gone, or their last rows are."""
    notes = []
    for number, run in enumerate(runs, start=1):
        ends: dict[int | None, float] = {}
        for row in run.rows:
            ends[row.gpu_index] = row.elapsed or 0.0
        last = max(ends.values(), default=0.0)
        gone = {index: end for index, end in ends.items() if last - end > max(PAUSE_S, 0.1 * last)}
        which = f" of run {number}" if len(runs) > 1 else ""
        notes += [f"GPU {index}{which} has no row after {end:.1f} s" for index, end in gone.items()]
    return notes
