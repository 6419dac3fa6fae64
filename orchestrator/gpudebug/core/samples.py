"""samples.csv: columns, and reading rows back without trusting them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpudebug.core.errors import GpudebugError

COLUMNS = (
    "elapsed",
    "gpu_util",
    "mem_util",
    "mem_used_mb",
    "mem_total_mb",
    "gpu_index",
    "gpu_uuid",
    "power_w",
    "sm_clock_mhz",
    "mem_clock_mhz",
    "temperature_c",
    "throttle",
    "new_samples",
    "cpu_util",
    "rss_mb",
    "read_mb_s",
    "write_mb_s",
    "procs",
    "log_bytes",
)
# The five columns that the first monitor script of this kind wrote, in its order.
SEED_COLUMNS = ("elapsed", "gpu_util", "mem_util", "mem_used_mb", "mem_total_mb")
_TEXT = frozenset({"gpu_uuid", "throttle"})
_MAX_FIELD = 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """One device's readings at one tick; a field is None where the cell was empty."""

    elapsed: float
    gpu_util: float | None
    mem_used_mb: float | None
    gpu_index: int
    gpu_uuid: str
    new_samples: int | None
    rss_mb: float | None
    log_bytes: int | None


@dataclass(slots=True)
class Samples:
    """Rows in file order, and how many could not be read (a torn last line, garbage)."""

    rows: list[Sample] = field(default_factory=list)
    unreadable: int = 0

    @property
    def devices(self) -> list[tuple[int, str]]:
        """(index, uuid) of each device, in order of appearance."""
        return list(dict.fromkeys((r.gpu_index, r.gpu_uuid) for r in self.rows))

    @property
    def log_times(self) -> list[tuple[float, int]]:
        """(elapsed seconds, size of train.log in bytes) at each tick."""
        first = self.rows[0].gpu_uuid if self.rows else ""
        return [(r.elapsed, r.log_bytes) for r in self.rows if r.log_bytes is not None and r.gpu_uuid == first]


def looks_like_samples(head: str) -> bool:
    """Whether text starts with a header of samples.csv, ours or the seed monitor's."""
    names = [c.strip().lower() for c in head.split("\n", 1)[0].lstrip("\ufeff").split(",")]
    return len(names) >= 3 and names[0] in _ELAPSED and "gpu_util" in names


_ELAPSED = ("elapsed", "elapsed_s", "timestamp", "time")


def read_samples(lines: Iterable[str], file: str) -> Samples:
    """Parse samples.csv. Raises GpudebugError where the header is not one of samples."""
    iterator = iter(lines)
    header = next(iterator, "")
    if not looks_like_samples(header):
        raise GpudebugError(
            "not a samples CSV: the first line must name at least elapsed and gpu_util",
            file=file,
            line=1,
            next="record one with `gpudebug sample -o samples.csv -- CMD`",
        )
    names = [c.strip().lower() for c in header.lstrip("\ufeff").split(",")]
    at = {name: i for i, name in enumerate(names)}
    at["elapsed"] = 0
    out = Samples()
    for line in iterator:
        if not line.strip():
            continue
        sample = _row(line.rstrip("\r\n").split(","), at, len(names)) if line.endswith("\n") else None
        if sample is None:
            out.unreadable += 1
        else:
            out.rows.append(sample)
    return out


def _row(cells: Sequence[str], at: dict[str, int], width: int) -> Sample | None:
    if len(cells) != width or any(len(c) > _MAX_FIELD for c in cells):
        return None

    def cell(name: str) -> str:
        return cells[at[name]].strip() if name in at else ""

    try:
        elapsed = _number(cell("elapsed"))
        if elapsed is None:
            return None
        return Sample(
            elapsed=elapsed,
            gpu_util=_number(cell("gpu_util")),
            mem_used_mb=_number(cell("mem_used_mb")),
            gpu_index=_integer(cell("gpu_index")) or 0,
            gpu_uuid=cell("gpu_uuid"),
            new_samples=_integer(cell("new_samples")) if "new_samples" in at else 1,
            rss_mb=_number(cell("rss_mb")),
            log_bytes=_integer(cell("log_bytes")),
        )
    except ValueError:
        return None


def _number(text: str) -> float | None:
    """A finite decimal number in ASCII; None where empty."""
    if not text:
        return None
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _integer(text: str) -> int | None:
    number = _number(text)
    return None if number is None else int(number)
