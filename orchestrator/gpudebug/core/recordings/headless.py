"""Rows of `nvidia-smi --query-gpu` without their header: what their cells tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from gpudebug.core.lazy import regex
from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.names import NamedFigure
from gpudebug.core.recordings.sources import COMPUTE_APPS, QUERY
from gpudebug.core.recordings.tables import NamedColumns, delimited

_TIME = regex(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_UUID = regex(r"(GPU|MIG)-[0-9a-fA-F-]{8,}")
_BUS = regex(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d")
_FIGURE = regex(r"-?\d+(\.\d+)?( (%|W|MiB|MHz))?")
_STATE = regex(r"P\d{1,2}|0x[0-9a-fA-F]{16}|\[?N/A\]?|\[[A-Z][\w ]+\]|(Not )?Active|(En|Dis)abled|Default")
_NAME = regex(r"(NVIDIA|Tesla|GeForce|Quadro|GRID|A\d+|H\d+|L\d+)\b[\w .()/-]*")
_PROGRAM = regex(r"[\w./\[\\:-]+$|/")
_WHOLE = regex(r"\d{1,3}")
_SHAPES = ((of.TIME, _TIME), (of.UUID, _UUID), (of.BUS, _BUS))
_UNITS = ("%", "W", "MiB")
_QUANTITY = {"%": "gpu_util", "W": "power_w", "MiB": "mem_used_mb"}
ADD = "put the list of --query-gpu on its first line, or record without noheader"


def looks_headerless(lines: Sequence[str]) -> bool:
    """Tell whether the first lines are rows of such a CSV: nvidia-smi prints such cells, with a date or a
    unit among them."""
    rows = [delimited(",", line) for line in lines[:3] if line.strip()]
    if not rows or len({len(row) for row in rows}) > 1:
        return False
    if len(rows[0]) == 1:
        return len(rows) > 1 and all(re.fullmatch(r"\d{1,3} %|\d+\.\d\d W|\d+ MiB", row[0]) for row in rows)
    if all(map(_of_process, rows)):
        return True
    known = all(_is_known(cell) for row in rows for cell in row)
    return known and any(_TIME.fullmatch(c) or (_FIGURE.fullmatch(c) and " " in c) for c in rows[0])


def columns_of(lines: Sequence[str]) -> tuple[NamedColumns | None, str]:
    """Return the columns that are certain and a note that names them; None and why if no figure is one of
    them, or no line is a row.

    The first column in % is utilization.gpu, as in nvidia-smi's own list, the only one in W power.draw, the
    only one in MiB memory.used. What counts 0, 1, … over and over is the index.
    """
    every = [delimited(",", line) for line in lines]
    if every and _of_process(every[0]):
        return NamedColumns(
            COMPUTE_APPS, len(every[0]), (), partial(delimited, ",")
        ), "its rows are of processes"
    rows = [row for row in every if all(map(_is_known, row))]
    if not rows:
        return None, "has no header and no whole row"
    width = len(rows[0])
    rows = [row for row in rows if len(row) == width]
    at: dict[str, int] = {}
    of_unit: dict[str, list[int]] = {unit: [] for unit in _UNITS}
    for number in range(width):
        cells = [row[number] for row in rows]
        for quantity, pattern in _SHAPES:
            if all(pattern.fullmatch(c) for c in cells):
                at.setdefault(quantity, number)
        for unit, found in of_unit.items():
            if any(c.endswith(f" {unit}") for c in cells):
                found.append(number)
        if _counts(cells):
            at.setdefault(of.INDEX, number)
    for unit, places in of_unit.items():
        if len(places) == 1 or (places and unit == "%"):
            at[_QUANTITY[unit]] = places[0]
    if not at.keys() & {*_QUANTITY.values()}:
        return None, "has no header and no units: which column is utilization.gpu?"
    names = ", ".join(f"{quantity} from column {number + 1}" for quantity, number in sorted(at.items()))
    first = " (the first of several in %, as nvidia-smi lists them)" if len(of_unit["%"]) > 1 else ""
    note = f"no header: by their cells {names}{first}; other columns are not read"
    figures = tuple(
        (place, NamedFigure(quantity, sure=True)) for quantity, place in sorted(at.items(), key=_place)
    )
    return NamedColumns(QUERY, width, figures, partial(delimited, ",")), note


def _of_process(row: Sequence[str]) -> bool:
    """Whether a row is one of --query-compute-apps: a process, its program, its memory and no more."""
    kinds = Counter(
        "memory" if cell.endswith(" MiB") else "pid" if cell.isdigit() else "known" if _is_known(cell) else ""
        for cell in row
    )
    if (kinds["memory"], kinds["pid"], kinds[""]) != (1, 1, 1):
        return False
    program = next(cell for cell in row if not _is_known(cell))
    return _PROGRAM.match(program) is not None and not any(c.endswith((" %", " W", " MHz")) for c in row)


def _place(item: tuple[str, int]) -> int:
    return item[1]


def _is_known(cell: str) -> bool:
    return any(p.fullmatch(cell) for p in (_TIME, _UUID, _BUS, _FIGURE, _STATE, _NAME)) or not cell


def _counts(cells: Sequence[str]) -> bool:
    """Whether a column reads 0, 1, …, k, 0, 1, …, k and so on, for two GPUs or more and two ticks or more."""
    if not all(_WHOLE.fullmatch(c) for c in cells):
        return False
    values = [int(c) for c in cells]
    count = max(values, default=0) + 1
    return count >= 2 and len(values) >= 2 * count and all(v == i % count for i, v in enumerate(values))
