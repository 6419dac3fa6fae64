"""A run that changes what it does, cut into phases: as its log names them, else by optimizers that begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.evidence.window_figures import window_figures
from gpudebug.core.inside import probe
from gpudebug.core.records import PhaseEvidence, Window
from gpudebug.core.samples.table import SampleTable
from gpudebug.core.samples.window import MIN_RUN_WINDOW_S, Device, Stretch, find_window
from gpudebug.core.trainlog.phase_lines import LoggedPhase
from gpudebug.core.trainlog.series import Point
from gpudebug.core.words import FLIPS

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogSummary

LOG, OPTIMIZERS = "log", "optimizers"
MOST_OPTIMIZERS = 4
"""Of more, a program makes them anew, as for each task or epoch."""
MOST_PHASES = 16
MOST_CHANGES = 10
"""Short stretches that a run may have, as at its start, and still be one in phases."""
_COLUMN = 3
"""So many lines that name a phase, over half of it, name it all along: it ends with the last of them."""
_TICK_S = 0.001


class PhaseSpan(NamedTuple):
    """A stretch of a phase, in seconds since launch."""

    name: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class RunCut:
    """The phases of a run in the order in which they began; `reason` is why one that was asked for is
    missing, or why there are none."""

    phases: tuple[PhaseEvidence, ...] = ()
    reason: str | None = None

    def window_of(self, name: str | None) -> tuple[Window | None, str | None]:
        """Return the steady window of a phase; None with the reason."""
        found = next((one for one in self.phases if one.is_named(name)), None)
        if found is None:
            return None, self.reason or never(name or "", {}, self.phases)
        if found.window is None:
            return None, f"phase {found.name}: {found.window_reason}"
        return found.window, None


def never(name: str, declared: Mapping[str, str], phases: Sequence[PhaseEvidence]) -> str:
    """Return that a phase did not come, and which ones did."""
    expression = declared.get(name)
    asked = f": no line of the log matches {expression!r}" if expression else ""
    seen = ", ".join(one.name for one in phases)
    return f"phase {name} never began{asked}; {f'seen: {seen}' if seen else 'no phase was seen'}"


def phases(
    run: EndedRun,
    read: RunReadings,
    samples: SampleTable,
    series: Mapping[Device, Sequence[Stretch]],
    first: float | None,
    *,
    warmup: float | None,
    least: float,
    doubt: str | None,
) -> RunCut:
    """Cut a run and summarise each phase; `first` is when its first step had ended. The others as
    `window_figures` and `find_window` have them."""
    if doubt:
        return RunCut()
    end = max((readings[-1].end for readings in series.values() if readings), default=0.0)
    main = read.told.main if read.told else None
    by, spans = LOG, stretches_of(read.log.phases, first, end)
    if not spans and main is not None:
        by, spans = OPTIMIZERS, by_optimizers(main.optimizers, end)
    if (why := flips(spans)) is not None:
        return RunCut(reason=why)
    names = list(dict.fromkeys(span.name for span in spans))[:MOST_PHASES]
    found = tuple(
        _evidence(
            run, read, samples, series, [span for span in spans if span.name == name], by, warmup, least
        )
        for name in names
    )
    wanted = [*run.declared, *([run.phase] if run.phase is not None else [])]
    missing = next((name for name in wanted if not any(one.is_named(name) for one in found)), None)
    return RunCut(found, never(missing, run.declared, found) if missing is not None else None)


def stretches_of(lines: Sequence[LoggedPhase], first: float | None, end: float) -> list[PhaseSpan]:
    """Return what a log names, from the first step on; what comes before the first name is a phase, too."""
    known = [line for line in lines if line.start_s is not None]
    found: list[PhaseSpan] = []
    for i, line in enumerate(known):
        start, last = line.start_s or 0.0, line.last_s or 0.0
        following = known[i + 1].start_s if i + 1 < len(known) else None
        stop = end if following is None else following
        if following is not None and line.lines >= _COLUMN and last - start >= (stop - start) / 2:
            stop = min(stop, last + _TICK_S)
        start = max(start, first or 0.0)
        if stop > start:
            found.append(PhaseSpan(line.name, start, stop))
    if found and first is not None and found[0].start_s - first >= MIN_RUN_WINDOW_S:
        found.insert(0, PhaseSpan(f"before {found[0].name}", first, found[0].start_s))
    return found


def by_optimizers(stepped: Mapping[str, float], end: float) -> list[PhaseSpan]:
    """Return the phases that begin when an optimizer first steps, long after the first did; none of one."""
    times = sorted(stepped.values())
    begun = [t for i, t in enumerate(times) if i == 0 or t - times[i - 1] >= MIN_RUN_WINDOW_S]
    if not len(begun) >= 2 or len(times) > MOST_OPTIMIZERS:
        return []
    spans = zip(begun, [*begun[1:], end], strict=True)
    return [PhaseSpan(f"optimizer {times.index(t) + 1}", t, stop) for t, stop in spans if stop > t]


def flips(spans: Sequence[PhaseSpan]) -> str | None:
    """Return why spans are no phases: they change within the steps. None if they are."""
    lengths: defaultdict[str, list[float]] = defaultdict(list)
    for span in spans:
        lengths[span.name].append(span.seconds)
    usual = [median(each) for each in lengths.values()]
    if len(spans) <= MOST_CHANGES or max(usual) >= MIN_RUN_WINDOW_S:
        return None
    names, every = " and ".join([*lengths][:3]), (spans[-1].end_s - spans[0].start_s) / len(spans)
    return (
        f"{FLIPS}{names} {len(spans) - 1} times, every {every:.1f} s: these are parts of "
        "steps and no phases; gpudebug.profile_section times them"
    )


def _evidence(
    run: EndedRun,
    read: RunReadings,
    samples: SampleTable,
    series: Mapping[Device, Sequence[Stretch]],
    spans: Sequence[PhaseSpan],
    by: str,
    warmup: float | None,
    least: float,
) -> PhaseEvidence:
    """Summarise one phase by its longest stretch."""
    span = max(spans, key=lambda one: one.seconds)
    start, end = span.start_s, span.end_s
    main = read.told.main if read.told else None
    log = _clipped(read.log, start, end)
    within = {device: [s for s in readings if s.end <= end] for device, readings in series.items()}
    steady = probe.steady(main, start, end) if main else None
    window, reason = find_window(
        within, log, None, steady, first=max(start, warmup or 0.0), least=least, over=False
    )
    figures = window_figures(
        run, replace(read, log=log), samples, series, window, reason=reason, doubt=None if window else reason
    )
    losses = [p.value for p in log.loss if window and p.time is not None and p.time >= window.start_s]
    return PhaseEvidence(
        name=span.name,
        by=by,
        start_s=round(start, 3),
        end_s=round(end, 3),
        seconds=round(sum(one.seconds for one in spans), 3),
        stretches=len(spans),
        window=window,
        window_reason=reason,
        losses=(losses[0], losses[-1]) if len(losses) > 1 else None,
        **{name: value for name, value in figures.items() if name in PhaseEvidence.model_fields},
    )


def _clipped(log: LogSummary, start: float, end: float) -> LogSummary:
    """Return what a log says between two times: no rate of the whole run is left in it."""

    def inside(time: float | None) -> bool:
        return time is not None and start <= time < end

    def points(items: Sequence[Point]) -> tuple[Point, ...]:
        return tuple(one for one in items if inside(one.time))

    counters = [(one, tuple(pair for pair in one.times if inside(pair[1]))) for one in log.work.counters]
    samples = tuple(line for line in log.speech.get("samples", ()) if inside(line[1]))
    return replace(
        log,
        step_times=tuple(pair for pair in log.step_times if inside(pair[1])),
        steps_per_s=None,
        progress_per_s=None,
        loss=points(log.loss),
        durations=points(log.durations),
        extra={name: points(each) for name, each in log.extra.items()},
        speech={**log.speech, "samples": samples},
        work=replace(
            log.work,
            counters=tuple(replace(one, times=kept, seen=len(kept)) for one, kept in counters),
            rates=tuple(replace(one, points=points(one.points)) for one in log.work.rates),
        ),
    )
