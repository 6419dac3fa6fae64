"""The steady window of a run: its devices' readings over time, warm-up and tail cut."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from gpudebug.core.records import Window
from gpudebug.core.samples.table import Sample
from gpudebug.core.statistics import intervals
from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.words import is_stand_in

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogSummary

Device = tuple[int, str]
"""Index and UUID."""

SETTLED = "mser5"
"""The rule of a window that the devices' mean alone shows: no step was seen."""
# A run's window must reach this after warm-up: at NVML's own period of up to 1 s, less than five
# independent readings say nothing.
MIN_RUN_WINDOW_S = 5.0
# Where windows of several runs are pooled, one of them must reach this, and so many ticks of the sampler: as
# steps are counted at its ticks, fewer do not give a rate.
LEAST_POOLED_S = 1.0
LEAST_POOLED_TICKS = 5
# Start and end are rounded to milliseconds.
_ROUNDED_S = 0.01
# Others' use of the cores that a run may use, in percent, above which its training likely waits for one.
SHARED = 50.0
# Warm-up ends at this optimizer step, or at this share of all steps, whichever is later.
WARMUP_STEPS = int(assumed("warmup_steps"))
WARMUP_SHARE = assumed("warmup_share")
# A reading counts for the time since the one before it, but for no longer than this, or than three
# usual periods of its device: what lies before that was not measured.
LONGEST_READING_S = 2.0
LONGEST_READING_PERIODS = 3.0
# A device is idle at this many percent, or at this share of its busiest readings.
IDLE = assumed("resolution")
IDLE_SHARE = 0.05
# A device is almost idle if its mean is at most this share of its busiest reading.
ALMOST_IDLE = 0.1
# A tail is at most this share of the run, and less than half as busy as what it follows.
TAIL_SHARE = 0.25
TAIL_LEVEL = 0.5
# Steps that arrive at fewer distinct times within a moment tell when a buffer was flushed.
BUFFERED_TIMES = 4
# At most this share of the steps is a rise to the level that they go on at, and less than so busy as what
# follows: where nothing rises MSER-5 cuts what happens to differ, and a tenth is within a run's own noise.
RAMP_SHARE = assumed("ramp_share")
RAMP_LEVEL = assumed("ramp_level")
# Whole epochs are a window if they cover this share of the steps: else the parts of epochs at both ends, too.
WHOLE_EPOCHS = 0.8
# The same of a log's own steps: a bar of a pass before the training covers next to none of its steps.
FEW_OF_THEM = 0.2
# The last step seen came late if it took this many times longer than usual.
LATE = 3.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A device's utilisation in percent over the `width` seconds that end at `end`."""

    end: float
    width: float
    value: float

    def overlap(self, window: Window) -> float:
        """Seconds of it that lie in the window."""
        inside = min(self.end, window.end_s) - max(self.end - self.width, window.start_s)
        return inside if inside > 1e-9 else 0.0


def least_pooled(interval: float) -> float:
    """Seconds that a window to be pooled must reach, of a run that was sampled every `interval` seconds."""
    return max(LEAST_POOLED_S, LEAST_POOLED_TICKS * interval)


def is_short(window: Window | None) -> bool:
    """Tell whether a window says nothing by itself, and counts only together with those of other runs."""
    return window is not None and window.duration_s < MIN_RUN_WINDOW_S - _ROUNDED_S


def stretches(rows: Sequence[Sample], device: Device) -> list[Stretch]:
    """One device's readings with new driver samples, each with the time that it counts for."""
    # The CPU's reading is a difference of counters from tick to tick, so a late one has measured its gap.
    counter = is_stand_in(device[1])
    found: list[tuple[Sample, float]] = []
    previous = 0.0
    for row in rows:
        if (row.gpu_index, row.gpu_uuid) != device or row.elapsed <= previous:
            continue
        new = row.gpu_util is not None and row.new_samples != 0
        if new:
            found.append((row, row.elapsed - previous))
        if new or counter:
            previous = row.elapsed
    if not found:
        return []
    period = median(gap / (row.new_samples or 1) for row, gap in found)
    usual = max(LONGEST_READING_S, LONGEST_READING_PERIODS * median(gap for _, gap in found))
    return [
        Stretch(
            row.elapsed,
            gap if counter else min(gap, max(usual, period * (row.new_samples or 1))),
            row.gpu_util or 0.0,
        )
        for row, gap in found
    ]


def find_window(
    series: Mapping[Device, Sequence[Stretch]],
    log: LogSummary,
    warmup: float | None,
    probed: tuple[float, float] | None = None,
    *,
    first: float | None = None,
    least: float = MIN_RUN_WINDOW_S,
    over: bool = True,
) -> tuple[Window | None, str | None]:
    """Return the steady window, or None with the reason.

    Steps known: from the first time at or after step max(10, 5 % of all), to the last step's time. Where the
    log does not print them, or counts epochs of which few lie in the run, `probed` are these two as the
    training process reported them.
    Else from the devices' mean: an idle start and end are cut, then MSER-5 cuts the warm-up, and from
    the end a tail of at most a quarter. A fixed `warmup` counts from launch and replaces the start. What was
    read before the `first` step (as `first_step` has it) counts for none of these.
    Two more parts are left out, of a short run the larger share: the start of these steps in which the device
    was not yet as busy as later, and lines that print the last step again. The window ends with a reading, so
    that none is shared with what comes after it. It is at least `least` seconds long; one
    that only the devices' mean shows at least `MIN_RUN_WINDOW_S`: fewer readings do not show its start.
    Where that leaves too little of a run that is `over`, and the device was almost idle, all of it counts:
    what it computed in one burst is neither its warm-up nor all that it did.
    """
    if not any(series.values()):
        return None, "no device reading"
    since = max(first or 0.0, warmup or 0.0)
    devices = [[s for s in readings if s.end > since] for readings in series.values()]
    longest = max(devices, key=len)
    rule, bounds = "steps", step_bounds(log)
    if probed is not None and (bounds is None or _leaves_out(log, bounds, probed)):
        rule, bounds = "probe", probed
    if bounds is None:
        rule, bounds = SETTLED, _settled(devices, longest) if longest else (since, since)
    start, end = bounds
    if warmup is not None:
        start, rule = since, "fixed"
    elif rule != SETTLED:
        start = _after_ramp(devices, longest, start, end)
    start = max(start, since)
    end = max((s.end for s in longest if s.end <= end + 1e-9), default=0.0)
    if rule == SETTLED:
        least = max(least, MIN_RUN_WINDOW_S)
    if end - start < least:
        idle = _almost_idle(devices, longest, since) if over and longest else None
        if idle is None:
            return None, _too_short(end - start, least, first)
        rule, (start, end) = SETTLED, idle
    count = sum(1 for readings in devices for s in readings if start < s.end <= end)
    return Window(start_s=round(start, 3), end_s=round(end, 3), samples=count, rule=rule), None


def _leaves_out(log: LogSummary, bounds: tuple[float, float], probed: tuple[float, float]) -> bool:
    """Tell whether the log leaves out much of the steps that the training process reported: it counts whole
    epochs, or it counted what came before them."""
    share = FEW_OF_THEM if log.step_unit in (None, "step") else WHOLE_EPOCHS
    inside = min(bounds[1], probed[1]) - max(bounds[0], probed[0])
    return inside < share * (probed[1] - probed[0])


def _too_short(left: float, least: float, first: float | None) -> str:
    # Rounded down: 4.99 s must not read as the 5.0 s that would have been enough.
    after = f"{math.floor(10 * max(left, 0)) / 10:.1f} s after warm-up"
    began = f" (the first step came at {first:.1f} s)" if first is not None else ""
    return f"the window is too short: {after}{began}, at least {least:g} s needed"


def first_step(log: LogSummary, probed: float | None) -> float | None:
    """When the first step had ended that the log shows or that was `probed`, in seconds since launch.

    None if neither shows it. The log's later lines say how long before its first line that was.
    """
    return min((t for t in (_first_printed(log), probed) if t is not None), default=None)


def _first_printed(log: LogSummary) -> float | None:
    """By the log alone; None if a single line came, or all at once as a buffer was flushed."""
    times = arrivals(log)
    if not times:
        return None
    (time, done), (last, _) = times[0], times[-1]
    alone = sum(1 for _, t in log.step_times if t == time) == 1
    # What is no step, an epoch, begins long before its end.
    one = 1 if log.step_unit in (None, "step") else 0
    if len(times) < 2:
        return time if alone and done <= one else None
    if not alone and len(times) < BUFFERED_TIMES and last - time < MIN_RUN_WINDOW_S:
        return None
    after, more = times[1]
    before = max(0, done - _steps_before(log) - one)
    return max(0.0, time - before * (after - time) / max(1, more - done))


def arrivals(log: LogSummary) -> list[tuple[float, int]]:
    """(time, steps done by then), one entry a distinct time, in order.

    A last one that came late is left out: a bar is closed, or a buffer flushed, when the program ends.
    """
    done: dict[float, int] = {}
    for step, time in log.step_times:
        done[time] = max(step, done.get(time, step))
    found = sorted(done.items())
    gaps = [after - before for (before, _), (after, _) in pairwise(found)]
    late = len(found) > BUFFERED_TIMES and gaps[-1] > LATE * median(gaps)
    return found[:-1] if late else found


def step_bounds(log: LogSummary) -> tuple[float, float] | None:
    """Start and end of the steady steps; None if the log does not tell when steps were made.

    They end where the last step is first printed.
    """
    times = arrivals(log)
    if len(times) < 2:
        return None
    last = times[-1][1]
    end = next(time for time, step in times if step >= last)
    begun = _steps_before(log)
    least = WARMUP_STEPS if log.step_unit in (None, "step") else 0
    threshold = begun + max(least, WARMUP_SHARE * (last - begun))
    start = next((time for time, step in times if step >= threshold), end)
    if start >= end or (end - start < MIN_RUN_WINDOW_S and len(times) < BUFFERED_TIMES):
        return None
    return start, end


def _steps_before(log: LogSummary) -> int:
    """Return the step that the run began at: not 0 if it goes on from a checkpoint."""
    first, second = log.step_times[0][0], log.step_times[1][0]
    return max(0, first - abs(second - first))


def _settled(devices: Sequence[Sequence[Stretch]], longest: Sequence[Stretch]) -> tuple[float, float]:
    values = _means(devices, longest)
    first, stop = _busy_span(values)
    first += intervals.mser5(values[first:stop])
    stop -= _tail(values[first:stop])
    return longest[first].end - longest[first].width, longest[stop - 1].end


def _almost_idle(
    devices: Sequence[Sequence[Stretch]], longest: Sequence[Stretch], since: float
) -> tuple[float, float] | None:
    """From `since`, 0 for the first busy reading, to the last one, if the device hardly computed in it."""
    values = _means(devices, longest)
    high = max(IDLE, *values)
    busy = [(s, value) for s, value in zip(longest, values, strict=True) if value > IDLE]
    began = next((s for s, value in busy if value > IDLE_SHARE * high), longest[0])
    start, end = since or began.end - began.width, longest[-1].end
    computed = math.fsum(s.width * value / high for s, value in busy)
    return (start, end) if end - start >= max(MIN_RUN_WINDOW_S, computed / ALMOST_IDLE) else None


def _after_ramp(
    devices: Sequence[Sequence[Stretch]], longest: Sequence[Stretch], start: float, end: float
) -> float:
    """Return where the device has reached its level, if it rose to it at the start of the steps."""
    known = zip(longest, _means(devices, longest), strict=True)
    inside = [(s.end, value) for s, value in known if start < s.end <= end + 1e-9]
    values = [value for _, value in inside]
    cut = min(intervals.mser5(values), int(len(values) * RAMP_SHARE))
    if not cut or inside[-1][0] - inside[cut - 1][0] < MIN_RUN_WINDOW_S:
        return start
    rising, level = (math.fsum(part) / len(part) for part in (values[:cut], values[cut:]))
    return inside[cut - 1][0] if rising < RAMP_LEVEL * level else start


def _means(devices: Sequence[Sequence[Stretch]], longest: Sequence[Stretch]) -> list[float]:
    """Return the devices' mean at each of the `longest` device's readings."""
    known = [readings for readings in devices if readings]
    at = [0] * len(known)
    means = []
    for stretch in longest:
        values = []
        for i, readings in enumerate(known):
            while at[i] + 1 < len(readings) and readings[at[i]].end < stretch.end - 1e-9:
                at[i] += 1
            values.append(readings[at[i]].value)
        means.append(math.fsum(values) / len(values))
    return means


def _busy_span(values: Sequence[float]) -> tuple[int, int]:
    """From the first busy reading to after the last; all of them if the device was never busy."""
    high = sorted(values)[int(0.95 * (len(values) - 1))]
    level = max(IDLE, IDLE_SHARE * high)
    busy = [i for i, value in enumerate(values) if value > level]
    return (busy[0], busy[-1] + 1) if busy else (0, len(values))


def _tail(values: Sequence[float]) -> int:
    """Return how many readings at the end are no training: a last save, the program's own end."""
    count = min(intervals.mser5(values[::-1]), int(len(values) * TAIL_SHARE))
    if not count:
        return 0
    tail, kept = values[-count:], values[:-count]
    lower = math.fsum(tail) / len(tail) < TAIL_LEVEL * math.fsum(kept) / len(kept)
    return count if lower else 0
