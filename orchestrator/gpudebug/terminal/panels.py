"""Each device of a running trial: boxes side by side, or a line each if there is little room.

Charts, bars and boxes of characters are lines of an exact width; in ASCII if the terminal needs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from gpudebug.core.progress.sanitise import visible
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import name
from gpudebug.core.words import device_kind

if TYPE_CHECKING:
    from rich.text import Text

    from gpudebug.engine.status.watch import WatchedDevice


_ASCII = str.maketrans({"…": "...", "·": "-", "—": "-", "–": "-", "°": None, "’": "'", "“": '"', "”": '"'})


@dataclass(frozen=True)
class Pen:
    """Draws with block and box characters, or in ASCII."""

    unicode: bool = True

    def text(self, text: str, style: str = "") -> Text:
        """Return one line of literal text: no control characters, no markup."""
        from rich.text import Text

        shown = visible(text).replace("\n", " ")
        if not self.unicode:
            shown = shown.translate(_ASCII).encode("ascii", "replace").decode()
        return Text(shown, style, no_wrap=True, end="")

    def fit(self, line: Text, width: int, *, pad: bool = False) -> Text:
        """Cut a line to `width` columns; with `pad`, fill it up."""
        if width <= 0:
            return self.text("")
        line = line.copy()
        line.truncate(width, overflow="ellipsis" if self.unicode else "crop", pad=pad)
        return line

    def join(self, parts: Iterable[Text], gap: str = "") -> Text:
        from rich.text import Text

        return Text(gap, end="").join(parts)

    def flow(self, fields: Sequence[Text], width: int, gap: str = "") -> list[Text]:
        """Put the fields one after another into lines; a field that fits a line is not broken."""
        gap = gap or ("   " if width >= 60 else "  ")
        lines: list[list[Text]] = []
        for field in fields:
            used = sum(f.cell_len + len(gap) for f in lines[-1]) if lines else 0
            if lines and used + field.cell_len <= width:
                lines[-1].append(field)
            else:
                lines.append([field])
        return [self.fit(self.join(line, gap), width) for line in lines]

    def bar(self, share: float, width: int, style: str = "") -> Text:
        """Draw a share, 0 to 1, of a whole."""
        full = round(min(1.0, max(0.0, share)) * width)
        done, rest = ("━", "─") if self.unicode else ("#", "-")
        return self.join([self.text(done * full, style), self.text(rest * (width - full), "dim")])

    def chart(
        self, values: Sequence[float | None], width: int, rows: int = 1, style: str = "", top: float = 100.0
    ) -> list[Text]:
        """Draw a column a value, the newest at the right; means if there are more values than columns.

        `rows` lines high for 0 to `top`; an unknown value leaves its column empty.
        """
        blocks = f" {numbers.BLOCKS if self.unicode else numbers.INK}"
        levels = [_eighths(value, rows, top) for value in means(values, width)]
        lines = []
        for row in reversed(range(rows)):
            column = (blocks[min(8, max(0, level - 8 * row))] for level in levels)
            lines.append(self.fit(self.text("".join(column).rjust(width), style), width, pad=True))
        return lines

    def box(self, lines: Iterable[Text], width: int, title: Text, foot: str = "") -> list[Text]:
        """Draw the lines in a box `width` wide, `title` in its upper edge and `foot` in the lower."""
        edge, side, corners = ("─", "│", "╭╮╰╯") if self.unicode else ("-", "|", "++++")
        head = self.fit(self.join([self.text(f"{edge} "), title, self.text(" ")]), width - 2)
        under = self.fit(self.text(f"{edge} {foot} " if foot else ""), width - 2)
        return [
            self._edge(corners[:2], head, edge, width),
            *(
                self.join([self.text(f"{side} "), self.fit(ln, width - 4, pad=True), self.text(f" {side}")])
                for ln in lines
            ),
            self._edge(corners[2:], under, edge, width),
        ]

    def _edge(self, corners: str, text: Text, edge: str, width: int) -> Text:
        rest = edge * max(0, width - 2 - text.cell_len)
        return self.join([self.text(corners[0]), text, self.text(rest + corners[1])])

    def rule(self, title: str, width: int) -> Text:
        """Draw a line across with its title at the left."""
        edge = "─" if self.unicode else "-"
        head = self.text(f"{edge}{edge} {title} ")
        return self.fit(self.join([head, self.text(edge * max(0, width - head.cell_len))]), width)


def means(values: Sequence[float | None], count: int) -> list[float | None]:
    """Average groups of equally many neighbours to at most `count` means; None for an unknown group."""
    size = ceil(len(values) / count) if count > 0 else 0
    if size <= 1:
        return list(values)
    # Grouped from the newest, so that only the oldest group may be incomplete.
    groups = [values[max(0, end - size) : end] for end in range(len(values), 0, -size)]
    return [mean(group) for group in reversed(groups)]


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values; None if all are unknown."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _eighths(value: float | None, rows: int, top: float) -> int:
    """Return a column's height in eighths; a known value, even 0, is visible."""
    if value is None or top <= 0:
        return 0
    return max(1, round(min(1.0, max(0.0, value / top)) * rows * 8))


_NARROWEST = 36
_WIDEST = 100
"""A box's width in columns if there are several."""
_HIGHEST_CHART = 6


def devices(pen: Pen, devices: Sequence[WatchedDevice], width: int, room: int) -> list[Text]:
    """Draw boxes side by side if they leave half the room for the rest, else a line each."""
    if room < 1:
        return []
    if not devices:
        return [pen.fit(pen.text("no device has been read yet", "dim"), width)]
    most = max(1, room - max(4, room // 2))
    columns = max(1, min(len(devices), width // _NARROWEST))
    each = width // columns if columns == 1 else min(_WIDEST, width // columns)
    stacked = math.ceil(len(devices) / columns)
    high = most // stacked - _box_height(devices)
    if width < 24 or high < 1:
        return _compact(pen, devices, width, max(room - 3, min(room, 3)))
    boxes = [_box(pen, device, each, min(high, _HIGHEST_CHART), devices) for device in devices]
    lines = []
    for first in range(0, len(boxes), columns):
        lines += [pen.join(row) for row in zip(*boxes[first : first + columns], strict=True)]
    return lines


def _box_height(devices: Sequence[WatchedDevice]) -> int:
    """Return a box's height without its chart."""
    return 5 + any(d.now.throttle for d in devices)


def _box(
    pen: Pen, device: WatchedDevice, width: int, rows: int, devices: Sequence[WatchedDevice]
) -> list[Text]:
    now, inner = device.now, width - 4
    utilisation = [pen.text(f"util {numbers.percent(now.gpu_util)}", f"bold {_of_util(now.gpu_util)}")]
    if (whole := mean(now.trace)) is not None:
        utilisation.append(pen.text(f"mean {numbers.percent(whole)}", "dim"))
    lines = [pen.join(utilisation, "   "), *pen.chart(now.trace, inner, rows, _of_util(now.gpu_util))]
    lines += [_memory(pen, device, inner), pen.join(_electric(pen, device), "  ")]
    if _box_height(devices) > 5:
        lines.append(pen.text(f"throttled: {now.throttle}" if now.throttle else "", "yellow"))
    long = len(now.trace)
    span = f"last {f'{long} s' if long < 60 else numbers.duration(long).removesuffix(' 0 s')}" if long else ""
    return pen.box(lines, width, pen.text(label(device) + _name(device), "bold"), span)


def _compact(pen: Pen, devices: Sequence[WatchedDevice], width: int, most: int) -> list[Text]:
    shown = devices if len(devices) <= most else _idlest(devices, most - 1)
    lines = []
    for device in shown:
        now = device.now
        style = _of_util(now.gpu_util)
        head = pen.text(f"{label(device):<6} {numbers.percent(now.gpu_util):>7}", style)
        facts: list[Text] = []
        throttled = [pen.text("throttled", "yellow")] if now.throttle else []
        for fact in (*throttled, pen.text(_used(device)), *_electric(pen, device)):
            if head.cell_len + sum(f.cell_len + 2 for f in (*facts, fact)) + 10 <= width:
                facts.append(fact)
        room = max(0, min(60, width - head.cell_len - sum(f.cell_len + 2 for f in facts) - 1))
        chart = pen.chart(now.trace, room, style=style)[0]
        lines.append(pen.fit(pen.join([pen.join([head, chart], " "), *facts], "  "), width))
    left = len(devices) - len(shown)
    return [*lines, pen.fit(pen.text(f"and {left} more devices", "dim"), width)] if left else lines


def _idlest(devices: Sequence[WatchedDevice], count: int) -> list[WatchedDevice]:
    """Return those that are least busy, and before them any that cannot be read, in the order given."""
    order = sorted(devices, key=lambda d: -1.0 if d.now.gpu_util is None else d.now.gpu_util)
    chosen = [id(device) for device in order[: max(0, count)]]
    return [device for device in devices if id(device) in chosen]


def label(device: WatchedDevice) -> str:
    return name(device.now)


def _name(device: WatchedDevice) -> str:
    if device_kind(device.kind).shares_cores and device.cores is not None:
        return f", {device.cores:g} core{'' if device.cores == 1 else 's'}"
    return f"  {device.name}" if device.name else ""


def _memory(pen: Pen, device: WatchedDevice, width: int) -> Text:
    now = device.now
    used = pen.text(_used(device))
    if now.mem_used_mb is None or not now.mem_total_mb:
        return used
    share = now.mem_used_mb / now.mem_total_mb
    percent = pen.text(f"{100 * share:.0f}%")
    room = width - used.cell_len - percent.cell_len - 2
    bar = pen.bar(share, max(0, room), "red" if share > 0.95 else "blue")
    return pen.join([used, bar, percent], " ")


def _used(device: WatchedDevice) -> str:
    used, total = device.now.mem_used_mb, device.now.mem_total_mb
    if used is None:
        return f"memory {numbers.UNKNOWN}"
    return f"{gib(used)}{f'/{gib(total)}' if total else ''} GiB"


def _electric(pen: Pen, device: WatchedDevice) -> list[Text]:
    """Power, temperature and clocks; a CPU reports none of them."""
    now = device.now
    if device_kind(device.kind).shares_cores:
        return [pen.text("a CPU reports no power or clocks", "dim")]
    power = numbers.UNKNOWN if now.power_w is None else f"{now.power_w:.0f}"
    limit = f"/{device.power_limit_w:.0f}" if device.power_limit_w and now.power_w is not None else ""
    fields = [pen.text(f"{power}{limit} W" if now.power_w is not None else f"power {power}")]
    if now.temperature_c is not None:
        degree = "°C" if pen.unicode else "C"
        fields.append(pen.text(f"{now.temperature_c:.0f} {degree}", "red" if now.temperature_c >= 85 else ""))
    clocks = [f"{mhz:.0f}" for mhz in (now.sm_clock_mhz, now.mem_clock_mhz) if mhz is not None]
    fields.append(pen.text(f"{'/'.join(clocks)} MHz" if clocks else f"clocks {numbers.UNKNOWN}"))
    return fields


def gib(mb: float) -> str:
    return f"{mb / 1024:.1f}"


def _of_util(value: float | None) -> str:
    return "" if value is None else "green" if value >= 80 else "yellow" if value >= 40 else "red"
