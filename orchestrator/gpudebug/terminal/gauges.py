"""Charts, bars and boxes of characters, in lines of an exact width; in ASCII if the terminal needs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from gpudebug.core.progress.sanitise import visible
from gpudebug.core.statistics import numbers

if TYPE_CHECKING:
    from rich.text import Text

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
