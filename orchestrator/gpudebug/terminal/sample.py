"""The answer of `gpudebug sample` as text for people."""

from __future__ import annotations

from gpudebug.core.answers.analyze import SamplesAnswer
from gpudebug.core.answers.sample import FailureLines, LatencyFigures, SampleAnswer
from gpudebug.core.inside.probe.figures import side
from gpudebug.core.statistics import numbers
from gpudebug.core.trainlog.endings import remedy
from gpudebug.core.words import counted
from gpudebug.terminal.devices import devices, energy
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
    lines += devices(answer.devices, answer.across)
    rate = answer.throughput.steps_per_s
    # The probe's own rate is among its figures.
    if rate is not None and rate != (answer.probe or {}).get("steps_per_s"):
        lines.append(f"throughput {numbers.number(rate, 'steps/s')}")
    lines += energy(answer.joules_per_step)
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


def window_text(start_s: float, end_s: float, samples: int) -> str:
    return f"window {start_s:.1f} to {end_s:.1f} s, {counted(samples, 'sample')}"
