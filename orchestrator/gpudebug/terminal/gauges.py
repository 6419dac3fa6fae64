"""Charts, bars and boxes of characters, as lines of an exact width; of ASCII alone where that must be."""

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
    """Draws with block and box characters where the terminal has them."""

    unicode: bool = True

    def text(self, text: str, style: str = "") -> Text:
        """One line that shows as it stands: no control characters, no markup."""
        from rich.text import Text

        shown = visible(text).replace("\n", " ")
        if not self.unicode:
            shown = shown.translate(_ASCII).encode("ascii", "replace").decode()
        return Text(shown, style, no_wrap=True, end="")

    def fit(self, line: Text, width: int, *, pad: bool = False) -> Text:
        """The line cut to `width` columns; filled up to them with `pad`."""
        if width <= 0:
            return self.text("")
        line = line.copy()
        line.truncate(width, overflow="ellipsis" if self.unicode else "crop", pad=pad)
        return line

    def join(self, parts: Iterable[Text], gap: str = "") -> Text:
        from rich.text import Text

        return Text(gap, end="").join(parts)

    def flow(self, fields: Sequence[Text], width: int, gap: str = "") -> list[Text]:
        """The fields one after the other, in as many lines as they need; none is torn that fits in a line."""
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
        """How much of a whole; `share` from 0 to 1."""
        full = round(min(1.0, max(0.0, share)) * width)
        done, rest = ("━", "─") if self.unicode else ("#", "-")
        return self.join([self.text(done * full, style), self.text(rest * (width - full), "dim")])

    def chart(
        self, values: Sequence[float | None], width: int, rows: int = 1, style: str = "", top: float = 100.0
    ) -> list[Text]:
        """One column a value, the newest at the right; of more values than columns their means.

        `rows` lines high for 0 to `top`; a value that is not known leaves its column empty.
        """
        blocks = f" {numbers.BLOCKS if self.unicode else numbers.INK}"
        levels = [_eighths(value, rows, top) for value in means(values, width)]
        lines = []
        for row in reversed(range(rows)):
            column = (blocks[min(8, max(0, level - 8 * row))] for level in levels)
            lines.append(self.fit(self.text("".join(column).rjust(width), style), width, pad=True))
        return lines

    def box(self, lines: Iterable[Text], width: int, title: Text, foot: str = "") -> list[Text]:
        """The lines in a box `width` wide, with its title in the upper edge and `foot` in the lower."""
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

    def _edge(self, corners: str, said: Text, edge: str, width: int) -> Text:
        rest = edge * max(0, width - 2 - said.cell_len)
        return self.join([self.text(corners[0]), said, self.text(rest + corners[1])])

    def rule(self, title: str, width: int) -> Text:
        """A line across with its title at the left."""
        edge = "─" if self.unicode else "-"
        said = self.text(f"{edge}{edge} {title} ")
        return self.fit(self.join([said, self.text(edge * max(0, width - said.cell_len))]), width)


def means(values: Sequence[float | None], count: int) -> list[float | None]:
    """At most `count` means of equally many neighbours each, in order; None where none of them is known."""
    size = ceil(len(values) / count) if count > 0 else 0
    if size <= 1:
        return list(values)
    # Counted from the newest, so that all means but the oldest are of whole groups.
    groups = [values[max(0, end - size) : end] for end in range(len(values), 0, -size)]
    return [mean(group) for group in reversed(groups)]


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known; None where none is."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _eighths(value: float | None, rows: int, top: float) -> int:
    """How high a column is; what is known, be it 0, is seen."""
    if value is None or top <= 0:
        return 0
    return max(1, round(min(1.0, max(0.0, value / top)) * rows * 8))
