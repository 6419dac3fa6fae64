"""What `analyze` answers of a log, as text for people."""

from __future__ import annotations

from gpudebug.core.answers.log import LatencyFigures, LogAnswer, PrintedSections
from gpudebug.core.statistics import numbers
from gpudebug.core.trainlog.endings import remedy
from gpudebug.core.words import counted, short

_NAME, _TITLE = 40, 80


def log(answer: LogAnswer) -> str:
    """Render a log: its loss, progress, work and latencies, and why it failed."""
    loss = answer.loss
    course = (
        f"{loss.trend}: {numbers.number(loss.first)} to {numbers.number(loss.last)} "
        f"over {counted(loss.points, 'point')} ({loss.name or 'no name'}{f', {loss.of}' if loss.of else ''})"
    )
    lines = [
        f"{answer.file}: training log" + (f" of {answer.framework}" if answer.framework else ""),
        f"loss      {course if loss.points else 'none in the log'}",
        f"progress  {_progress(answer)}",
        f"data      {numbers.number(answer.data_s, 's a step')}, "
        f"update {numbers.number(answer.update_s, 's a step')}",
    ]
    if answer.work:
        lines.append(f"work      {answer.work.unit}: {answer.work.last} by {answer.work.name}")
    if answer.reward:
        reward = answer.reward
        lines.append(
            f"reward    {reward.trend}: {numbers.number(reward.first)} to {numbers.number(reward.last)} "
            f"over {counted(reward.points, 'point')} ({reward.name})"
        )
    if answer.latency:
        lines += [line.replace("latency ", "latency   ", 1) for line in latency(answer.latency)]
    lines += _printed(answer.sections) if answer.sections else []
    if answer.failure:
        lines.append(f"failure   {answer.failure.class_}")
        lines += [f"  {line}" for line in answer.failure.lines[-5:]]
        helps = remedy(answer.failure.class_, answer.failure.lines)
        lines += [f"  try {helps}"] if helps else []
    lines += [f"note: {note}" for note in answer.notes]
    return "\n".join(lines)


def _progress(answer: LogAnswer) -> str:
    """How far it came and how fast, both in what the log counts."""
    found = answer.progress
    if found is None:
        return f"{numbers.UNKNOWN}, {numbers.number(answer.steps_per_s, 'steps/s')}"
    of = f" of {found.total}" if found.total is not None else ""
    text = f"{found.done}{of} {found.unit}, {numbers.number(found.per_s, f'{found.unit}/s')}"
    if found.epoch_s is not None:
        text += f"; an epoch takes {numbers.seconds(found.epoch_s)} as printed"
    if found.between_s is not None:
        text += f", {numbers.seconds(found.between_s)} pass between two"
    return text


def _printed(table: PrintedSections) -> list[str]:
    labels = ["  " * (one.depth + 1) + short(one.name, _NAME) for one in table.sections]
    width = max(map(len, labels)) + 2
    lines = [f"sections  the last that it printed: {short(table.title, _TITLE)}"]
    for label, one in zip(labels, table.sections, strict=True):
        share = "" if one.share is None else f"  {100 * one.share:.0f}%"
        lines.append(f"{label:<{width}}{numbers.seconds(one.time_s):>8}{share}")
    return lines


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
