"""Lines that print a figure after its name: `tegrastats`, and `gpustat` for people."""

from __future__ import annotations

from gpudebug.core.lazy import regex
from gpudebug.core.recordings import names as of
from gpudebug.core.recordings.names import NamedFigure
from gpudebug.core.recordings.sources import TEGRASTATS
from gpudebug.core.recordings.tables import NamedColumns

_TEGRA = regex(r"(?:(?P<time>[\d/-]+ [\d:.]+) )?(?P<rest>(?=.*\bGR3D_FREQ\b).*\bRAM \d+/\d+MB.*)")
_TEGRA_CELLS = (
    regex(r"\bGR3D_FREQ (\d+%)"),
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
    r"(?:,\s*(\S+) ?/ ?\S+ W\s*)?\|\s*(\d+ ?/ ?\d+ [MG]i?B)\s*\|.*"
)
_GPUSTAT_NAMES = (of.INDEX, of.NAME, "temperature_c", "gpu_util", "power_w", "mem_used_mb")


def _columns(source: str, figures: tuple[NamedFigure, ...]) -> NamedColumns:
    return NamedColumns(source, len(figures), tuple(enumerate(figures)), lambda line: [line])


TEGRA = _columns(TEGRASTATS, _TEGRA_NAMES[:4])
TEGRA_TIMED = _columns(TEGRASTATS, _TEGRA_NAMES)
GPUSTAT = _columns("gpustat", tuple(NamedFigure(name, sure=True) for name in _GPUSTAT_NAMES))


def printed(line: str) -> tuple[NamedColumns, list[str]] | None:
    """Return the columns of a line that names its figures itself, and its cells; None if it is none."""
    if "GR3D_FREQ" in line:
        return _tegrastats(line)
    found = _GPUSTAT.fullmatch(line.strip()) if line.lstrip().startswith("[") and "|" in line else None
    return (GPUSTAT, [cell or "" for cell in found.groups()]) if found else None


def _tegrastats(line: str) -> tuple[NamedColumns, list[str]] | None:
    found = _TEGRA.fullmatch(line.strip())
    if found is None:
        return None
    cells = [one.group(1) if (one := cell.search(line)) else "" for cell in _TEGRA_CELLS]
    time = found.group("time")
    return (TEGRA_TIMED, [*cells, time]) if time else (TEGRA, cells)
