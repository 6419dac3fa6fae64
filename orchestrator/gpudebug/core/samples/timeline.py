"""What each device of a run did over time, short enough for a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.statistics.downsample import thin

GAP_S = 2.0
_PERIODS = 3.0

Moment = tuple[float, float | None, float | None]
"""Seconds since launch, utilisation in percent, MB of device memory used; None is not known."""


def timelines(samples: SampleTable, most: int, interval: float | None = None) -> list[dict[str, Any]]:
    """`index`, `uuid` and `points` of each device: at most `most` `Moment`s that keep its peaks.

    A tick at which the driver had nothing new is no reading; none for longer than two seconds, or three
    times the `interval` of the samples, is a gap.
    """
    gap = max(GAP_S, _PERIODS * (interval or 0.0))
    rows: dict[tuple[int, str], list[Sample]] = {}
    for row in samples.rows:
        rows.setdefault((row.gpu_index, row.gpu_uuid), []).append(row)
    return [
        {"index": index, "uuid": uuid, "points": thin(list(_moments(own, gap)), most, (1, 2))}
        for (index, uuid), own in rows.items()
    ]


def _moments(rows: Sequence[Sample], gap: float) -> Iterator[Moment]:
    reading = seen = 0.0
    for row in rows:
        now = row.elapsed
        if now - seen > gap:
            yield (seen + now) / 2, None, None
        seen = now
        if row.new_samples != 0 or now - reading > gap:
            value = row.gpu_util if row.new_samples != 0 else None
            reading = reading if value is None else now
            yield now, value, row.mem_used_mb
