"""The table that `doctor --gpu` ends in: every check, from what was found and what was recorded."""

from __future__ import annotations

from collections.abc import Iterator

from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.hardware.gpu_checks import of_gpu, together, unknown
from gpudebug.core.hardware.plan import plain_uuid
from gpudebug.core.hardware.recording import GpuRecording, Machine
from gpudebug.core.records import ProbeEvidence

NAME = "probe"
_SLACK = 0.2


def probe_check(probe: ProbeEvidence | None, reason: str | None) -> DoctorCheck:
    """Compare the probe's figures with one copy, one blocking read and one wait a step.

    `reason` says why there is no probe.
    """
    if probe is None:
        return DoctorCheck(NAME, "failed", f"it reported nothing: {reason or 'no reason'}", _REPORT)
    h2d = probe.h2d.count / probe.span_steps if probe.h2d and probe.span_steps else None
    counted = {
        "copies to the GPU a step": h2d,
        "blocking reads a step": probe.blocking_reads_per_step,
        "waits a step": probe.syncs_per_step,
    }
    text = ", ".join(f"{_figure(value)} {what}" for what, value in counted.items())
    device = probe.device_time_share
    text += f"; events: {'unknown' if device is None else f'{100 * device:.0f} % of a step on the GPU'}"
    if any(value is not None and abs(value - 1) > _SLACK for value in counted.values()):
        return DoctorCheck(NAME, "failed", f"{text}, where one of each was made", _REPORT)
    if None in counted.values() or device is None:
        return unknown(NAME, text, _REPORT)
    return DoctorCheck(NAME, "ok", text)


_REPORT = "attach the bundle to a report"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


# A window of some seconds of which more than this is missing is a window with a hole.
_MOST_MISSED = 0.05
# The driver refreshes its utilisation once a second at the least (nvmlUtilization_t in nvml.h).
_LEAST_RATE = 0.9


def checks_of(machine: Machine, recording: GpuRecording) -> tuple[DoctorCheck, ...]:
    """Return all checks; the same for a recording from a bundle as on the machine that made it."""
    return (
        _driver(machine),
        order(machine),
        _mig(machine),
        _load(machine, recording),
        _ticks(recording),
        *_buffer(machine, recording),
        *(check for gpu in machine.usable for check in of_gpu(gpu, recording)),
        *([together(machine.usable, recording)] if len(machine.usable) > 1 else []),
    )


def _driver(machine: Machine) -> DoctorCheck:
    names = ", ".join(f"GPU {gpu.index} {gpu.name}" for gpu in machine.gpus)
    driver = machine.gpus[0].driver or "unknown"
    cuda = f"{machine.cuda // 1000}.{machine.cuda % 1000 // 10}"
    return DoctorCheck("driver", "ok", f"{names}; driver {driver}, CUDA {cuda}")


def order(machine: Machine) -> DoctorCheck:
    """Tell whether the sampler and CUDA mean the same GPUs, and count them alike."""
    sampled, used = tuple(plain_uuid(gpu.uuid) for gpu in machine.gpus), machine.cuda_uuids
    if sampled == used:
        return DoctorCheck("UUIDs", "ok", f"the sampler and CUDA name the same {len(used)} in the same order")
    if set(sampled) == set(used):
        return DoctorCheck(
            "UUIDs",
            "failed",
            "the sampler and CUDA name the same GPUs in another order: each has another GPU 0",
            "set CUDA_DEVICE_ORDER=PCI_BUS_ID; each is held by its UUID all the same",
        )
    missing = [f"GPU {gpu.index}" for gpu in machine.gpus if plain_uuid(gpu.uuid) not in used]
    beyond = len(set(used) - set(sampled))
    return DoctorCheck(
        "UUIDs",
        "failed",
        f"the sampler reads other GPUs than CUDA uses: {', '.join(missing) or 'none'} unseen by CUDA, "
        f"{beyond} of CUDA's not sampled",
        "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name GPUs by UUID in CUDA_VISIBLE_DEVICES (`nvidia-smi -L`)",
    )


def _mig(machine: Machine) -> DoctorCheck:
    parts = [gpu for gpu in machine.gpus if gpu.mig]
    if not parts:
        return DoctorCheck("MIG", "ok", "off: whole GPUs are sampled")
    named = ", ".join(f"GPU {gpu.index}" for gpu in parts)
    return unknown(
        "MIG",
        f"a part of {named} is sampled: NVML reports no utilisation of a part",
        "choose a whole GPU with CUDA_VISIBLE_DEVICES, or judge by `metric: steps_per_s`",
    )


def _load(machine: Machine, recording: GpuRecording) -> DoctorCheck:
    truth = recording.truth
    if truth.ended and machine.outcome == "COMPLETED":
        return DoctorCheck("load", "ok", f"{len(truth.spans)} phases, {len(truth.slices)} slices of work")
    said = truth.failed or recording.notes.lost or machine.reason or "it said no reason"
    after = f"after {truth.spans[-1].name}" if truth.spans else "before its first phase ended"
    return DoctorCheck(
        "load",
        "failed",
        f"{machine.outcome} {after}: {said}",
        "look for Xid in `dmesg`, and attach the bundle to a report",
    )


def _ticks(recording: GpuRecording) -> DoctorCheck:
    notes = recording.notes
    times = sorted({r.elapsed for r in recording.rows if r.elapsed is not None})
    if not times or not notes.ticks:
        return unknown("sampling", "there are no samples")
    # The last row is written when the run ends, at no tick.
    late = sorted(1000 * _late(t, notes.interval) for t in times[:-1] or times)
    text = (
        f"{notes.ticks} ticks each {notes.interval:g} s, {notes.missed} missed; "
        f"late by {late[len(late) // 2]:.1f} ms (median), {late[int(0.99 * (len(late) - 1))]:.1f} ms (99 %)"
    )
    if notes.restarts:
        return DoctorCheck("sampling", "failed", f"{text}; restarted {notes.restarts} times", _CRASHES)
    if notes.missed > _MOST_MISSED * (notes.ticks + notes.missed):
        return DoctorCheck(
            "sampling", "failed", text, "leave the sampler some of a core, then run this again"
        )
    return DoctorCheck("sampling", "ok", text)


_CRASHES = "the driver hung or crashed: look for Xid in `dmesg`, and attach the bundle to a report"


def _late(elapsed: float, interval: float) -> float:
    """Seconds since the tick; `elapsed` has three digits."""
    return max(0.0, elapsed - int(elapsed / interval + 1e-6) * interval)


def _buffer(machine: Machine, recording: GpuRecording) -> Iterator[DoctorCheck]:
    source = recording.notes.source
    for gpu in machine.usable:
        name = f"GPU {gpu.index} buffer"
        rows = [r for r in recording.rows if r.gpu_uuid == gpu.uuid and r.new_samples is not None]
        if "none" in source or len(rows) < 2:
            yield unknown(name, "the driver reports no utilisation of it")
            continue
        span = (rows[-1].elapsed or 0.0) - (rows[0].elapsed or 0.0)
        rate = sum(r.new_samples or 0 for r in rows[1:]) / span if span else 0.0
        text = f"{rate:.1f} new samples a second"
        if source != "samples":
            yield unknown(
                name, f"{text}, its latest figure each: the driver keeps no buffer that can be read"
            )
        elif rate < _LEAST_RATE:
            yield DoctorCheck(name, "failed", f"{text}: the driver's figure stands still", _CRASHES)
        else:
            yield DoctorCheck(name, "ok", f"{text}, of the driver's own buffer")
