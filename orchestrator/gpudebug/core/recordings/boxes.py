"""Tables in boxes, as `nvidia-smi` and `npu-smi info` draw them: panes of several lines a device."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudebug.core.lazy import regex
from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.collect import Collector
from gpudebug.core.recordings.names import FIGURES, NamedFigure, named
from gpudebug.core.recordings.sources import TEXT, source_of
from gpudebug.core.recordings.tables import NamedColumns, spaced
from gpudebug.core.words import counted

_BARS = str.maketrans("│┃║", "|||")
_RULE = regex(r"[\s|+=─━═╞╡╪╤╧├┤┼┬┴┌┐└┘╒╕╘╛╔╗╚╝╠╣╟╢╬╦╩#*_-]+")
_OTHER_TABLE = regex(r"\bPID\b|\bGI\b|Process|MIG devices", re.IGNORECASE)


def is_rule(line: str) -> bool:
    """Tell whether a line only draws."""
    text = line.strip()
    return len(text) > 2 and not text[0].isalnum() and _RULE.fullmatch(text) is not None


def is_boxed(line: str) -> bool:
    return line.strip()[:1] in ("|", "│", "┃", "║")


class Boxes:
    """Takes the lines of boxes in order: a header of one line or more, then blocks of as many for each
    device."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._block: list[list[list[str]]] = []
        self._header: list[list[list[str]]] = []
        self._heading = ""
        self._title = ""
        self._lost = 0
        self._line = 0

    def take(self, line: str, number: int) -> None:
        self._line = number
        text = line.strip().translate(_BARS).strip("|")
        self._heading = self._heading if self._block else ""
        self._heading += text
        self._block.append([spaced(pane) for pane in text.split("|")])

    @property
    def notes(self) -> tuple[str, ...]:
        lost = f"a GPU is lost in {counted(self._lost, 'reading')}: its driver could not reach it any more"
        return (lost,) if self._lost else ()

    def end(self) -> None:
        """A block ends: at a line that only draws, or at one outside of the box."""
        block, self._block = self._block, []
        if not block:
            return
        if _OTHER_TABLE.search(self._heading) or "version" in self._heading.lower():
            self._header, self._title = [], self._heading
        elif self._begins(block):
            self._header = block
        elif self._header:
            height = len(self._header)
            for at in range(0, len(block), height if len(block) % height == 0 else len(block)):
                self._device(block[at : at + height])

    def _begins(self, block: Sequence[Sequence[Sequence[str]]]) -> bool:
        found = _figures(block)
        if not any(one.sure and one.quantity in FIGURES for _, one in found):
            return False
        cells = [cell for line in block for pane in line for cell in pane]
        source = source_of(cells, self._title, TEXT)
        width = len(cells)
        columns = NamedColumns(source, width, tuple(found), spaced, tuple(cells), boxed=True)
        self._collector.begin(columns, self._line)
        return True

    def _device(self, block: Sequence[Sequence[Sequence[str]]]) -> None:
        cells: list[str] = []
        for number, line in enumerate(self._header):
            panes = block[number] if number < len(block) else []
            for place, names in enumerate(line):
                pane = list(panes[place]) if place < len(panes) else []
                cells += pane if len(pane) == len(names) else [""] * len(names)
        if not self._collector.take(cells):
            self._collector.unreadable += 1
            if any("GPU is lost" in cell for line in block for pane in line for cell in pane):
                self._lost += 1


def _figures(block: Sequence[Sequence[Sequence[str]]]) -> list[tuple[int, NamedFigure]]:
    cells = [cell for line in block for pane in line for cell in pane]
    found = [(at, one) for at, cell in enumerate(cells) if (one := named(cell))]
    known: set[str] = set()
    kept = []
    for at, one in found:
        if one.quantity in known and one.quantity != "mem_used_mb":
            continue
        known.add(one.quantity)
        kept.append((at, one))
    return kept if of.INDEX in known or len(known & {*FIGURES}) > 1 else []
