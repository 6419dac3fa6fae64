"""One run's samples and log -> the facts that a verdict may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from gpudebug.core.command.program import programs
from gpudebug.core.evidence import learning, speed
from gpudebug.core.evidence.phases import phases
from gpudebug.core.evidence.program import program_evidence
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.evidence.window_figures import window_figures
from gpudebug.core.inside import probe, stacks
from gpudebug.core.inside.probe.figures import NOBODY
from gpudebug.core.inside.ranks import rank_evidence
from gpudebug.core.records import (
    Evidence,
    LossEvidence,
    ProgramEvidence,
)
from gpudebug.core.samples import conditions
from gpudebug.core.samples.table import joined
from gpudebug.core.samples.window import (
    MIN_RUN_WINDOW_S,
    Device,
    Stretch,
    find_window,
    first_step,
    stretches,
)
from gpudebug.core.statistics import loss_curve
from gpudebug.core.statistics.numbers import finite
from gpudebug.core.words import Outcome, Trend

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogSummary

EVIDENCE_RULE = "5"
"""What makes other evidence of the same samples and log raises it: a version alone does not tell."""

SPARK = 40
_LATE_STEPS, _LATE_S, _TOGETHER_S = 10, 3.0, 0.5
"""So many steps in so short a time, so long after the launch, come out of a buffer."""


def build(
    run: EndedRun,
    read: RunReadings,
    *,
    warmup: float | None = None,
    advice: Callable[[LogSummary], str | None] | None = None,
    scrub: Callable[[str], str] = str,
) -> Evidence:
    """Summarise one run. `warmup` is a fixed span in seconds, None lets the data decide; `scrub` takes
    secrets out of source.

    A figure that the run did not yield is None, with the reason beside it.
    """
    samples, log = joined(read.samples, read.beside), read.log
    series = {device: stretches(rows, device) for device, rows in samples.by_device.items()}
    ended = run.duration_s if run.outcome is Outcome.COMPLETED else run.planned_s
    doubt = conditions.doubt(read.samples, ended, read.log_bytes)
    main = read.told.main if read.told else None
    least = run.least_window_s if run.least_window_s is not None else MIN_RUN_WINDOW_S
    first = first_step(log, probe.first_step(main) if main else None)
    cut = phases(run, read, samples, series, first, warmup=warmup, least=least, doubt=doubt)
    if doubt or run.phase is not None:
        window, window_reason = (None, doubt) if doubt else cut.window_of(run.phase)
    else:
        steady = probe.steady(main) if main else None
        window, window_reason = find_window(
            series, log, warmup, steady, first=first, least=least, over=run.over
        )
    figures = window_figures(run, read, samples, series, window, reason=window_reason, doubt=doubt)
    inside = figures["probe"]
    allowed = (
        inside.facts.get("cpus") if inside else max((one.cores for one in programs(read.seen)), default=0)
    )
    cores = conditions.usable(run.cpu_quota, allowed)
    program = _program(read)
    return Evidence(
        run=run.name,
        role=run.role,
        outcome=run.outcome,
        exit_status=run.exit_status,
        signal=run.signal,
        failure=run.failure,
        reason=run.reason,
        duration_s=run.duration_s,
        window=window,
        window_reason=window_reason if window is None else None,
        **figures,
        steps=log.steps if log.steps is not None else (inside.steps or None if inside else None),
        total_steps=log.total_steps,
        first_step_s=first,
        phases=cut.phases,
        phases_reason=cut.reason,
        step_unit=log.step_unit,
        **(speed.latency_figures(log.latencies, warmup) if not doubt else {}),
        data_s=finite(log.data_s),
        update_s=finite(log.update_s),
        framework=log.framework,
        loss=LossEvidence(
            name=log.loss_name,
            trend=log.trend,
            points=log.points,
            first=finite(log.first),
            last=finite(log.last),
            of=scrub(log.loss_is) if log.loss_is is not None else None,
            advice=advice(log) if advice and log.trend is Trend.UNKNOWN else None,
            curve=loss_curve.curve(
                ((p.step, p.value) for p in (() if log.of_learner else log.loss)),
                loss_curve.POINTS if run.planned_s is None else loss_curve.POINTS_PLANNED,
            ),
            begin=_begin(log),
        ),
        peak_rss_mb=max((r.rss_mb for r in samples.rows if r.rss_mb is not None), default=None),
        peak_device_mb=max((r.mem_used_mb for r in samples.rows if r.mem_used_mb is not None), default=None),
        missing=dict(run.missing),
        conditions=conditions.observed(
            samples.rows,
            window,
            cores,
            crashed=run.outcome is Outcome.CRASHED,
            nodes=bool(read.beside),
        ),
        printed=dict(read.settings.known),
        restated=dict(read.settings.restated),
        occasions=dict(log.occasions),
        resumed=scrub(log.resumed) if log.resumed is not None else None,
        cached=scrub(log.cached) if log.cached is not None else None,
        first_count=log.span[0] if log.span else None,
        last_count=log.span[1] if log.span else None,
        loaded=read.loaded,
        probe_reason=None if inside is not None else (program and program.apart) or read.probe_reason,
        stacks=stacks.stacks_evidence(
            read.watched, window, _first_rank(read), scrub, read.seen, figures["steps_per_s"]
        ),
        spark=_spark(series),
        step_flags=dict(run.step_flags),
        learning=learning.series(log, read.written, main),
        learning_notes=tuple(read.written_notes),
        attached=read.attached,
        ranks=rank_evidence(read.told, read.watched, window, scrub, run.devices),
        program=program,
    )


def _program(read: RunReadings) -> ProgramEvidence | None:
    """Return which process was the program; of a job that ran already nothing was started."""
    if read.attached is not None:
        return None
    told, log = read.told, read.log
    main = told.main if told is not None and told.main is not None and told.main.steps else None
    trained = [p.pid for p in (main, *told.ranks) if p is not None] if told is not None and main else []
    reported = [p.pid for p in told.processes if 2 * p.steps >= main.steps] if told and main else []
    silent = (log.steps is None and not log.points) or _at_once([time for _, time in log.step_times])
    probed = read.probe_reason in (None, NOBODY)
    return program_evidence(read.seen, trained, reported, silent=silent, probed=probed)


def _at_once(times: Sequence[float]) -> bool:
    """Tell whether the steps of a log all came together, long after the launch: they were held back."""
    late = len(times) >= _LATE_STEPS and min(times) >= _LATE_S
    return late and max(times) - min(times) <= _TOGETHER_S


def _first_rank(read: RunReadings) -> probe.ProcessKey | None:
    """Return the process whose stacks are the run's: rank 0, as far as it is known, else the main one; of a
    job that ran already the one that was looked at."""
    if read.told is not None and read.told.main is not None:
        return read.told.ranks[0].key
    main = read.attached.main if read.attached else None
    return probe.ProcessKey(None, main.pid) if main else None


def _begin(log: LogSummary) -> tuple[tuple[int, float], ...]:
    """Return the first losses by step; none of a learner's, or from the first that is no number."""
    known = () if log.of_learner else log.loss_begin
    points = [(p.step, p.value) for p in known if p.step is not None]
    return tuple(takewhile(lambda point: math.isfinite(point[1]), points))


def _spark(series: Mapping[Device, Sequence[Stretch]]) -> tuple[float, ...]:
    """Means of the utilisation of all devices in at most 40 equal spans of the run."""
    readings = [r for values in series.values() for r in values]
    if not readings:
        return ()
    end = max(r.end for r in readings)
    sums = [[0.0, 0.0] for _ in range(SPARK)]
    for r in readings:
        bin_ = min(SPARK - 1, int(SPARK * (r.end - r.width / 2) / end))
        sums[bin_][0] += r.value * r.width
        sums[bin_][1] += r.width
    return tuple(round(total / width, 1) for total, width in sums if width > 0)
