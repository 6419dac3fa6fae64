"""Render `status --watch`: a running trial as a full screen, or as a line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpudebug.core.samples.conditions import SLOWING, reasons_in
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import MISLEADING
from gpudebug.core.words import counted
from gpudebug.terminal import panels
from gpudebug.terminal.panels import Pen, mean

if TYPE_CHECKING:
    from rich.text import Text

    from gpudebug.engine.status.watch import Sight, WatchedDevice

_ROOMY, _HIGH = 60, 18
"""Narrower terminals do not show who runs it, lower ones nothing of the host."""
_LATELY_S = 30
_STALE_S = 10.0
_QUIET_S = 60.0
_ALARM = re.compile(
    r"\b(?:error|exception|traceback|out of memory|killed|nan)\b|\w(?:Error|Exception)\b", re.I
)


def frame(sight: Sight, width: int, height: int, unicode: bool = True) -> Text:
    """Render at most `height` lines of `width` columns: the run, its progress, the devices, the log's end."""
    pen = Pen(unicode)
    brief = height < _HIGH
    head = [*_title(pen, sight, width), *_notes(pen, sight, width), *_state(pen, sight, width, brief)]
    # Even a low terminal shows the devices.
    head = head[: max(1, height - 1 - min(len(sight.devices), 3))]
    room = height - len(head) - 1
    running = not sight.over and sight.progress.run is not None
    devices = panels.devices(pen, sight.devices, width, room) if running else []
    log = _log(pen, sight, width, room - len(devices))
    body = [*head, *devices, *log]
    blank = [pen.text("")] * max(0, height - 1 - len(body))
    foot = pen.fit(pen.text("q quits" if sight.over else "q quits; the run goes on", "dim"), width)
    return pen.join([*body, *blank, foot][:height], "\n")


def line(sight: Sight) -> str:
    """Render the same in one line; if no run is under way, what `next` would do."""
    pen = Pen()
    p = sight.progress
    if sight.over or p.run is None:
        fields = [*_idle(pen, sight), *map(pen.text, sight.problems)]
        if p.run is not None and sight.outcome:
            fields.insert(1, pen.text(f"Last run: {p.run}: {_ended(sight)}."))
        return "  ".join(part.plain for part in fields)
    parts = [p.run or "", _elapsed(sight), _steps(sight)]
    if p.loss is not None:
        parts.append(f"loss {numbers.number(p.loss)}")
    parts.append(f"util {numbers.percent(_now(sight))}{_ends([(d, d.now.gpu_util) for d in sight.devices])}")
    parts += [text for text in (_rate(sight), _wait(sight), _left(sight)) if text]
    if sight.outcome:
        parts.append(sight.outcome)
    return pen.text("  ".join(part for part in [*parts, *sight.problems] if part)).plain


def _title(pen: Pen, sight: Sight, width: int) -> list[Text]:
    name = pen.join([pen.text("gpudebug", "bold"), pen.text(sight.campaign)], "  ")
    left = pen.fit(name, width - len(sight.clock) - 1, pad=True)
    return [pen.fit(pen.join([left, pen.text(sight.clock, "dim")], " "), width)]


def _state(pen: Pen, sight: Sight, width: int, brief: bool) -> list[Text]:
    """Render the run under way and its progress, or what would be done next."""
    if sight.over or sight.progress.run is None:
        lines = [ln for text in _idle(pen, sight) for ln in _wrapped(pen, text, width)]
        return [*lines, *_last_run(pen, sight, width)]
    holder = [] if brief or width < _ROOMY else [pen.text(_holder(sight), "dim")]
    lines = pen.flow([*_what(pen, sight), *holder], width)
    if sight.next is not None:
        lines += _wrapped(pen, pen.text(_next(sight)), width)
    figures = [*_figures(pen, sight), *([] if brief else _host(pen, sight))]
    return [*lines, *_progress(pen, sight, width), *pen.flow(figures, width)]


def _idle(pen: Pen, sight: Sight) -> list[Text]:
    """Return why no run is under way, and what would be done next."""
    p, fields = sight.progress, []
    if sight.holder is not None:
        fields.append(pen.text(f"{_holder(sight)}: no run has begun yet", "bold"))
    elif sight.state == "unfinished":
        fields.append(pen.text(f"Run {p.run} is unfinished: nothing works on it any more.", "bold red"))
    elif sight.over:
        fields.append(pen.text("Nothing is under way.", "bold"))
    return [*fields, pen.text(_next(sight))] if sight.next is not None else fields


def _next(sight: Sight) -> str:
    return f"Next: {sight.next.action}: {sight.next.why}" if sight.next else ""


def _last_run(pen: Pen, sight: Sight, width: int) -> list[Text]:
    p = sight.progress
    if p.run is None:
        return []
    fields = [pen.text(f"Last run: {p.run}"), pen.text(_ended(sight), _of_outcome(sight.outcome))]
    if sight.title:
        fields.append(pen.text(f"hypothesis {p.hypothesis}: {sight.title}"))
    fields.append(pen.text(f"gpu_util {numbers.percent(p.gpu_util)} of the whole run"))
    fields += [pen.text(text) for text in (_elapsed(sight), _steps(sight)) if text]
    return [pen.text(""), *pen.flow([*fields, *_loss(pen, sight)], width)]


def _ended(sight: Sight) -> str:
    return (sight.outcome or "no outcome") + (f" ({sight.reason})" if sight.reason else "")


def _what(pen: Pen, sight: Sight) -> list[Text]:
    p = sight.progress
    role = (p.role or "").removeprefix("baseline-")
    about = f"hypothesis {p.hypothesis}" if p.hypothesis is not None else f"baseline {role}"
    fields = [pen.text(p.run or "", "bold cyan")]
    if sight.state == "between":
        ended = f"ended {sight.outcome}" if sight.outcome else "ended"
        fields.append(pen.text(f"{ended}, between runs", _of_outcome(sight.outcome) or "bold"))
    fields.append(pen.text(f"{about}: {sight.title}" if sight.title else about))
    if p.runs_done:
        fields.append(pen.text(f"{counted(p.runs_done, 'run')} done"))
    return fields


def _holder(sight: Sight) -> str:
    holder = sight.holder
    if holder is None:
        return ""
    by = f"`{holder.command}`" + (f", PID {holder.pid}" if holder.pid is not None else "")
    by += f", session {holder.session}" if holder.session else ""
    return by + (f", waits for {holder.waits}" if holder.waits else "")


def _progress(pen: Pen, sight: Sight, width: int) -> list[Text]:
    p = sight.progress
    fields = [text for text in (_steps(sight), _elapsed(sight, " elapsed"), _left(sight)) if text]
    if not p.step or not p.steps or p.step > p.steps:
        return pen.flow([pen.text(text) for text in fields], width)
    fields.insert(1, f"{math.floor(100 * p.step / p.steps)}%")
    before, after = pen.text(fields[0]), pen.text("   ".join(fields[1:]))
    room = width - before.cell_len - after.cell_len - 2
    if room < 8:
        return pen.flow([pen.text(text) for text in fields], width)
    return [pen.join([before, pen.bar(p.step / p.steps, room, "green"), after], " ")]


def _figures(pen: Pen, sight: Sight) -> list[Text]:
    p = sight.progress
    # The baseline's figure is of its steady window: only recent values, without the start-up, compare.
    lately = f"util {numbers.percent(_lately(sight))} last {_LATELY_S} s{_of(sight, 'gpu util')}"
    lately += _ends([(d, mean(d.now.trace[-_LATELY_S:])) for d in sight.devices])
    fields = [pen.text(lately), pen.text(f"{numbers.percent(p.gpu_util)} so far")]
    fields.append(pen.text((_rate(sight) or f"rate {numbers.UNKNOWN}") + _of(sight, "throughput")))
    fields += _loss(pen, sight)
    wait = sight.data_wait_share
    fields.append(
        pen.text(f"data wait {numbers.UNKNOWN}", "dim")
        if wait is None
        else pen.text(_wait(sight), "red" if wait >= 0.3 else "yellow" if wait >= 0.1 else "")
    )
    return fields


def _ends(values: Sequence[tuple[WatchedDevice, float | None]]) -> str:
    """Return the least and the most busy device, if their mean hides how far they are apart."""
    known = [(value, device) for device, value in values if value is not None]
    if len(known) < 2:
        return ""
    least, most = (pick(known, key=lambda one: one[0]) for pick in (min, max))
    if most[0] - least[0] <= MISLEADING:
        return ""
    return f" (least {least[0]:.1f}% {panels.label(least[1])}, most {most[0]:.1f}% {panels.label(most[1])})"


def _of(sight: Sight, field: str) -> str:
    """Return the baseline's figure, to go beside a trial's."""
    figure = (sight.baseline or {}).get(field, "").partition(" (")[0]
    return f" (baseline {figure})" if figure and sight.progress.hypothesis is not None else ""


def _loss(pen: Pen, sight: Sight) -> list[Text]:
    loss, trend = sight.progress.loss, sight.loss_trend
    if loss is None:
        return [pen.text(f"loss {numbers.UNKNOWN}", "dim")]
    bad = not math.isfinite(loss) or trend in ("NAN", "DIVERGING")
    text = pen.text(
        f"loss {numbers.number(loss)}" + (f" {trend}" if trend else ""), "bold red" if bad else ""
    )
    low, high = min(sight.losses, default=0.0), max(sight.losses, default=0.0)
    if len(sight.losses) < 4 or high <= low:
        return [text]
    curve = pen.chart([v - low for v in sight.losses], 16, style="cyan", top=high - low)[0]
    return [pen.join([text, curve], " ")]


def _host(pen: Pen, sight: Sight) -> list[Text]:
    host, fields = sight.host, []
    used = "" if host.cpu_util is None else f"{host.cpu_util / 100:.1f} cores"
    resident = "" if host.rss_mb is None else f"{panels.gib(host.rss_mb)} GiB"
    if used or resident:
        fields.append(f"host {', '.join(text for text in (used, resident) if text)}")
    moved = {"read": host.read_mb_s, "written": host.write_mb_s}
    if rates := [f"{value:.1f} {verb}" for verb, value in moved.items() if value is not None]:
        fields.append(f"disk {', '.join(rates)} MB/s")
    return [pen.text(text) for text in fields]


def _notes(pen: Pen, sight: Sight, width: int) -> list[Text]:
    """Render problems and warnings, which a user must not miss."""
    texts = [pen.text(text, "bold red") for text in sight.problems]
    if sight.state == "running":
        texts += [pen.text(text, "bold yellow") for text in _warnings(sight)]
    return [ln for text in texts for ln in _wrapped(pen, text, width)]


def _warnings(sight: Sight) -> Iterable[str]:
    if sight.samples_age_s is not None and sight.samples_age_s > _STALE_S:
        yield f"no reading of the device for {numbers.duration(sight.samples_age_s)}: these figures are old"
    if sight.quiet_s is not None and sight.quiet_s > max(_QUIET_S, 5 / (sight.steps_per_s or 1.0)):
        yield f"no step for {numbers.duration(sight.quiet_s)}"
    for device in sight.devices:
        if count := device.now.foreign_procs:
            yield f"{panels.label(device)}: {counted(count, 'other process', 'other processes')} on it"
        if slowing := reasons_in(device.now.throttle or "") & set(SLOWING):
            yield f"{panels.label(device)} is throttled: {', '.join(sorted(slowing))}"


def _log(pen: Pen, sight: Sight, width: int, room: int) -> list[Text]:
    if sight.progress.run is None or room < 2:
        return []
    title = "train.log"
    if sight.log_bytes is None:
        title = "no train.log"
    elif not sight.log:
        title += ": nothing printed yet"
    else:
        title += f", {_size(sight.log_bytes)}"
        if not sight.over and sight.log_age_s is not None:
            title += f", last output {numbers.duration(sight.log_age_s)} ago"
    rows = sight.log[-(room - 1) :]
    lines = [pen.fit(pen.text(row, "red" if _ALARM.search(row) else ""), width) for row in rows]
    return [pen.rule(title, width), *lines]


def _wrapped(pen: Pen, text: Text, width: int, most: int = 3) -> list[Text]:
    """Wrap a text to at most `most` lines."""
    words = [pen.text(word, str(text.style)) for word in text.plain.split(" ")]
    lines = pen.flow(words, width, " ")
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], pen.fit(pen.join(lines[most - 1 :], " "), width)]


def _steps(sight: Sight) -> str:
    p = sight.progress
    if p.step is None and p.latency_s is not None:
        return f"latency {numbers.seconds(p.latency_s)}"
    if p.step is None:
        return "no step yet" if not sight.over else ""
    return f"{sight.step_unit or 'step'} {p.step}" + (f"/{p.steps}" if p.steps else "")


def _rate(sight: Sight) -> str:
    return "" if sight.steps_per_s is None else numbers.rate(sight.steps_per_s, sight.step_unit)


def _wait(sight: Sight) -> str:
    return "" if sight.data_wait_share is None else f"data wait {100 * sight.data_wait_share:.0f}%"


def _elapsed(sight: Sight, after: str = "") -> str:
    elapsed = sight.progress.elapsed_s
    return "" if elapsed is None else f"{numbers.duration(elapsed)}{after}"


def _left(sight: Sight) -> str:
    left = sight.progress.left_s
    return "" if left is None else f"{numbers.duration(left)} left"


def _now(sight: Sight) -> float | None:
    """Return the mean of the devices at this moment."""
    return mean(d.now.gpu_util for d in sight.devices)


def _lately(sight: Sight) -> float | None:
    return mean(mean(d.now.trace[-_LATELY_S:]) for d in sight.devices)


def _size(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _of_outcome(outcome: str | None) -> str:
    return "" if outcome is None else "green" if outcome in ("COMPLETED", "ENDED_BY_PLAN") else "bold red"
