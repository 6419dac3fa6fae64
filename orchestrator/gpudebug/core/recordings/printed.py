"""Lines that print a figure after its name: `tegrastats`, `gpustat` for people, and loggers of one's own."""

from __future__ import annotations

import re
from dataclasses import replace

from gpudebug.core.lazy import regex
from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.cells import date_in
from gpudebug.core.recordings.names import NamedFigure, named
from gpudebug.core.recordings.sources import LINES, TEGRASTATS
from gpudebug.core.recordings.tables import METRICS, NamedColumns

# Without root it prints neither GR3D_FREQ nor EMC_FREQ.
_TEGRA = regex(r"(?:(?P<time>[\d/-]+ [\d:.]+) )?(?=.*(?:\(lfb |\bGR3D)).*\bRAM \d+/\d+MB.*")
_TEGRA_CELLS = (
    regex(r"\bGR3D(?:_FREQ)? (\d+%)"),
    regex(r"\bRAM (\d+/\d+MB)"),
    regex(r"\b(?:VDD_IN|POM_5V_IN|VDD_SYS_IN) (\d+(?:mW)?)/"),
    regex(r"\b(?:GPU|gpu)@([\d.]+C)"),
)
_TEGRA_NAMES = (
    *(
        NamedFigure("gpu_util", "%", sure=True),
        NamedFigure("mem_used_mb", "MiB"),
        NamedFigure("power_w", "mW"),
    ),
    *(NamedFigure("temperature_c", "C"), NamedFigure(of.TIME)),
)
_GPUSTAT = regex(
    r"\[(\d{1,3})\] (.{1,80}?)\s*\|\s*(\S+C|N/A|\?\?),?\s*(?:\d+ %,\s+)?(\d+ ?%|\?\? %|N/A)\s*"
    r"(?:\([^()|]*\)\s*)?(?:,\s*(\S+)\s*/\s*\S+ W\s*)?\|\s*(\d+\s*/\s*\d+ [MG]i?B)\s*\|.*"
)
_GPUSTAT_NAMES = (of.INDEX, of.NAME, "temperature_c", "gpu_util", "power_w", "mem_used_mb")
_GPUTIL = regex(r"\|\s+(\d{1,2}) \|\s+(\d{1,3}%|nan%) \|\s+(?:\d{1,3}%|nan%) \|")
_LOGGED_NAMES = (of.INDEX, "gpu_util", "mem_used_mb", "power_w", "temperature_c", of.TIME)
_OF_GPU = regex(r"\bGPU[ #:_-]?(\d{1,2})\b", re.IGNORECASE)
_FIGURE = regex(
    r"([A-Za-z][A-Za-z ._-]{1,24}?)\s?[:=]\s?(\d+(?:\.\d+)?(?: ?/ ?\d+(?:\.\d+)?)? ?(%|W|[MG]i?B|°?C))"
    r"(?![\w%])"
)
_TIME_OF_DAY = regex(r"(?<![\d:])\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?![\d:])")
_MOST_LOGGED = 300


def _columns(source: str, figures: tuple[NamedFigure, ...]) -> NamedColumns:
    return NamedColumns(source, len(figures), tuple(enumerate(figures)), lambda line: [line])


TEGRA = _columns(TEGRASTATS, _TEGRA_NAMES[:4])
TEGRA_TIMED = _columns(TEGRASTATS, _TEGRA_NAMES)
LOGGED, LOGGED_TIMED = (
    _columns(LINES, tuple(NamedFigure(name, sure=True) for name in _LOGGED_NAMES[:end])) for end in (5, 6)
)
GPUTIL = replace(_columns("GPUtil", (NamedFigure(of.INDEX), NamedFigure("gpu_util", "%"))), boxed=True)
"""The header of its box is too short to be one."""
GPUSTAT = _columns("gpustat", tuple(NamedFigure(name, sure=True) for name in _GPUSTAT_NAMES))


def printed(line: str) -> tuple[NamedColumns, list[str]] | None:
    """Return the columns of a line that names its figures itself, and its cells; None if it is none."""
    if "RAM " in line and ("(lfb " in line or "GR3D" in line):
        return _tegrastats(line)
    if line.lstrip().startswith("|"):
        found = _GPUTIL.fullmatch(line.strip())
        return (GPUTIL, [*found.groups()]) if found else None
    found = _GPUSTAT.fullmatch(line.strip()) if line.lstrip().startswith("[") and "|" in line else None
    if found:
        return GPUSTAT, [cell or "" for cell in found.groups()]
    return _logged(line) if "%" in line and len(line) < _MOST_LOGGED else None


def _logged(line: str) -> tuple[NamedColumns, list[str]] | None:
    """Return the figures that a line of a log names, its GPU's utilisation in % among them."""
    if "gpu" not in line.lower() or METRICS & {*re.split(r"[\W_\d]+", line.lower())}:
        return None
    number = _OF_GPU.search(line)
    cells = {of.INDEX: number.group(1) if number else ""}
    for name, cell, unit in _FIGURE.findall(line):
        one = named(f"gpu {name} ({unit})")
        if one is not None and cells.setdefault(one.quantity, cell) != cell:
            return None
    if "gpu_util" not in cells:
        return None
    at = _TIME_OF_DAY.search(line)
    time = date_in(line) or (at.group() if at else None)
    found = [cells.get(name, "") for name in _LOGGED_NAMES[:5]]
    return (LOGGED_TIMED, [*found, time]) if time else (LOGGED, found)


def _tegrastats(line: str) -> tuple[NamedColumns, list[str]] | None:
    found = _TEGRA.fullmatch(line.strip())
    if found is None:
        return None
    cells = [one.group(1) if (one := cell.search(line)) else "" for cell in _TEGRA_CELLS]
    time = found.group("time")
    return (TEGRA_TIMED, [*cells, time]) if time else (TEGRA, cells)
