"""A `nvidia-smi --query-gpu` CSV without its header (`noheader`): what its cells say of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudebug.core.recordings.columns import NVIDIA_SMI, MonitorColumns

_TIME = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F-]{8,}")
_BUS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d")
_FIGURE = re.compile(r"-?\d+(\.\d+)?( (%|W|MiB|MHz))?")
_STATE = re.compile(
    r"P\d{1,2}|0x[0-9a-fA-F]{16}|\[?N/A\]?|\[[A-Z][\w ]+\]|(Not )?Active|(En|Dis)abled|Default"
)
_NAME = re.compile(r"(NVIDIA|Tesla|GeForce|Quadro|GRID|A\d+|H\d+|L\d+)\b[\w .()/-]*")
_WHOLE = re.compile(r"\d{1,3}")
_UNIQUE = {"%": "gpu_util", "W": "power_w", "MiB": "mem_used_mb"}
_UNITS = ("%", "W", "MiB")
ADD = "put the list of --query-gpu on its first line, or record without noheader"


def looks_headerless(lines: Sequence[str]) -> bool:
    """Tell whether the first lines are rows of such a CSV: nvidia-smi prints such cells, with a date or a
    unit among them."""
    rows = [_cells(line) for line in lines[:3] if line.strip()]
    if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    known = all(_is_known(cell) for row in rows for cell in row)
    return known and any(_TIME.fullmatch(c) or (_FIGURE.fullmatch(c) and " " in c) for c in rows[0])


def columns_of(lines: Sequence[str]) -> tuple[MonitorColumns | None, str]:
    """Return the columns that are certain and a note that names them; None and why if utilisation is none of
    them, or no line is a row.

    The only column in % is utilization.gpu, the only one in W power.draw, the only one in MiB memory.used: of
    two of a kind the cells do not tell which is which. What counts 0, 1, … over and over is the index.
    """
    rows = [row for row in map(_cells, lines) if all(map(_is_known, row))]
    if not rows:
        return None, "has no header and no whole row"
    width = len(rows[0])
    rows = [row for row in rows if len(row) == width]
    at: dict[str, int] = {}
    of_unit: dict[str, list[int]] = {unit: [] for unit in _UNITS}
    for number in range(width):
        cells = [row[number] for row in rows]
        for column, pattern in (("elapsed", _TIME), ("gpu_uuid", _UUID), ("bus_id", _BUS)):
            if all(pattern.fullmatch(c) for c in cells):
                at.setdefault(column, number)
        for unit, found in of_unit.items():
            if any(c.endswith(f" {unit}") for c in cells):
                found.append(number)
        if _counts(cells):
            at.setdefault("gpu_index", number)
    for unit, column in _UNIQUE.items():
        if len(of_unit[unit]) == 1:
            at[column] = of_unit[unit][0]
    percents = len(of_unit["%"])
    if percents != 1:
        many = f"{percents} columns in %" if percents else "no units"
        return None, f"has no header and {many}: which column is utilization.gpu?"
    names = ", ".join(f"{column} from column {number + 1}" for column, number in sorted(at.items()))
    note = f"no header: by their cells {names}; other columns are not read"
    return MonitorColumns(NVIDIA_SMI, at, width, {}), note


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _is_known(cell: str) -> bool:
    return any(p.fullmatch(cell) for p in (_TIME, _UUID, _BUS, _FIGURE, _STATE, _NAME)) or not cell


def _counts(cells: Sequence[str]) -> bool:
    """Whether a column reads 0, 1, …, k, 0, 1, …, k and so on, for two GPUs or more and two ticks or more."""
    if not all(_WHOLE.fullmatch(c) for c in cells):
        return False
    values = [int(c) for c in cells]
    count = max(values, default=0) + 1
    return count >= 2 and len(values) >= 2 * count and all(v == i % count for i, v in enumerate(values))
