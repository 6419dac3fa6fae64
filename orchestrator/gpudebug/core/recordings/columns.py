"""What other monitors call our columns, and what stands in their cells."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.samples.row import COLUMNS
from gpudebug.core.samples.table import METRICS, column_of, since_1970

NVIDIA_SMI = "nvidia-smi --query-gpu"
DMON = "nvidia-smi dmon"
PMON = "nvidia-smi pmon"
DCGMI = "dcgmi dmon"
CSV = "CSV"

IDENTITIES = ("index", "uuid", "pci.bus_id", "serial")
"""MonitorColumns of a query that tell GPUs apart, the plainest first."""

_QUERY = {
    "timestamp": "elapsed",
    "index": "gpu_index",
    "gpu_index": "gpu_index",
    "uuid": "gpu_uuid",
    "gpu_uuid": "gpu_uuid",
    "pci.bus_id": "bus_id",
    "gpu_bus_id": "bus_id",
    "pci.bus": "bus",
    "serial": "serial",
    "gpu_serial": "serial",
    "name": "name",
    "gpu_name": "name",
    "utilization.gpu": "gpu_util",
    "utilization.memory": "mem_util",
    "memory.used": "mem_used_mb",
    "memory.total": "mem_total_mb",
    "power.draw": "power_w",
    "power.draw.average": "power_average_w",
    "power.draw.instant": "power_instant_w",
    "clocks.sm": "sm_clock_mhz",
    "clocks.current.sm": "sm_clock_mhz",
    "clocks.mem": "mem_clock_mhz",
    "clocks.current.memory": "mem_clock_mhz",
    "temperature.gpu": "temperature_c",
    "clocks_throttle_reasons.active": "throttle",
    "clocks_event_reasons.active": "throttle",
}
"""Of `nvidia-smi --help-query-gpu`. Not among them: what only looks alike (limits, fans, encoders)."""

_DMON = {
    "gpu": "gpu_index",
    "pwr": "power_w",
    "gtemp": "temperature_c",
    "temp": "temperature_c",
    "sm": "gpu_util",
    "mem": "mem_util",
    "fb": "mem_used_mb",
    "mclk": "mem_clock_mhz",
    "pclk": "sm_clock_mhz",
    "date": "date",
    "time": "time",
}
_DCGMI = {
    "entity": "entity",
    "gputl": "gpu_util",
    "gract": "gract",
    "mcutl": "mem_util",
    "fbusd": "mem_used_mb",
    "fbttl": "mem_total_mb",
    "power": "power_w",
    "powr": "power_w",
    "smclk": "sm_clock_mhz",
    "mmclk": "mem_clock_mhz",
    "tmptr": "temperature_c",
    "gtemp": "temperature_c",
}
"""Short names of DCGM's fields 203, 1001, 204, 252, 250, 155, 100, 101, 150."""

_UNITS = {
    "gpu_util": "%",
    "mem_util": "%",
    "power_w": "W",
    "sm_clock_mhz": "MHz",
    "mem_clock_mhz": "MHz",
    "temperature_c": "C",
}
_UNIT = re.compile(r" ?(%|W|mW|MHz|C|[KMG]i?B)$")
_MB = {"KiB": 1 / 1024, "KB": 1 / 1024, "MiB": 1.0, "MB": 1.0, "GiB": 1024.0, "GB": 1024.0}
_LACKING = frozenset({"", "-", "n/a", "na", "nan", "err!", "unknown error", "not supported", "unknown"})
# Another opening bracket ends the try: one try for each would take as long as the square of their number.
_IN_NAME = re.compile(r"\[([^\[\]]*)\]")
# nvmlClocksEventReasons of nvml.h, by the names of samples.csv.
_REASONS = (
    *("gpu_idle", "applications_clocks", "sw_power_cap", "hw_slowdown", "sync_boost"),
    *("sw_thermal", "hw_thermal", "hw_power_brake", "display_clock"),
)


@dataclass(frozen=True)
class MonitorColumns:
    """Where our columns are in rows of `width` cells; `units` of those whose name gives one."""

    source: str
    at: Mapping[str, int]
    width: int
    units: Mapping[str, str]

    @property
    def identity(self) -> bool:
        """Whether something tells the GPUs of one tick apart."""
        return bool({"gpu_index", "gpu_uuid", "bus_id", "bus", "serial", "entity"} & self.at.keys())


def query_columns(cells: Sequence[str]) -> MonitorColumns | None:
    """Return those of a CSV's header: nvidia-smi's, or another monitor's; None if it has no utilisation, or
    is the table of a training."""
    names = [_IN_NAME.sub("", c).strip().lower() for c in cells]
    at: dict[str, int] = {}
    units: dict[str, str] = {}
    smi = 0
    for number, name in enumerate(names):
        column = _QUERY.get(name)
        smi += column is not None and "." in name
        column = column or column_of(name) or (name if name in COLUMNS else None)
        if column is not None and column not in at:
            at[column] = number
            unit = _IN_NAME.search(cells[number])
            if unit:
                units[column] = unit.group(1).strip()
    if "gpu_util" not in at or len(names) < 2 or METRICS.intersection(names):
        return None
    for other in ("power_average_w", "power_instant_w"):
        if other in at:
            at.setdefault("power_w", at[other])
    return MonitorColumns(NVIDIA_SMI if smi else CSV, at, len(names), units)


def dmon_columns(names: Sequence[str]) -> MonitorColumns | None:
    """Return those of `# gpu pwr …` or `#Entity GPUTL …`, given without `#`; None if it is neither."""
    words = [n.lower() for n in names]
    if words[:1] == ["entity"]:
        return _of(DCGMI, words, _DCGMI)
    # Of pmon each row is a process.
    found = _of(PMON if "pid" in words else DMON, words, _DMON)
    return found if "gpu_index" in found.at and len(found.at.keys() - {"date", "time"}) > 1 else None


def _of(source: str, words: Sequence[str], known: Mapping[str, str]) -> MonitorColumns:
    at: dict[str, int] = {}
    for number, word in enumerate(words):
        if word in known:
            at.setdefault(known[word], number)
    return MonitorColumns(source, at, len(words), {})


def number(cell: str, column: str = "", unit: str | None = None) -> float | None:
    """Return the figure in a cell, without its unit, memory in MiB; None if it says that there is none.

    `unit` is the one of the column's name, for a cell without. Raises ValueError if it is no figure, or has
    the unit of another column.
    """
    text = cell.strip().strip('"')
    if text.strip("[]").lower() in _LACKING or text.startswith("["):
        return None
    found = _UNIT.search(text)
    if found:
        unit, text = found.group(1), text[: found.start()]
        if _UNITS.get(column, unit) != unit:
            raise ValueError(cell)
    if not text.isascii() or "_" in text:
        raise ValueError(cell)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value * _MB.get(unit or "", 1.0)


def whole(cell: str) -> int | None:
    """Return an index. Raises ValueError if it is none."""
    value = number(cell)
    if value is None:
        return None
    if value < 0 or not value.is_integer():
        raise ValueError(cell)
    return int(value)


def throttle(cell: str) -> str | None:
    """`sw_power_cap+hw_thermal` of a mask as nvidia-smi prints it; a text that is no mask stays."""
    text = cell.strip().strip('"')
    if text.strip("[]").lower() in _LACKING or text.startswith("["):
        return None
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text):
        return text.replace(",", "+") or None
    mask = int(text, 16)
    names = [name for bit, name in enumerate(_REASONS) if mask >> bit & 1]
    names += ["other"] if mask >> len(_REASONS) else []
    return "+".join(names) or "none"


def moment(cell: str) -> float | None:
    """Seconds, since 1970 if it is a date; a number as it stands. None if it is neither."""
    text = cell.strip().strip('"')
    dated = since_1970(text)
    if dated is not None:
        return dated
    try:
        return number(text)
    except ValueError:
        return None


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
_PRINTED_UNITS = ("%", "W", "MiB")
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
    of_unit: dict[str, list[int]] = {unit: [] for unit in _PRINTED_UNITS}
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
