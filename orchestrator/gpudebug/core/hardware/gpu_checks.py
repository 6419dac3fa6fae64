"""What is checked of each GPU: what the sampler read of it against what it was made to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.hardware.plan import DUTIES, IDLE, SPIN, TOGETHER, WORK, name_of
from gpudebug.core.hardware.recording import Gpu, GpuRecording, Span
from gpudebug.core.samples.conditions import SLOWING
from gpudebug.core.samples.row import DeviceReading

MOST_APART_PP = 10.0
"""A reading that is off by more could turn a verdict by itself: `criteria.failure` is 10 pp by default."""
LEAST_READINGS = 3
_ENERGY_APART = 0.2
_TIMER_APART = 0.1
# Reasons for which a GPU runs slower than its load needs; a power cap is what a busy GPU meets of itself.
_REPORT = "attach the bundle to a report"
_AGAIN = f"run this again; if it stays unknown, {_REPORT}"


def of_gpu(gpu: Gpu, recording: GpuRecording) -> Iterator[DoctorCheck]:
    """Yield every check of one GPU."""
    name = f"GPU {gpu.index}"
    yield _columns(f"{name} columns", gpu, recording)
    yield _timer(f"{name} events", gpu, recording)
    yield _copies(f"{name} copies", gpu, recording)
    yield _memory(f"{name} memory", gpu, recording)
    yield _idle(f"{name} idle", gpu, recording)
    yield _utilisation(f"{name} utilisation", gpu, recording)
    yield _power(f"{name} power", gpu, recording)
    yield _spinning(f"{name} spinning", gpu, recording)
    yield _throttling(f"{name} throttling", gpu, recording)
    yield _energy(f"{name} energy", gpu, recording)
    yield _company(f"{name} processes", gpu, recording)


def together(gpus: Sequence[Gpu], recording: GpuRecording) -> DoctorCheck:
    """Tell whether two GPUs that work at once each show their own load."""
    span = recording.span(TOGETHER)
    if span is None:
        return unknown("two together", "the phase did not end")
    found = [(gpu, read_and_made(recording, gpu, span)) for gpu in gpus if gpu.uuid in span.gpus]
    why = next((why for gpu, _ in found if (why := _why(recording, gpu, "gpu_util"))), None)
    return _compared("two together", [(f"GPU {gpu.index}", pair) for gpu, pair in found], why)


def unknown(name: str, found: str, next: str = _AGAIN) -> DoctorCheck:
    """Return a check that could not be made."""
    return DoctorCheck(name, "unknown", found, next)


def read_and_made(recording: GpuRecording, gpu: Gpu, span: Span) -> tuple[float, float] | None:
    """Utilisation as it was read and as it was made in a phase, in %; None if there are too few readings."""
    read, made = mean_util(recording.of(gpu.uuid, span)), recording.duty(gpu.uuid, span)
    return None if read is None or made is None else (read, made)


def mean_util(rows: Iterable[DeviceReading]) -> float | None:
    """Return the mean of the driver's samples that are new; None for fewer readings than LEAST_READINGS."""
    new = [(r.gpu_util, r.new_samples) for r in rows if r.gpu_util is not None and r.new_samples]
    if len(new) < LEAST_READINGS:
        return None
    return sum(util * count for util, count in new) / sum(count for _, count in new)


def _loads(recording: GpuRecording, gpu: Gpu) -> list[tuple[str, Span]]:
    """Return the phases in which a GPU worked alone, by their duty."""
    spans = ((f"{100 * duty:.0f} %", recording.span(name_of(WORK, duty), gpu.uuid)) for duty in DUTIES)
    return [(label, span) for label, span in spans if span is not None]


def _columns(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    device = {c: why for c in _DEVICE_COLUMNS if (why := lacks(recording, gpu, c)) is not None}
    text = "; ".join(f"{column}: {why}" for column, why in device.items())
    if any("ermission" in why for why in device.values()):
        return DoctorCheck(
            name, "failed", text, "run as a user who may open /dev/nvidia* (see `ls -l /dev/nvidia*`)"
        )
    if device:
        return unknown(name, text, "what a driver lacks is unknown in every run, never 0")
    return DoctorCheck(name, "ok", "the driver answers for all of them")


_DEVICE_COLUMNS = (
    *("gpu_util", "mem_util", "mem_used_mb", "power_w", "sm_clock_mhz", "mem_clock_mhz", "temperature_c"),
    *("throttle", "energy_j", "foreign_procs"),
)


def _timer(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    timer = recording.truth.timers.get(gpu.uuid)
    if timer is None:
        return unknown(name, "no kernel was timed")
    text = (
        f"a kernel of {1000 * timer.asked_s:.1f} ms took {1000 * timer.event_s:.1f} ms by events, "
        f"{1000 * timer.host_s:.1f} ms until the host had waited for it"
    )
    longer = timer.event_s / timer.asked_s - 1
    if abs(longer) > _TIMER_APART or timer.host_s < timer.event_s * (1 - _TIMER_APART):
        return DoctorCheck(name, "failed", text, f"{_REPORT}: the GPU's clock and the host's disagree")
    return DoctorCheck(name, "ok", text)


def _copies(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    copy = recording.truth.copies.get(gpu.uuid)
    if copy is None:
        return unknown(name, "nothing was copied")
    if not copy.same:
        return DoctorCheck(
            name, "failed", "what was copied came back changed", "look for Xid and ECC errors in `dmesg`"
        )
    rates = [f"{copy.size / seconds / 1e9:.1f} GB/s" for seconds in (copy.to_s, copy.back_s) if seconds > 0]
    return DoctorCheck(name, "ok", f"{copy.size >> 20} MB of pinned memory: {' there, '.join(rates)} back")


def _memory(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    held, idle = recording.truth.held.get(gpu.uuid), recording.span(IDLE)
    loads = [span for _, span in _loads(recording, gpu)]
    before = [
        r.mem_used_mb for r in (recording.of(gpu.uuid, idle) if idle else ()) if r.mem_used_mb is not None
    ]
    during = [
        r.mem_used_mb for span in loads for r in recording.of(gpu.uuid, span) if r.mem_used_mb is not None
    ]
    if held is None or not before or not during:
        return unknown(name, _why(recording, gpu, "mem_used_mb") or "no memory was held, or none was read")
    rise = max(during) - min(before)
    text = f"{rise:.0f} MB more while {held >> 20} MB were held"
    if rise < 0.9 * (held >> 20):
        return DoctorCheck(name, "failed", text, f"{_REPORT}: memory is read of another GPU, or not at all")
    return DoctorCheck(name, "ok", text)


def _idle(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    spans = recording.without_load(gpu.uuid)
    found = [util for span in spans if (util := mean_util(recording.of(gpu.uuid, span))) is not None]
    if not found:
        return unknown(name, _why(recording, gpu, "gpu_util") or "too few readings")
    text = f"at most {max(found):.1f} % while it had no load, in {len(found)} phases"
    if max(found) > MOST_APART_PP:
        return DoctorCheck(
            name,
            "failed",
            text,
            "end what else computes there; if nothing does, the reading is another GPU's",
        )
    return DoctorCheck(name, "ok", text)


def _utilisation(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    pairs = [(label, read_and_made(recording, gpu, span)) for label, span in _loads(recording, gpu)]
    return _compared(name, pairs, _why(recording, gpu, "gpu_util"))


def _compared(
    name: str, pairs: Sequence[tuple[str, tuple[float, float] | None]], reason: str | None
) -> DoctorCheck:
    known = [(label, pair) for label, pair in pairs if pair is not None]
    if len(known) < 2 or len(known) < len(pairs):
        why = reason or "too few readings, or the load ended early"
        return unknown(name, why, "choose a whole GPU with CUDA_VISIBLE_DEVICES if this is a part of one")
    text = ", ".join(f"{label}: {read:.1f} % read, {made:.1f} % made" for label, (read, made) in known)
    in_order = [read for _, (read, made) in sorted(known, key=lambda one: one[1][1])]
    furthest = max(abs(read - made) for _, (read, made) in known)
    if furthest > MOST_APART_PP or any(later <= earlier for earlier, later in pairwise(in_order)):
        return DoctorCheck(
            name,
            "failed",
            f"{text}; {furthest:.1f} pp apart",
            f"judge by `metric: steps_per_s` until that is understood, and {_REPORT}",
        )
    return DoctorCheck(name, "ok", f"{text}; at most {furthest:.1f} pp apart")


def mean_power(recording: GpuRecording, gpu: Gpu, span: Span | None) -> float | None:
    """Mean power in a phase, in W; None if there are too few readings."""
    rows = recording.of(gpu.uuid, span) if span else []
    watts = [r.power_w for r in rows if r.power_w is not None]
    return sum(watts) / len(watts) if len(watts) >= LEAST_READINGS else None


def _power(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    found = [(label, mean_power(recording, gpu, span)) for label, span in _loads(recording, gpu)]
    known = [(label, watts) for label, watts in found if watts is not None]
    if len(known) < len(DUTIES):
        return unknown(
            name, _why(recording, gpu, "power_w") or "too few readings", "working share stays unknown"
        )
    idle = mean_power(recording, gpu, recording.span(IDLE))
    shown = [*([("idle", idle)] if idle is not None else []), *known]
    limit = f"; limit {gpu.power_limit_w:.0f} W" if gpu.power_limit_w else ""
    text = ", ".join(
        f"{watts:.0f} W at {label}" if label != "idle" else f"{watts:.0f} W idle" for label, watts in shown
    )
    if any(later <= earlier for (_, earlier), (_, later) in pairwise(known)):
        return DoctorCheck(name, "failed", f"{text}: it does not rise with the load", _POWER_USELESS)
    return DoctorCheck(name, "ok", f"{text}{limit}")


_POWER_USELESS = f"do not rely on working share or joules here, and {_REPORT}"


def _spinning(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    """Power tells a GPU that waits from one that works: both are as busy."""
    waits, works = (
        mean_power(recording, gpu, recording.span(name_of(kernel, DUTIES[-1]), gpu.uuid))
        for kernel in (SPIN, WORK)
    )
    if waits is None or works is None:
        return unknown(
            name, _why(recording, gpu, "power_w") or "too few readings", "working share stays unknown"
        )
    text = f"{waits:.0f} W for one thread that spins at 95 %, {works:.0f} W for work on the whole GPU"
    if waits >= works:
        return DoctorCheck(name, "failed", text, _POWER_USELESS)
    return DoctorCheck(name, "ok", text)


def _throttling(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    cells = [r.throttle for r in recording.rows if r.gpu_uuid == gpu.uuid and r.throttle is not None]
    if not cells:
        return unknown(name, _why(recording, gpu, "throttle") or "no readings")
    seen = dict.fromkeys(reason for cell in cells for reason in cell.split("+"))
    slowed = [reason for reason in SLOWING if reason in seen]
    if slowed:
        return DoctorCheck(
            name,
            "failed",
            f"slowed down: {', '.join(slowed)}",
            "see to cooling and power supply (`nvidia-smi -q -d PERFORMANCE`)",
        )
    return DoctorCheck(name, "ok", f"reasons seen: {', '.join(seen)}")


def _energy(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    counted = recording.notes.energy_j.get(gpu.uuid)
    if counted is None:
        why = _why(recording, gpu, "energy_j") or "the driver has no counter"
        return unknown(name, why, "joules are integrated from power instead")
    integrated = _integrated(recording, gpu)
    if integrated is None:
        return DoctorCheck(
            name, "ok" if counted > 0 else "failed", f"{counted:.0f} J counted; power is unknown"
        )
    apart = counted / integrated - 1 if integrated else 1.0
    text = f"{counted:.0f} J counted, {integrated:.0f} J by power ({100 * apart:+.0f} %)"
    if abs(apart) > _ENERGY_APART:
        return DoctorCheck(name, "failed", text, f"do not rely on joules here, and {_REPORT}")
    return DoctorCheck(name, "ok", text)


def _integrated(recording: GpuRecording, gpu: Gpu) -> float | None:
    """Joules of the whole run by its readings of power."""
    known = [
        (r.elapsed, r.power_w)
        for r in recording.rows
        if r.gpu_uuid == gpu.uuid and r.power_w is not None and r.elapsed is not None
    ]
    if len(known) < LEAST_READINGS:
        return None
    return sum((t2 - t1) * (w1 + w2) / 2 for (t1, w1), (t2, w2) in pairwise(known))


def _company(name: str, gpu: Gpu, recording: GpuRecording) -> DoctorCheck:
    counts = [
        r.foreign_procs for r in recording.rows if r.gpu_uuid == gpu.uuid and r.foreign_procs is not None
    ]
    if not counts:
        return unknown(name, _why(recording, gpu, "foreign_procs") or "no readings")
    if max(counts) > 0:
        return DoctorCheck(
            name,
            "failed",
            f"{max(counts)} processes counted as others' while only this check's own computed there",
            "in a container start it with the host's processes in sight (`--pid=host`)",
        )
    return DoctorCheck(name, "ok", "the check's own process is not taken for another's")


def lacks(recording: GpuRecording, gpu: Gpu, column: str) -> str | None:
    """Why a GPU has no such column; None if it has. The sampler names the GPUs if only some lack it."""
    reason = recording.notes.missing.get(column)
    if reason is None:
        return None
    named = [part.partition(": ") for part in reason.split("; ") if part.startswith("GPU ")]
    if not named:
        return reason
    return next((why for which, _, why in named if which == f"GPU {gpu.index}"), None)


def _why(recording: GpuRecording, gpu: Gpu, column: str) -> str | None:
    reason = lacks(recording, gpu, column)
    return f"{column}: {reason}" if reason else None
