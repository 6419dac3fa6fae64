"""The answer of `gpudebug sample` as text for people, and the devices of a run."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.answers.analyze import SamplesAnswer
from gpudebug.core.answers.sample import FailureLines, LatencyFigures, SampleAnswer, SampledDevice
from gpudebug.core.inside.probe.together import side
from gpudebug.core.statistics import numbers
from gpudebug.core.trainlog.remedies import remedy
from gpudebug.terminal.probe import inside
from gpudebug.terminal.stacks import places


def sample(answer: SampleAnswer) -> str:
    why = f" ({answer.why})" if answer.why else ""
    lines = [f"{answer.outcome}{why}, exit status {answer.exit_status}"]
    window = answer.window
    if answer.failure:
        lines += failure(answer.failure)
    if window:
        lines[0] += f"; {window_text(window.start_s, window.end_s, window.samples)}"
    lines += devices(answer.devices)
    rate = answer.throughput.steps_per_s
    # The probe's own rate is among its figures.
    if rate is not None and rate != (answer.probe or {}).get("steps_per_s"):
        lines.append(f"throughput {numbers.number(rate, 'steps/s')}")
    lines += latency(answer.latency)
    lines += [f"note: {line}" for line in answer.notes]
    lines += inside_of(answer)
    return "\n".join([*lines, f"samples {answer.csv}", f"log     {answer.log}", *_trace(answer)])


def inside_of(answer: SampleAnswer | SamplesAnswer) -> list[str]:
    """Render what the training process showed from inside."""
    record = {"run": "probe", "probe": answer.probe, "probe_reason": answer.probe_reason}
    lines = [*inside([side("probe", [record])]), *places(answer.stacks)]
    if answer.sections:
        from gpudebug.terminal import sections

        lines += sections.of_run(answer.sections)
    return lines


def failure(found: FailureLines) -> list[str]:
    """Format a failure: its class and last line, and what to try."""
    last = f": {found.lines[-1].strip()}" if found.lines else ""
    helps = remedy(found.class_)
    return [f"failure {found.class_}{last}", *([f"  try {helps}"] if helps else [])]


def _trace(answer: SampleAnswer) -> list[str]:
    if not answer.trace:
        return []
    from gpudebug.terminal.torchprofile import trace

    return trace(answer.trace)


def latency(found: LatencyFigures | None) -> list[str]:
    """Format the latencies that were printed: `latency p50 12.3 ms, p95 15 ms (290 of 300, first 2.4 s)`."""
    if found is None:
        return []
    known = [(name, getattr(found, f"{name}_s")) for name in ("p50", "p95", "p99")]
    known = [(name, value) for name, value in known if value is not None] or [("mean", found.mean_s)]
    text = ", ".join(f"{name} {numbers.seconds(value)}" for name, value in known)
    if found.count is None:
        return [f"latency {text} (as printed over all)"]
    printed = found.count + found.warmup
    count = f"{found.count} of {printed} printed" if found.warmup else f"{printed} printed"
    return [f"latency {text} ({count}, first {numbers.seconds(found.first_s)})"]


def devices(rows: Sequence[SampledDevice]) -> list[str]:
    lines = []
    for d in rows:
        util = d.gpu_util
        label = f"GPU {d.index}" if d.uuid != "CPU" else "CPU stand-in"
        if util is None:
            lines.append(f"{label} ({d.uuid}): gpu_util unknown: {d.reason}")
        else:
            spread = f"p5 {util.p5:.0f}, p50 {util.p50:.0f}, p95 {util.p95:.0f}"
            lines.append(f"{label} ({d.uuid}): gpu_util {util.mean:.1f}%  ({spread})")
        if d.memory is not None:
            lines.append(f"  memory {d.memory.mean_mb:.0f} MB on average, {d.memory.peak_mb:.0f} MB at most")
    return lines


def window_text(start_s: float, end_s: float, samples: int) -> str:
    return f"window {start_s:.1f} to {end_s:.1f} s, {samples} samples"
