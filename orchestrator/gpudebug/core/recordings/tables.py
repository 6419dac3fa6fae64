"""Rows of named columns: CSV of any delimiter, columns set by spaces, and a header wherever it stands."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from gpudebug.core.lazy import regex
from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.cells import moment, plain
from gpudebug.core.recordings.names import FIGURES, GRACT, IDENTITIES, NamedFigure, named
from gpudebug.core.recordings.sources import COMPUTE_APPS, DCGMI, DMON, JTOP, OTHERS, PMON, QUERY, source_of

METRICS = frozenset({"loss", "step", "epoch", "iteration", "accuracy"})
"""NamedColumns of a training program's own table, which may list utilisation among its metrics."""
_DELIMITERS = (",", ";", "\t")
_MOST_CELLS = 2000
_NO_NAME = regex(r"[-+]?[\d.]+ ?(%|°?[A-Za-z]{1,3})?|.*[{}=].*|.*[\s:]-?\d+(\.\d+)?( ?(%|[A-Za-z]{1,3}))?")
_UNNAMED = regex(r"Unnamed: \d+")
_OF_HOST = regex(r"(?<![a-z])cpu", re.IGNORECASE)
_BOTH_HAVE = ("mem_used_mb", "mem_total_mb", "mem_util", "power_w", "temperature_c")
"""Beside a column of the CPU these are the host's, unless they name a GPU."""
_CUDA = regex(r"(?:cuda|gpu)[: ]?\d{1,3}", re.IGNORECASE)
_ABOVE_100 = regex(r"[1-9]\d{3,}(?:\.\d+)?|[2-9]\d\d(?:\.\d+)?|1(?!00)\d\d(?:\.\d+)?")
_COMMA = regex(r"^(-?\d+),(\d+)(?=\D*$)")
_VALUE_UNIT = regex(r"(?<=\d) +(?=(?:%|m?W|MHz|[KMG]i?B|°?C|J|V|mV|RPM)(?:\s|$))")
_ENTITY = regex(r"\s*(GPU|GPU-I|GPU-CI|GPU_I|GPU_CI|Switch|CPU|CPU Core|Link|NvSwitch)\s+(\d{1,4})(?=\s|$)")
_OF_JTOP = NamedFigure("gpu_util", "%", sure=True)
Split = Callable[[str], list[str]]


@dataclass(frozen=True)
class NamedColumns:
    """What the cells of a row are of, by place; `split` takes a row apart. `boxed` is of panes in a box."""

    source: str
    width: int
    figures: tuple[tuple[int, NamedFigure], ...]
    split: Split
    names: tuple[str, ...] = ()
    boxed: bool = False

    @cached_property
    def quantities(self) -> frozenset[str]:
        return frozenset(one.quantity for _, one in self.figures)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The first place of each quantity."""
        found: dict[str, int] = {}
        for at, one in self.figures:
            found.setdefault(one.quantity, at)
        return found

    @property
    def identity(self) -> bool:
        """Whether something tells the GPUs of one tick apart."""
        return bool(self.quantities & {*IDENTITIES}) or any(one.device for _, one in self.figures)

    @property
    def timed(self) -> bool:
        return of.TIME in self.quantities

    @property
    def only_power(self) -> bool:
        """Whether it is a power of whatever, and nothing else."""
        figures = [one for _, one in self.figures if one.quantity != of.TIME]
        return (
            self.width == 2 and len(figures) == 1 and not figures[0].sure and figures[0].quantity == "power_w"
        )

    @property
    def layout(self) -> tuple[str, int, tuple[tuple[int, NamedFigure], ...]]:
        """What two headers of the same columns share."""
        return self.source, self.width, self.figures


def delimited(delimiter: str, line: str) -> list[str]:
    """Return the cells of a line of CSV, quoted or not."""
    text = line.strip("\r\n").removesuffix(delimiter + " ") if delimiter != "\t" else line.strip("\r\n")
    cells = text.split(delimiter)
    if '"' in text:
        try:
            cells = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
        except (csv.Error, StopIteration):
            return [text]
        cells = [plain(cell) for cell in cells]
    return [_COMMA.sub(r"\1.\2", cell.strip()) if delimiter == ";" else cell.strip() for cell in cells]


def words(width: int, line: str) -> list[str]:
    """Return those of a row; a number keeps its unit if there are too many."""
    text = _ENTITY.sub(lambda m: f"{m.group(1).replace(' ', '')}:{m.group(2)}", line, count=1)
    found = text.split()
    return found if len(found) == width else _VALUE_UNIT.sub("", text).split()


def spaced(line: str) -> list[str]:
    """Return what two spaces or more stand between; a list with commas is one cell."""
    text = re.sub(r",\s+", ", ", line.strip())
    text = re.sub(r"(?<=[%A-Za-z\d])\s*/\s+(?=\d)|(?<=\d)\s*/\s*(?=\d)", "/", text)
    return re.split(r" {2,}|\t+", text)


def header_of(line: str, *, after: Sequence[str] = ()) -> NamedColumns | None:
    """Return the columns that a line names; None if it is no header of a GPU recording.

    `after` are lines that follow: of columns set by spaces they show which split fits.
    """
    text = line.strip()
    hashed = text.startswith("#")
    text = text.lstrip("#").strip() if hashed else text
    for delimiter in _DELIMITERS:
        if delimiter in text:
            cells = delimited(delimiter, text)
            return _columns(cells, partial(_bare_row, delimiter, len(cells)), hashed, after)
    by_words = text.split()
    if not by_words:
        return None
    if len(by_words) == 1:
        return _columns(by_words, _alone, hashed) if not hashed else None
    if re.fullmatch(r"[\w.]+ \[[^\[\]]+\]", text):
        return _columns([text], _alone, hashed)
    if hashed and by_words[0].lower() in ("entity", "gpu", "date", "time", "hostname", "timestamp"):
        return _columns(by_words, partial(words, len(by_words)), True)
    first = named(by_words[0])
    if hashed or first is None or first.quantity not in (of.INDEX, of.TIME, of.DATE):
        return None
    bracketed = re.split(r"(?<=[)\]])\s+|\s{2,}", text)
    cuts: tuple[tuple[list[str], Split], ...] = (
        (by_words, partial(words, len(by_words))),
        (spaced(text), spaced),
        (bracketed, partial(words, len(bracketed))),
    )
    tried = (_columns(cut, split, True, after) for cut, split in cuts)
    return next(
        (one for one in tried if one and any(len(one.split(row)) == one.width for row in after)), None
    )


def _alone(line: str) -> list[str]:
    return [line.strip()]


def _bare_row(delimiter: str, width: int, line: str) -> list[str]:
    """Return the cells of a row; a comma at its end may stand before an empty cell."""
    found = delimited(delimiter, line.strip().lstrip("#").strip() if line.lstrip().startswith("#") else line)
    ended = len(found) == width - 1 and line.rstrip("\r\n").endswith(delimiter + " ")
    return [*found, ""] if ended else found


def _columns(
    cells: Sequence[str], split: Split, table: bool, after: Sequence[str] = ()
) -> NamedColumns | None:
    cells = ["" if _UNNAMED.fullmatch(cell) else cell for cell in cells]
    entity = bool(cells) and cells[0].lower() == "entity"
    if len(cells) > _MOST_CELLS or any(moment(cell) for cell in cells):
        return None
    if not entity and any(_NO_NAME.fullmatch(cell) and named(cell) is None for cell in cells):
        return None
    if METRICS & {word for cell in cells for word in re.split(r"[\W_]+", cell.lower())}:
        return None
    found = [(at, one) for at, cell in enumerate(cells) if (one := named(cell, table=table))]
    source = source_of(cells)
    if source == JTOP:
        found = [(at, _OF_JTOP if cells[at] == "GPU" else one) for at, one in found]
    rows = [row for row in map(split, after) if len(row) == len(cells)]
    timed = any(one.quantity == of.TIME for _, one in found)
    if rows and not timed:
        dates = (at for at, column in enumerate(zip(*rows, strict=True)) if all(map(_is_date, column)))
        found += [(at, NamedFigure(of.TIME)) for at in dates if named(cells[at]) is None][:1]
    found = [(at, known) for at, one in found if (known := _by_cells(one, [row[at] for row in rows], timed))]
    if source in OTHERS and any(map(_OF_HOST.search, cells)):
        found = [(at, one) for at, one in found if one.sure or one.quantity not in _BOTH_HAVE]
    if not _is_monitor(found, source, len(cells)):
        return None
    if any(one.quantity == of.PROCESS for _, one in found):
        found = [(at, one) for at, one in found if one.quantity in (of.TIME, of.DATE, of.INDEX, of.UUID)]
        source = PMON if table else COMPUTE_APPS
    return NamedColumns(source, len(cells), tuple(_unambiguous(found)), split, tuple(cells))


def _is_date(cell: str) -> bool:
    return (moment(cell) or (0, False))[1]


def _by_cells(one: NamedFigure, cells: Sequence[str], timed: bool) -> NamedFigure | None:
    """Return what a column is of by its first cells: `GPU 0` in % is its utilisation, a device `cuda:0` is a
    GPU, a date with a time of day is the time. None for `mem` above 100: an amount, of whatever."""
    if not cells:
        return one
    if one.quantity == of.INDEX and one.device is not None and all(cell.endswith("%") for cell in cells):
        return NamedFigure("gpu_util", "%", one.device, sure=True)
    if one.quantity == of.INDEX and all(map(_CUDA.fullmatch, cells)):
        return replace(one, sure=True)
    if one.quantity == "mem_util" and not one.sure and any(_ABOVE_100.fullmatch(cell) for cell in cells):
        return None
    if one.quantity == of.DATE and not timed and all(map(moment, cells)):
        return replace(one, quantity=of.TIME)
    return one


def _is_monitor(found: Sequence[tuple[int, NamedFigure]], source: str, width: int) -> bool:
    """Whether names are a GPU monitor's: one that only such a one uses."""
    quantities = {one.quantity for _, one in found}
    if of.PROCESS in quantities:
        return (
            bool(quantities & {of.INDEX, of.UUID})
            or len([1 for _, one in found if one.quantity == of.PROCESS]) > 2
        )
    figures = quantities & {*FIGURES, GRACT}
    if not figures:
        told = quantities & {of.INDEX, of.UUID, of.TIME}
        return width > 1 and bool(told) and (source == QUERY or (source == DMON and of.INDEX in quantities))
    if width == 2 and quantities == {of.TIME, "power_w"}:
        return True
    sure = any(one.sure for _, one in found if one.quantity in figures or one.quantity == of.INDEX)
    return (sure or (source == DCGMI)) and (width > 1 or source == QUERY)


def _unambiguous(found: list[tuple[int, NamedFigure]]) -> list[tuple[int, NamedFigure]]:
    """Leave out a second column of one quantity and device; of memory it stands in for the first.

    One that names a GPU comes first; GRACT stands in only where there is no other.
    """
    quantities = {one.quantity for _, one in found}
    kept: list[tuple[int, NamedFigure]] = []
    seen: set[tuple[str, str | None]] = set()
    sure_first = sorted(found, key=lambda f: (not f[1].sure, f[0]))
    for at, one in sure_first:
        key = (one.quantity, one.device)
        memory = one.quantity.startswith("mem_") and one.quantity.endswith("_mb")
        if (key in seen and not memory) or (one.quantity == GRACT and "gpu_util" in quantities):
            continue
        seen.add(key)
        kept.append((at, one))
    return kept
