"""Fit texts to the columns, the characters and the colours of the screen that shows them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.statistics import numbers
from gpudebug.core.words import counted

# On fewer columns, the terminal breaks the lines.
LEAST_COLUMNS = 32
# Combining marks take no column; this many characters a column are read.
_LETTERS_A_COLUMN = 4
_SPARK = "gpu_util "
# With fewer columns beside its label, a text begins below it.
_LEAST = 24
_SHORTEST, _LONGEST = 10, 40


class Screen(NamedTuple):
    """Where a text is shown: how many columns it has, whether it is a terminal, its encoding.

    `ascii`: gpudebug draws nothing beyond ASCII; what people wrote is shown as far as the encoding has it.
    """

    columns: int
    terminal: bool = False
    encoding: str = "utf-8"
    ascii: bool = False

    @property
    def ellipsis(self) -> str:
        return "..." if self.ascii else "…"

    def line(self, text: str) -> str:
        """Return a text as one line in which every character is visible."""
        text = " ".join(text.split())
        if not text.isprintable():
            text = "".join(filter(str.isprintable, text))
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def cut(self, text: str, columns: int) -> str:
        """Cut a text to one line of at most `columns`, with an ellipsis if anything is left out.

        A number never loses digits: a word with digits is left out whole.
        """
        text = self.line(text)
        if len(text) <= columns * _LETTERS_A_COLUMN and width(text) <= columns:
            return text
        room = max(0, columns - len(self.ellipsis))
        used = end = 0
        for character in text[: room * _LETTERS_A_COLUMN]:
            used += width(character)
            if used > room:
                break
            end += 1
        kept = text[:end]
        before, _, word = kept.rpartition(" ")
        if text[end] != " " and any(map(str.isdigit, word)):
            kept = before or kept.rstrip("0123456789.")
        return kept.rstrip() + self.ellipsis

    def wrapped(self, text: str, columns: int, most: int | None = None) -> list[str]:
        """Break a text between words into lines of at most `columns`.

        With `most`, that many lines are kept, and a word longer than a line is cut.
        """
        lines = [""]
        words = self.line(text).split(" ")
        for word in words if most is None else (self.cut(word, columns) for word in words):
            joined = f"{lines[-1]} {word}".lstrip()
            if width(joined) <= columns or not lines[-1]:
                lines[-1] = joined
            else:
                lines.append(word)
        if most is None or len(lines) <= most:
            return lines
        last = lines[most - 1]
        while " " in last and width(last) + 1 + len(self.ellipsis) > columns:
            last = last.rpartition(" ")[0]
        return [*lines[: most - 1], self.cut(f"{last} {self.ellipsis}", columns)]

    def labelled(self, label: str, text: str, most: int | None = None) -> list[str]:
        """Wrap a text behind its label; further lines are indented by the label's width."""
        first, *rest = self.wrapped(text, self.columns - len(label), most)
        return [f"{label}{first}".rstrip(), *(" " * len(label) + line for line in rest)]

    def spark(self, values: Sequence[float], columns: int) -> str:
        """Draw percentages as at most `columns` characters."""
        return numbers.sparkline(
            numbers.shrunk(values, columns), letters=numbers.INK if self.ascii else numbers.BLOCKS
        )

    def sparks(self, runs: Sequence[Sequence[float]], columns: int) -> list[str]:
        """Draw the newest runs' utilisation in one line and count the rest; no line without a run."""
        if not runs:
            return []
        room = columns - len(_SPARK)
        count, more = _fitting(room, len(runs)), ""
        if count < len(runs):
            room -= len(f" + {len(runs)} runs")
            count = _fitting(room, len(runs))
            more = f" + {counted(len(runs) - count, 'run')}"
        each = max(1, min(_LONGEST, (room - count + 1) // count))
        return [f"{_SPARK}{' '.join(self.spark(values, each) for values in runs[-count:])}{more}"]


def _fitting(room: int, count: int) -> int:
    """Return how many of `count` runs fit side by side, a space between two."""
    return max(1, min(count, (room + 1) // (_SHORTEST + 1)))


def screen() -> Screen:
    """Describe standard output; 80 columns if its width is unknown."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    columns = max(LEAST_COLUMNS, shutil.get_terminal_size().columns)
    return Screen(columns, sys.stdout.isatty(), encoding, not draws(encoding))


def draws(encoding: str) -> bool:
    """Whether blocks, lines and an ellipsis show: not in the C locale, though Python writes UTF-8 there."""
    named = next((v for name in ("LC_ALL", "LC_CTYPE", "LANG") if (v := os.environ.get(name))), "")
    if named in ("C", "POSIX"):
        return False
    try:
        f"{numbers.BLOCKS}─…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def width(text: str) -> int:
    """Count a text's columns on a terminal: two for a wide character, none for a combining mark."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        2 if east_asian_width(c) in "WF" else 0 if category(c) in ("Mn", "Me", "Cf") else 1 for c in text
    )


def wrap(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Wrap a text behind `first` to lines of at most `columns`, broken only between words.

    Later lines begin with `rest`; by default as many blanks as `first` has letters, at most 24.
    """
    import textwrap

    return textwrap.wrap(
        text,
        columns,
        initial_indent=first,
        subsequent_indent=" " * min(len(first), 24) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def labelled(label: str, text: str) -> list[str]:
    """Put a text behind its label, or below a long one; on a terminal, wrap it."""
    here = screen()
    if not here.terminal or width(label + text) <= here.columns:
        return [f"{label}{text}"]
    if here.columns - len(label) >= _LEAST:
        return here.labelled(label, text)
    return [*([label.rstrip()] if label.strip() else []), *here.labelled("    ", text)]


_COLOURS = {
    "VALIDATED": "32",
    "REJECTED": "31",
    "INCONCLUSIVE": "33",
    "INVALID": "35",
    "TESTING": "36",
    "pass": "32",
    "fail": "31",
    "unknown": "33",
}


def coloured(word: str, width: int = 0) -> str:
    """Colour a status or gate result on a terminal; leave it plain in a pipe or under NO_COLOR."""
    text = word.ljust(width)
    code = _COLOURS.get(word)
    return text if code is None or not in_colour() else f"\033[{code}m{text}\033[0m"


def in_colour() -> bool:
    """Tell whether standard output is a terminal with colours, and NO_COLOR is not set."""
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()
