"""What a recording of another monitor shows as a whole, as text for people."""

from __future__ import annotations

from gpudebug.core.answers.analyze import RecordedDevice, SamplesAnswer, WholeRecording
from gpudebug.core.statistics import numbers
from gpudebug.core.words import counted
from gpudebug.terminal.devices import devices, energy, failure, inside_of

_MOST_DEVICES = 16
_MOST_GAPS = 3
_WORDS = {"gpu_util": "utilisation", "mem_used_mb": "memory", "power_w": "power"}


def samples(answer: SamplesAnswer) -> str:
    """Render samples: what each device did in their window, and in all of a recording of others."""
    window = answer.window
    span = f"window {window.start_s:.1f} to {window.end_s:.1f} s" if window else f"no window: {answer.reason}"
    lines = [f"{answer.file}: {_of(answer)}, {span}"]
    lines += failure(answer.failure) if answer.failure else []
    if answer.recorded is not None:
        lines += recording(answer.recorded)
        lines += ["in the steady window"] if window is not None else []
    if answer.recorded is None or window is not None:
        lines += devices(answer.devices, answer.across)
    rate = answer.throughput.steps_per_s
    if rate is not None and rate != (answer.probe or {}).get("steps_per_s"):
        lines.append(f"throughput {numbers.number(rate, 'steps/s')}")
    lines += [f"note: {note}" for note in answer.notes]
    return "\n".join([*lines, *energy(answer.joules_per_step), *inside_of(answer)])


def _of(answer: SamplesAnswer) -> str:
    """Describe whose samples they are, and which run of their file: `samples by dcgmi dmon`."""
    version = answer.recorded.version if answer.recorded else None
    by = f" by {answer.source}{f' {version}' if version else ''}" if answer.source else ""
    run = answer.run
    if run is None:
        return f"samples{by}"
    why = f", {run.begins} before it" if run.begins else ""
    return f"run {run.number} of {run.of}{by} ({run.start_s:.1f} to {run.end_s:.1f} s of the file{why})"


def recording(found: WholeRecording) -> list[str]:
    """Render its extent, a line a device with plain means of all readings, gaps, what is missing or odd."""
    lines = [f"recorded  {_extent(found)}"]
    lines += [f"  {_device(one)}" for one in found.devices[:_MOST_DEVICES]]
    left = len(found.devices) - _MOST_DEVICES
    lines += [f"  and {left} more devices (--json)"] if left > 0 else []
    if found.gap_count:
        shown = ", ".join(f"{gap.seconds:.1f} s after {gap.after_s:.1f} s" for gap in found.gaps[:_MOST_GAPS])
        lines.append(f"gaps      {counted(found.gap_count, 'gap')}: {shown}")
    if found.missing:
        lines.append(f"missing   not in the file: {', '.join(_WORDS[name] for name in found.missing)}")
    return [*lines, *(f"note: {remark}" for remark in found.remarks)]


def _extent(found: WholeRecording) -> str:
    parts = [f"{counted(found.rows, 'row')} of {counted(len(found.devices), 'device')}"]
    if found.span_s is not None:
        parts[0] += f" over {found.span_s:.1f} s"
    if found.period_s is not None:
        parts.append(f"one every {found.period_s:.3g} s{' (assumed)' if found.period_assumed else ''}")
    if found.start is not None:
        parts.append(f"from {found.start}")
    if found.gpu_util is not None and len(found.devices) > 1:
        parts.append(f"mean utilisation {found.gpu_util:.1f}%")
    return ", ".join(parts)


def _device(one: RecordedDevice) -> str:
    util = "unknown" if one.gpu_util is None else f"{one.gpu_util:.1f}%"
    over = "one reading" if one.readings == 1 else f"mean of all {one.readings} readings"
    name = f" ({one.name})" if one.name and one.name != str(one.index) else ""
    parts = [f"GPU {one.index}{name}: utilisation {util} ({over})"]
    shares = (("SM", one.sm_active), ("tensor cores", one.tensor_active), ("DRAM", one.dram_active))
    parts += [f"{word} active {100 * share:.1f}%" for word, share in shares if share is not None]
    if one.mem_used_mb is not None:
        total = f" of {one.mem_total_mb:.0f}" if one.mem_total_mb is not None else ""
        parts.append(f"memory {one.mem_used_mb:.0f}{total} MB")
    parts += [f"power {one.power_w:.0f} W"] if one.power_w is not None else []
    return ", ".join(parts)
