"""The samples of a run's first node with those of its other nodes, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath

from gpudebug.core.samples.table import Sample, SampleTable


def name_on(node: str, samples: str) -> str:
    """Return the file of another node beside the first one's: `samples.n1.csv` beside `samples.csv`."""
    path = PurePath(samples)
    return f"{path.stem}.{node}{path.suffix}"


def joined(first: SampleTable, others: Sequence[SampleTable]) -> SampleTable:
    """Return all rows, the first node's first; of other nodes' the devices, which their UUIDs tell apart.

    What could not be read of another node's file is left to its devices, which then have too few readings.
    """
    known = {uuid for _, uuid in first.devices}
    rows = [_of_device(row) for table in others for row in _new(table.rows, known)]
    return replace(first, rows=[*first.rows, *rows]) if rows else first


def _new(rows: Iterable[Sample], known: set[str]) -> list[Sample]:
    return [row for row in rows if row.gpu_uuid not in known]


def _of_device(row: Sample) -> Sample:
    """Without the columns of the host: those of a run are its first node's."""
    return replace(
        row,
        log_bytes=None,
        rss_mb=None,
        cpu_util=None,
        cpu_wait=None,
        cpu_throttled=None,
        cpu_stolen=None,
        read_mb_s=None,
        write_mb_s=None,
        foreign_cpu=None,
        foreign_demand=None,
    )
