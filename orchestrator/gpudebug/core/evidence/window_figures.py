"""The figures of a run within a window of it: its devices, its rates and its work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudebug.core.command import batch
from gpudebug.core.evidence import speed, work
from gpudebug.core.evidence.devices import device_evidence, joules_per_step, silent, together
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.inside import probe
from gpudebug.core.inside.probe.figures import nodes, notes
from gpudebug.core.records import DeviceInfo, ProbeEvidence, Window, WorkRate
from gpudebug.core.samples.table import SampleTable
from gpudebug.core.samples.window import MIN_RUN_WINDOW_S, Device, Stretch, arrivals, is_short
from gpudebug.core.statistics.numbers import finite

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogSummary


def window_figures(
    run: EndedRun,
    read: RunReadings,
    samples: SampleTable,
    series: Mapping[Device, Sequence[Stretch]],
    window: Window | None,
    *,
    reason: str | None,
    doubt: str | None,
) -> dict[str, Any]:
    """Return the fields of an Evidence that are of `window`, by name; `reason` is why there is none.

    `series` are the devices' readings in `samples`. With a `doubt` about these the log has no figure.
    """
    infos, log = {d.uuid: d for d in run.devices}, read.log
    by_device = samples.by_device
    inside = probe.evidence_of(read.told, window)
    per_device = (
        *(
            device_evidence(
                device, infos.get(device[1]), by_device[device], readings, window, reason, run.missing
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
    errors = [d.standard_error for d in per_device if d.standard_error is not None]
    figures = speed.figures(log, window, rate[:2], run.batch_flags, inside) if not doubt else {}
    known_work, work_notes = _work(run, read, window, rate, figures) if not doubt else ((), ())
    return {
        "devices": beside.devices,
        "utilisation": math.fsum(known) / len(known) if complete else None,
        "standard_error": max(errors) if complete and errors else None,
        **rate._asdict(),
        **figures,
        "work": known_work,
        "work_notes": work_notes,
        "probe": _checked(inside, rate, run.devices, read.told),
        "joules_per_step": joules_per_step(per_device, window, rate.steps_per_s),
        "working": beside.working,
        "working_reason": beside.working_reason,
        "awaited": beside.awaited,
        "awaited_reason": beside.awaited_reason,
    }


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
