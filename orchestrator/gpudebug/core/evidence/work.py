"""What one run processed a second, by each source: the candidates for a campaign's unit of work."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations, pairwise
from math import isfinite
from typing import NamedTuple

from gpudebug.core.command import batch
from gpudebug.core.lazy import regex
from gpudebug.core.records import Window, WorkRate
from gpudebug.core.samples.window import MIN_RUN_WINDOW_S, is_short
from gpudebug.core.trainlog.quantities import ENVIRONMENT_STEPS, SAMPLES, TOKENS
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.trainlog.series import Point
from gpudebug.core.trainlog.steps import CountedBar
from gpudebug.core.trainlog.timing import rate
from gpudebug.core.trainlog.work import LoggedWork, PrintedRate, WorkCounter
from gpudebug.core.words import LOG, WorkName

SOURCE = "the progress bar"


class EnvironmentBar(NamedTuple):
    """A bar that counts steps of an environment. `leads`: it is what the log calls its steps.

    `unfit` says why it is not known to count those of all environments.
    """

    bar: CountedBar
    leads: bool
    unfit: str | None = None


def bar_of_environment(
    log: LogSummary, plans: Collection[int], environments: int | None
) -> EnvironmentBar | None:
    """The bar that counts what `plans` plan: the steps of the environment by command and configuration.

    One that moves on by one while several environments step at once counts them together.
    """
    if log.framework == "skrl":
        return _of_all_at_once(log, environments)
    learns = bool(plans or environments or log.work.rewards)
    found = [bar for bar in log.bars if bar.total in plans or (bar.of_environment and learns)]
    if not found:
        return None
    bar = max(found, key=lambda one: (one.total in plans, one.times[-1][0]))
    unfit = None
    if environments and environments > 1 and bar.granularity % environments:
        unfit = (
            f"{SOURCE} of {bar.total} does not move on by multiples of {environments} environments: "
            f"it may not count the {ENVIRONMENT_STEPS} of all, and is not used"
        )
    return EnvironmentBar(bar, log.step_times == bar.times, unfit)


def _of_all_at_once(log: LogSummary, environments: int | None) -> EnvironmentBar | None:
    """skrl's bar: a timestep is one of all environments. How many these are the work is multiplied by."""
    bar = next((bar for bar in log.bars if bar.times == log.step_times), None)
    if bar is None or environments is not None:
        return None
    why = f"{SOURCE} counts timesteps of all environments at once, and nothing says how many these are"
    return EnvironmentBar(bar, leads=True, unfit=why)


OPTIMIZER_STEPS, EPOCHS = WorkName.OPTIMIZER_STEPS, WorkName.EPOCHS

MIN_SEEN = 3
"""Values of a counter that show how fast it counts; a number that is printed once is a setting."""
COVERED = 0.5
"""A counter that is silent for more than this share of the window counts something that has ended."""
PRINTED_APART = 2.0
APART = 1.25
"""Two figures of one thing that differ by more than this disagree."""

_OF_ENVIRONMENT = regex(r"(?:.*[/_ ])?SPS|fps (?:step|total).*", re.I)
"""Printed rates that only a program of reinforcement learning has."""

_BY = {"arrival": "the log's steps", "probe": "the probe", "printed": "the printed step rate"}
_SAMPLES_BY = {
    "probe": "the probe",
    "counted": "the log's samples",
    "batch": "steps x printed batch",
    "flags": "steps x batch flags",
    "printed": "printed samples per second",
}


def candidates(
    log: LogSummary,
    window: Window | None,
    *,
    steps_per_s: float | None,
    steps_by: str | None,
    progress_per_s: float | None,
    samples_per_s: float | None,
    samples_by: str | None,
    environments: int | None = None,
    plans: Collection[int] = (),
) -> tuple[tuple[WorkRate, ...], tuple[str, ...]]:
    """(candidates, the best first, what was wrong with others). `environments` is how many the command sets,
    `plans` are the environment steps that it plans.

    Environment steps stand before tokens, these before samples, and optimizer steps come last; a figure that
    gpudebug counts comes before one that is printed.
    """
    counted, notes = _counted(log, window)
    printed = _printed(log, window)
    notes = (*notes, *_disagree(counted, printed))
    bar = bar_of_environment(log, plans, environments)
    notes = (*notes, *([bar.unfit] if bar and bar.unfit else []))
    found = [
        *_of(ENVIRONMENT_STEPS, counted),
        *_vectorised(log, counted, progress_per_s, environments),
        *_by_bar(bar, window),
    ]
    stepped = not found and _steps_of_environment(log, printed, steps_per_s, steps_by)
    if stepped:
        found += _rate(ENVIRONMENT_STEPS, steps_per_s, _BY["arrival"])
    found += [
        *_of(ENVIRONMENT_STEPS, printed),
        *_of(TOKENS, counted),
        *_tokens_by_steps(log, steps_per_s),
        *_of(TOKENS, printed),
    ]
    samples = _rate(SAMPLES, samples_per_s, _SAMPLES_BY.get(samples_by or "", ""))
    if samples_by != "printed":
        found += samples
    found += _of(SAMPLES, counted)
    optimizers = log.step_unit in (None, "step", "samples") and not (bar and bar.leads) and not stepped
    if optimizers or steps_by == "probe":
        found += _rate(OPTIMIZER_STEPS, steps_per_s, _BY.get(steps_by or "", ""))
    if samples_by == "printed":
        found += samples
    if log.step_unit == "epoch":
        found += _rate(EPOCHS, progress_per_s, "the log's epochs")
    found += [WorkRate(unit=f"{LOG}{name}", per_s=value, source=name) for name, value in _named(log, window)]
    return tuple(found), notes


def _rate(unit: str, per_s: float | None, source: str) -> list[WorkRate]:
    known = per_s is not None and 0 < per_s < math.inf and source
    return [WorkRate(unit=unit, per_s=per_s, source=source)] if known and per_s is not None else []


def _of(unit: str, rates: Sequence[WorkRate]) -> list[WorkRate]:
    return [one for one in rates if one.unit == unit]


def _counted(log: LogSummary, window: Window | None) -> tuple[tuple[WorkRate, ...], tuple[str, ...]]:
    """Return the rates of the counters, and why others have none."""
    found: list[WorkRate] = []
    notes = []
    for counter in log.work.counters:
        if counter.seen < MIN_SEEN:
            continue
        if counter.began_again is not None:
            before, after = counter.began_again
            notes.append(f"{counter.name} began again at {after} after {before}: it is not used")
            continue
        per_s = counter_rate(counter.times, window)
        if per_s is None and window is not None and (silent := _silent(counter, window)):
            notes.append(silent)
        elif per_s is not None and counter.name not in [one.source for one in found]:
            found.append(WorkRate(unit=counter.unit, per_s=per_s, source=counter.name))
    return tuple(found), tuple(notes)


def counter_rate(times: Sequence[tuple[int, float]], window: Window | None) -> float | None:
    """Counts a second from (count, time): over the window if its readings reach across it, else over the run.

    None if the times tell too little, or if the counter says nothing of most of the window.
    """
    if window is None:
        return rate(times)
    done: dict[float, int] = {}
    for value, time in times:
        done[time] = max(value, done.get(time, value))
    found = sorted(done.items())
    inside = [(time, value) for time, value in found if window.start_s <= time <= window.end_s]
    least = 0.0 if is_short(window) else MIN_RUN_WINDOW_S / 2
    if len(inside) >= 2 and inside[-1][0] - inside[0][0] >= max(least, COVERED * window.duration_s):
        (start, before), (end, after) = inside[0], inside[-1]
        return (after - before) / (end - start) if after > before else None
    if found and (found[-1][0] < window.end_s - COVERED * window.duration_s or _begins_late(found, window)):
        return None
    return rate(times)


def _begins_late(found: Sequence[tuple[float, int]], window: Window) -> bool:
    return found[0][0] > window.start_s + COVERED * window.duration_s and found[0][0] < window.end_s


def _silent(counter: WorkCounter, window: Window) -> str | None:
    """Say that a counter was printed for a part of the window only: the unit changed in the middle."""
    times = [time for _, time in counter.times]
    if not times:
        return None
    if times[-1] < window.end_s - COVERED * window.duration_s:
        return f"{counter.name} is printed until {times[-1]:.1f} s only: it is not used"
    if times[0] > window.start_s + COVERED * window.duration_s:
        return f"{counter.name} is printed from {times[0]:.1f} s on only: it is not used"
    return None


def _printed(log: LogSummary, window: Window | None) -> tuple[WorkRate, ...]:
    """Return the printed rates: the harmonic mean of the window's, as lines come every so much work."""
    found: list[WorkRate] = []
    for one in log.work.rates:
        unit = _unit_of(one, log)
        values = [p.value for p in _inside(one.points, window)]
        if unit and values:
            per_s = len(values) / math.fsum(1 / value for value in values)
            found.append(WorkRate(unit=unit, per_s=per_s, source=f"printed {one.name}"))
    return tuple(found)


def _unit_of(one: PrintedRate, log: LogSummary) -> str | None:
    """What a rate counts: `fps` is of an environment only in the log of one, as `Steps per second` is."""
    if one.unit == TOKENS or _OF_ENVIRONMENT.fullmatch(one.name):
        return one.unit
    of_environment = log.work.rewards or any(
        c.unit == ENVIRONMENT_STEPS and c.seen >= MIN_SEEN for c in log.work.counters
    )
    if not of_environment or any(c.unit == TOKENS for c in log.work.counters):
        return None
    return one.unit or ENVIRONMENT_STEPS


def _inside(points: Iterable[Point], window: Window | None) -> list[Point]:
    every = list(points)
    if window is None:
        return every
    timed = [p for p in every if p.time is not None and window.start_s <= p.time <= window.end_s]
    return timed or [p for p in every if p.time is None or p.time > window.end_s]


def _vectorised(
    log: LogSummary, counted: Sequence[WorkRate], progress_per_s: float | None, environments: int | None
) -> list[WorkRate]:
    """Of a trainer whose timestep is one of all environments at once, as skrl's bar counts them."""
    if log.framework != "skrl" or environments is None or _of(ENVIRONMENT_STEPS, counted):
        return []
    per_s = progress_per_s * environments if progress_per_s else None
    return _rate(ENVIRONMENT_STEPS, per_s, "timesteps x environments")


def _steps_of_environment(
    log: LogSummary, printed: Sequence[WorkRate], steps_per_s: float | None, steps_by: str | None
) -> bool:
    """Tell whether the log's steps are the environment's: they come as fast as it prints that these do."""
    told = _of(ENVIRONMENT_STEPS, printed)
    if not told or not steps_per_s or steps_by != "arrival" or log.step_unit != "step":
        return False
    return 1 / APART <= steps_per_s / told[0].per_s <= APART


def _by_bar(found: EnvironmentBar | None, window: Window | None) -> list[WorkRate]:
    usable = found is not None and found.unfit is None
    per_s = counter_rate(found.bar.times, window) if usable and found else None
    return _rate(ENVIRONMENT_STEPS, per_s, SOURCE)


def _tokens_by_steps(log: LogSummary, steps_per_s: float | None) -> list[WorkRate]:
    """Steps times the tokens of one, where the program prints these: `tokens per iteration will be: N`."""
    size = batch.printed_tokens(text for text, _ in log.speech.get("tokens", ()))
    per_s = size * steps_per_s if size and steps_per_s else None
    return _rate(TOKENS, per_s, "steps x tokens per step")


def _named(log: LogSummary, window: Window | None) -> list[tuple[str, float]]:
    """Return the user's own patterns that count up, each with its rate."""
    found = []
    for name, points in log.extra.items():
        values = [p.value for p in points]
        if len(values) < MIN_SEEN or any(after < before for before, after in pairwise(values)):
            continue
        times = [(int(p.value), p.time) for p in points if p.time is not None and math.isfinite(p.value)]
        per_s = counter_rate(times, window)
        if per_s:
            found.append((name, per_s))
    return found


def _disagree(counted: Sequence[WorkRate], printed: Sequence[WorkRate]) -> tuple[str, ...]:
    """Name figures of one unit that differ. The first that is counted is used."""
    notes = []
    for unit in (ENVIRONMENT_STEPS, TOKENS):
        known = [*_of(unit, counted), *_of(unit, printed)[:1]]
        for one in known[1:]:
            # What is printed is often a mean since the start.
            apart = PRINTED_APART if one.source.startswith("printed ") else APART
            if not 1 / apart <= one.per_s / known[0].per_s <= apart:
                shown = " and ".join(f"{each.source} {each.per_s:.4g}/s" for each in (known[0], one))
                notes.append(f"two counts of {unit} disagree: {shown}; the first is used")
    return tuple(notes)


def doubts(work: LoggedWork) -> tuple[str, ...]:
    """Counters that begin again, stop or start in the middle, or disagree; rewards that are no numbers."""
    counters = [one for one in work.counters if one.seen >= MIN_SEEN]
    whole = [one for one in counters if (one.began_again or _part(one, work.lines)) is None]
    return (
        *(_restart(one) for one in counters if one.began_again),
        *(part for one in counters if (part := _part(one, work.lines)) and not one.began_again),
        *_disagreeing(whole),
        *(
            f"{reward.name} is NaN or infinite in some of its values"
            for reward in work.rewards
            if not all(isfinite(p.value) for p in reward.points)
        ),
    )


def _restart(one: WorkCounter) -> str:
    before, after = one.began_again or (0, 0)
    return f"{one.name} began again at {after} after {before}: what it counts is unknown"


def _part(one: WorkCounter, lines: int) -> str | None:
    first, last = one.lines
    if last < COVERED * lines:
        return f"{one.name} is printed until line {last} of {lines} only: the unit may have changed"
    if first > COVERED * lines:
        return f"{one.name} is printed from line {first} of {lines} on only: the unit may have changed"
    return None


def _disagreeing(counters: list[WorkCounter]) -> list[str]:
    return [
        f"two counts of {one.unit} disagree: {one.name} {one.last} and {other.name} {other.last}"
        for one, other in combinations(counters, 2)
        if one.unit == other.unit and one.last and not 1 / APART <= other.last / one.last <= APART
    ]
