"""The answer of `gpudebug analyze` as text for people, by kind of file."""

from __future__ import annotations

from gpudebug.core.answers.analyze import (
    AnalyzeAnswer,
    FilesAnswer,
    LogAnswer,
    OneFile,
    SamplesAnswer,
)
from gpudebug.core.answers.sections import PrintedSections, SectionsAnswer
from gpudebug.core.inside.sections.cost import short
from gpudebug.core.statistics import numbers
from gpudebug.core.trainlog.endings import remedy
from gpudebug.core.words import counted
from gpudebug.terminal.devices import devices, energy, failure, inside_of, latency
from gpudebug.terminal.recorded import recording
from gpudebug.terminal.sections import head, sections
from gpudebug.terminal.trace import ranks, trace

_NAME, _TITLE = 40, 80


def analyze(answer: AnalyzeAnswer, *, all_rows: bool = False) -> str:
    """Render one file, or several below each other with merged section reports last."""
    parts = [_files(answer, all_rows) if isinstance(answer, FilesAnswer) else _one(answer, all_rows)]
    parts += ["\n".join(f"wrote {name}" for name in answer.written)] if answer.written else []
    return "\n\n".join(parts)


def in_full(answer: AnalyzeAnswer) -> str:
    """Render it for a file: no table is cut, and control characters are removed."""
    text = analyze(answer, all_rows=True)
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def _files(answer: FilesAnswer, all_rows: bool) -> str:
    if answer.merged is None:
        parts = [_one(one, all_rows) for one in answer.files]
        if answer.recorded is not None:
            parts.append("\n".join(["all runs together", *recording(answer.recorded)]))
        if answer.ranks is not None:
            parts.append(ranks(answer.ranks))
        return "\n\n".join(parts)
    heads = [head(one) for one in answer.files if isinstance(one, SectionsAnswer)]
    others = [_one(one, all_rows) for one in answer.files if not isinstance(one, SectionsAnswer)]
    return "\n\n".join([*others, "\n".join(heads), _one(answer.merged, all_rows)])


def _one(answer: OneFile, all_rows: bool) -> str:
    if isinstance(answer, SectionsAnswer):
        return sections(answer, whole=all_rows)
    if isinstance(answer, SamplesAnswer):
        return _samples(answer)
    if isinstance(answer, LogAnswer):
        return _log(answer)
    return trace(answer)


def _samples(answer: SamplesAnswer) -> str:
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


def _log(answer: LogAnswer) -> str:
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


def _printed(table: PrintedSections) -> list[str]:
    labels = ["  " * (one.depth + 1) + short(one.name, _NAME) for one in table.sections]
    width = max(map(len, labels)) + 2
    lines = [f"sections  the last that it printed: {short(table.title, _TITLE)}"]
    for label, one in zip(labels, table.sections, strict=True):
        share = "" if one.share is None else f"  {100 * one.share:.0f}%"
        lines.append(f"{label:<{width}}{numbers.seconds(one.time_s):>8}{share}")
    return lines
