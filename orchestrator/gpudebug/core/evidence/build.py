"""One run's samples and log -> the facts that a verdict may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudebug.core.command import batch
from gpudebug.core.command.program import RunProcess
from gpudebug.core.evidence import learning, speed, work
from gpudebug.core.evidence.devices import device_evidence, joules_per_step, silent, together
from gpudebug.core.evidence.program import program_evidence
from gpudebug.core.inside import probe, stacks
from gpudebug.core.inside.probe.figures import NOBODY, nodes, notes
from gpudebug.core.inside.ranks import rank_evidence
from gpudebug.core.records import (
    AttachedEvidence,
    DeviceInfo,
    Evidence,
    Failure,
    LearningSeries,
    LoadedFiles,
    LossEvidence,
    ProbeEvidence,
    ProgramEvidence,
    Window,
    WorkRate,
)
from gpudebug.core.samples import conditions
from gpudebug.core.samples.table import SampleTable, joined
from gpudebug.core.samples.window import (
    MIN_RUN_WINDOW_S,
    Device,
    Stretch,
    arrivals,
    find_window,
    first_step,
    is_short,
    stretches,
)
from gpudebug.core.statistics import loss_curve
from gpudebug.core.trainlog.overrides import Settings
from gpudebug.core.words import Outcome, Trend

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogSummary

EVIDENCE_RULE = "3"
"""What makes other evidence of the same samples and log raises it: a version alone does not tell."""

SPARK = 40
_LATE_STEPS, _LATE_S, _TOGETHER_S = 10, 3.0, 0.5
"""So many steps in so short a time, so long after the launch, come out of a buffer."""


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    """What a run was and how it ended. None is not known.

    `planned_s` is when gpudebug ended it by its plan, `devices` are those that it was sampled on, `missing`
    says by a figure's name why it could not be read, `least_window_s` how short its window may be if not
    `MIN_RUN_WINDOW_S`, `batch_flags` are the command's flags that set its batch, `step_flags` others that set
    what a step takes, `environment_plans` how many steps of the environment it plans, `cpu_quota` is how many
    cores it was given. `over` is as `find_window` has it. `unsampled` says why a node was
    not sampled.
    """

    name: str
    role: str
    outcome: Outcome
    exit_status: int | None = None
    signal: int | None = None
    failure: Failure | None = None
    reason: str | None = None
    duration_s: float | None = None
    planned_s: float | None = None
    least_window_s: float | None = None
    devices: Sequence[DeviceInfo] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    batch_flags: Mapping[str, str] = field(default_factory=dict)
    step_flags: Mapping[str, str] = field(default_factory=dict)
    environment_plans: frozenset[int] = frozenset()
    cpu_quota: float | None = None
    unsampled: Mapping[str, str] = field(default_factory=dict)
    over: bool = True


@dataclass(frozen=True, kw_only=True)
class RunReadings:
    """What was read of a run: samples, log (of `log_bytes` now) and the `settings` that it printed. `beside`
    are the samples of its other nodes.

    `loaded` is what its processes imported, `told` what they reported of training, `probe_reason` why none
    did, `watched` where their threads were, `written` the figures of learning in files that it wrote,
    `attached` what was seen of a job that ran already, `seen` what the processes below the command did.
    """

    samples: SampleTable
    log: LogSummary
    log_bytes: int | None = None
    settings: Settings = field(default_factory=Settings)
    loaded: LoadedFiles | None = None
    told: probe.ProbeRecord | None = None
    probe_reason: str | None = None
    watched: stacks.StacksRecord | None = None
    written: Sequence[LearningSeries] = ()
    written_notes: Sequence[str] = ()
    attached: AttachedEvidence | None = None
    beside: Sequence[SampleTable] = ()
    seen: Sequence[RunProcess] = ()


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
    infos = {d.uuid: d for d in run.devices}
    by_device = samples.by_device
    series = {device: stretches(rows, device) for device, rows in by_device.items()}
    ended = run.duration_s if run.outcome is Outcome.COMPLETED else run.planned_s
    doubt = conditions.doubt(read.samples, ended, read.log_bytes)
    main = read.told.main if read.told else None
    steady = probe.steady(main) if main else None
    least = run.least_window_s if run.least_window_s is not None else MIN_RUN_WINDOW_S
    first = first_step(log, probe.first_step(main) if main else None)
    window, window_reason = (
        (None, doubt)
        if doubt
        else find_window(
            series,
            log,
            warmup,
            steady,
            first=first,
            least=least,
            over=run.over,
        )
    )
    inside = probe.evidence_of(read.told, window)
    per_device = (
        *(
            device_evidence(
                device,
                infos.get(device[1]),
                by_device[device],
                readings,
                window,
                window_reason,
                run.missing,
            )
            for device, readings in series.items()
        ),
        *silent(run.devices, samples.devices, run.unsampled),
    )
    beside = together(per_device, by_device, window, infos, run.missing)
    rate = StepRates() if doubt else rates(log, window, inside)
    spreads = [d.gpu_util for d in per_device]
    known = [s.mean for s in spreads if s is not None]
    complete = bool(known) and len(known) == len(spreads)
    cores = conditions.usable(run.cpu_quota, inside.facts.get("cpus") if inside else None)
    errors = [d.standard_error for d in per_device if d.standard_error is not None]
    figures = speed.figures(log, window, rate[:2], run.batch_flags, inside) if not doubt else {}
    known_work, work_notes = _work(run, read, window, rate, figures) if not doubt else ((), ())
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
        devices=beside.devices,
        utilisation=math.fsum(known) / len(known) if complete else None,
        standard_error=max(errors) if complete and errors else None,
        steps=log.steps if log.steps is not None else (inside.steps or None if inside else None),
        total_steps=log.total_steps,
        first_step_s=first,
        steps_per_s=rate.steps_per_s,
        steps_by=rate.steps_by,
        step_unit=log.step_unit,
        progress_per_s=rate.progress_per_s,
        **figures,
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
        probe=_checked(inside, rate, run.devices, read.told),
        probe_reason=None if inside is not None else (program and program.apart) or read.probe_reason,
        stacks=stacks.stacks_evidence(read.watched, window, _first_rank(read), scrub, read.seen),
        spark=_spark(series),
        work=known_work,
        work_notes=work_notes,
        step_flags=dict(run.step_flags),
        learning=learning.series(log, read.written, main),
        learning_notes=tuple(read.written_notes),
        attached=read.attached,
        joules_per_step=joules_per_step(per_device, window, rate.steps_per_s),
        working=beside.working,
        working_reason=beside.working_reason,
        awaited=beside.awaited,
        awaited_reason=beside.awaited_reason,
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


def _work(
    run: EndedRun,
    read: RunReadings,
    window: Window | None,
    rate: StepRates,
    figures: Mapping[str, Any],
) -> tuple[tuple[WorkRate, ...], tuple[str, ...]]:
    """Return what the run processed a second, by every source, and what was wrong with others."""
    return work.candidates(
        read.log,
        window,
        steps_per_s=rate.steps_per_s,
        steps_by=rate.steps_by,
        progress_per_s=rate.progress_per_s,
        samples_per_s=figures["samples_per_s"],
        samples_by=figures["samples_by"],
        environments=batch.environments(run.step_flags)
        or batch.environments(read.settings.known)
        or batch.printed_environments(text for text, _ in read.log.speech.get("environments", ())),
        plans=run.environment_plans | batch.environment_plans(read.settings.known),
    )


def _begin(log: LogSummary) -> tuple[tuple[int, float], ...]:
    """Return the first losses by step; none of a learner's, or from the first that is no number."""
    known = () if log.of_learner else log.loss_begin
    points = [(p.step, p.value) for p in known if p.step is not None]
    return tuple(takewhile(lambda point: math.isfinite(point[1]), points))


def finite(value: float | None) -> float | None:
    """Return a figure that JSON can hold: it has no NaN and no infinity, which the loss trend shows."""
    return value if value is not None and math.isfinite(value) else None


class StepRates(NamedTuple):
    """Steps per second, progress per second in the log's own unit, and the source of the steps."""

    steps_per_s: float | None = None
    progress_per_s: float | None = None
    steps_by: str | None = None


def rates(log: LogSummary, window: Window | None, inside: ProbeEvidence | None = None) -> StepRates:
    """By arrival times in the window; if they do not tell, the probe's steps, else what the log prints."""
    measured = _measured_rate(log, window)
    in_steps = log.step_unit in (None, "step")
    if measured is not None and in_steps:
        return StepRates(measured, measured, "arrival")
    steps_per_s, steps_by = finite(log.steps_per_s), "printed"
    if inside is not None and inside.steps_per_s:
        steps_per_s, steps_by = inside.steps_per_s, "probe"
    progress = measured if measured is not None else finite(log.progress_per_s)
    if in_steps and steps_by == "probe":
        progress = steps_per_s
    return StepRates(steps_per_s, progress, steps_by if steps_per_s is not None else None)


def _checked(
    inside: ProbeEvidence | None,
    rate: StepRates,
    devices: Sequence[DeviceInfo],
    told: probe.ProbeRecord | None,
) -> ProbeEvidence | None:
    """Return the probe's evidence with what does not fit to the log and to the devices."""
    if inside is None:
        return None
    by_log = rate.steps_per_s if rate.steps_by == "arrival" else None
    return inside.model_copy(update={"notes": notes(inside, by_log, devices) + nodes(told)})


def _measured_rate(log: LogSummary, window: Window | None) -> float | None:
    if window is None:
        return None
    inside = [(t, n) for t, n in arrivals(log) if window.start_s <= t <= window.end_s]
    if len(inside) < 2:
        return None
    least = (window.duration_s if is_short(window) else MIN_RUN_WINDOW_S) / 2
    (start, before), (end, after) = inside[0], inside[-1]
    return (after - before) / (end - start) if end - start >= least else None


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
