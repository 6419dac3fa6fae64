"""The cells of a recording: figures with their units, moments, and marks of what is missing."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from gpudebug.core.lazy import regex
from gpudebug.core.recordings.names import UNITS
from gpudebug.core.samples.table import LARGEST

LACKING = frozenset(
    {"", "-", "--", "n/a", "na", "nan", "none", "null", "err!", "unknown error", "not supported", "unknown"}
    | {"not available", "insufficient permissions", "unsupported", "function not found", "???", "??", "?? %"}
)
_FIGURE = regex(
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?)\s?(%|m?W|[Mm][Hh]z|[°']?\s?C|c|[KMG]i?B|B|bytes)?"
)
_FACTORS = {
    "B": 2.0**-20,
    "bytes": 2.0**-20,
    "KiB": 2.0**-10,
    "KB": 2.0**-10,
    "MiB": 1.0,
    "MB": 1.0,
    "GiB": 1024.0,
    "GB": 1024.0,
    "mW": 1e-3,
    "share": 100.0,
}
_PLAIN_UNITS = {"KB": "KiB", "MB": "MiB", "GB": "GiB", "bytes": "B", "Mhz": "MHz", "mhz": "MHz", "c": "C"}
_MEMORY_IN_BYTES = 2.0**24
"""MiB that no device has: a number without a unit that is larger counts bytes."""
_POWER_IN_MW = 5000.0
"""W that no device draws: NVML counts mW."""
# nvmlClocksEventReasons of nvml.h, by the names of samples.csv.
_REASONS = (
    *("gpu_idle", "applications_clocks", "sw_power_cap", "hw_slowdown", "sync_boost"),
    *("sw_thermal", "hw_thermal", "hw_power_brake", "display_clock"),
)


def plain(cell: str) -> str:
    return cell.strip().strip('"').strip()


def lacks(cell: str) -> bool:
    """Tell whether a cell says that there is no figure: `[N/A]`, `-`, `[GPU requires reset]`."""
    text = plain(cell)
    return text.startswith("[") or text.strip("[]").lower() in LACKING


def number(cell: str, quantity: str = "", unit: str | None = None) -> float | None:
    """Return the figure in a cell: MiB, W, MHz, degrees Celsius or percent; None if it says there is none.

    `unit` is the one of the column's name, for a cell without. Raises ValueError if it is no figure, or has
    the unit of another quantity.
    """
    if lacks(cell):
        return None
    found = _FIGURE.fullmatch(plain(cell))
    if found is None:
        raise ValueError(cell)
    value, printed = float(found.group(1)), found.group(2)
    if not abs(value) < LARGEST:
        raise ValueError(cell)
    if printed:
        printed = _PLAIN_UNITS.get(printed, "C" if printed.endswith("C") else printed)
        if printed not in UNITS.get(quantity, (printed,)):
            raise ValueError(cell)
        unit = printed
    if unit is None:
        unit = _by_size(value, quantity)
    if unit == "share" and quantity not in ("gpu_util", "mem_util"):
        return value
    return value * _FACTORS.get(unit or "", 1.0)


def _by_size(value: float, quantity: str) -> str | None:
    if quantity.startswith("mem_") and quantity.endswith("_mb") and value >= _MEMORY_IN_BYTES:
        return "B"
    return "mW" if quantity == "power_w" and value >= _POWER_IN_MW else None


def pair(cell: str) -> tuple[str, str] | None:
    """Split `0.3/192.0 GB` and `46W / 400W`, the first with the unit of the second; None if it is no pair."""
    first, slash, second = plain(cell).rpartition("/")
    unit, first = _FIGURE.fullmatch(second.strip()), first.strip()
    if not slash or unit is None or not (_FIGURE.fullmatch(first) or lacks(first)):
        return None
    shared = unit.group(2)
    return (f"{first} {shared}" if shared and re.fullmatch(r"[\d.]+", first) else first), second.strip()


def throttle(cell: str) -> str | None:
    """`sw_power_cap+hw_thermal` of a mask as nvidia-smi prints it; a text that is no mask stays."""
    text = plain(cell)
    if lacks(cell):
        return None
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text):
        return text.replace(",", "+") or None
    mask = int(text, 16)
    names = [name for bit, name in enumerate(_REASONS) if mask >> bit & 1]
    names += ["other"] if mask >> len(_REASONS) else []
    return "+".join(names) or "none"


# A number of at least this is a time of day since 1970; the unit follows from its size.
EPOCH_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (1e8, 1.0))
_MONTHS = {
    m: n
    for n, m in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}
# A spreadsheet leaves the seconds out, or of a time with a fraction the hour.
_CLOCK = r"(?P<h>\d{1,2}):(?P<m>\d\d)(?::(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?)?(?: ?(?P<ap>[AP]\.? ?M\.?))?"
_ZONE = r"(?: ?(?P<z>Z|UTC|GMT|[+-]\d\d:?\d\d|[A-Z]{2,5}))?"
_FORMS = tuple(
    regex(form, re.ASCII | re.IGNORECASE)
    for form in (
        rf"(?P<y>\d{{4}})[-/.](?P<mo>\d\d?)[-/.](?P<d>\d\d?)[T _-]+{_CLOCK}{_ZONE}",
        rf"(?P<y>\d{{4}})(?P<mo>\d\d)(?P<d>\d\d)[T _-]{_CLOCK}{_ZONE}",
        r"(?P<y>\d{4})(?P<mo>\d\d)(?P<d>\d\d)[T _-](?P<h>\d\d)(?P<m>\d\d)(?P<s>\d\d)",
        rf"(?P<mo>\d\d?)[-/](?P<d>\d\d?)[-/](?P<y>\d{{4}})[, ]+{_CLOCK}{_ZONE}",
        rf"(?P<d>\d\d?)\.(?P<mo>\d\d?)\.(?P<y>\d{{4}})[, ]+{_CLOCK}{_ZONE}",
        rf"(?:\w{{3,9}},? )?(?P<mn>[a-z]{{3}})[a-z]* +(?P<d>\d\d?),? {_CLOCK}{_ZONE} (?P<y>\d{{4}})",
        rf"(?:\w{{3,9}},? )?(?P<d>\d\d?) (?P<mn>[a-z]{{3}})[a-z]* (?P<y>\d{{4}}),? {_CLOCK}{_ZONE}",
        rf"(?=\d\d?:\d\d:){_CLOCK}",
        r"(?P<m>\d\d):(?P<s>\d\d)[.,](?P<f>\d{1,3})",
    )
)
_MONTH_FIRST = 3
_DAY_MONTH = regex(r"(?<![\d./-])(\d\d?)[-/](\d\d?)[-/]\d{4}(?!\d)")
DAY, HOUR = 86_400.0, 3600.0
_LONGEST_MOMENT = 60
_DATE_INSIDE = regex(
    r"\d{4}[-/]\d\d[-/]\d\d[T _-]\d\d:\d\d:\d\d(?:\.\d+)?(?: [AP]M\b)?|"
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d (?:[AP]M )?(?:[A-Z]{3,4} )?\d{4}"
)
# Of a date in words of another language the time of day is read.
_YEAR, _CLOCK_INSIDE = regex(r"(?<!\d)20\d\d(?!\d)"), regex(r"(?<![\d:])\d\d:\d\d:\d\d(?![\d:])(?: [AP]M\b)?")
_TABULAR = regex(r"[;|%\t]")
_MOST_WORDS = 12


def dated(line: str) -> str | None:
    """Return the date in a line that says hardly more, as `watch` and `gpustat` head what they print."""
    if len(line) > 200 or len(line.split()) > _MOST_WORDS:
        return None
    date = date_in(line)
    if date is None and _YEAR.search(line) and not _TABULAR.search(line):
        found = _CLOCK_INSIDE.search(line)
        date = found.group() if found else None
    return date


def date_in(line: str) -> str | None:
    """Return the first date with a time of day in a line, whatever else it says."""
    found = _DATE_INSIDE.search(line)
    return found.group() if found else None


def days_first(text: str) -> bool:
    """Tell whether dates such as `31/03/2026` are in a text."""
    return any(int(day) > 12 >= int(month) for day, month in _DAY_MONTH.findall(text))


def moment(cell: str, *, day_first: bool = False) -> tuple[float, bool] | None:
    """Return seconds of a date since 1970, of a time of day since midnight, and whether it is a date.

    Without an offset a date counts as UTC: only differences are used. Of `03-09-2026` the month comes first,
    unless it is larger than 12 or `day_first`. None if the cell holds neither.
    """
    if len(cell) > _LONGEST_MOMENT:
        return None
    text = " ".join(plain(cell).split())
    if ":" not in text and not re.fullmatch(r"\d{8}[T _-]\d{6}", text):
        return None
    for form in _FORMS:
        found = form.fullmatch(text)
        if found:
            try:
                return _seconds(found.groupdict(), swapped=day_first and form is _FORMS[_MONTH_FIRST])
            except ValueError:
                return None
    return None


def _seconds(parts: dict[str, str | None], *, swapped: bool) -> tuple[float, bool]:
    hour, minute, second = (int(parts.get(part) or 0) for part in "hms")
    if parts.get("ap"):
        hour = hour % 12 + (12 if str(parts["ap"]).upper().startswith("P") else 0)
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError(parts)
    clock = 3600.0 * hour + 60 * minute + second + float(f"0.{parts.get('f') or 0}")
    if parts.get("y") is None:
        return clock, False
    month = _MONTHS.get(str(parts["mn"]).lower(), 0) if parts.get("mn") else int(parts["mo"] or 0)
    day = int(parts["d"] or 0)
    if month > 12 >= day or (swapped and day <= 12):
        month, day = day, month
    date = datetime(int(parts["y"] or 0), month, day, tzinfo=timezone.utc)
    zone = re.fullmatch(r"([+-])(\d\d):?(\d\d)", parts.get("z") or "")
    offset = 0
    if zone:
        offset = (3600 * int(zone[2]) + 60 * int(zone[3])) * (-1 if zone[1] == "-" else 1)
    return date.timestamp() + clock - offset, True
