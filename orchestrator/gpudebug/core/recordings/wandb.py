"""System metrics of a W&B run file, as rows of its GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.collect import MonitorRows, Row, RowStretch
from gpudebug.core.recordings.names import SHARES
from gpudebug.core.recordings.runs import MonitorRecording, recorded
from gpudebug.core.recordings.tables import NamedColumns
from gpudebug.core.samples.row import DeviceReading
from gpudebug.core.trainlog.logger_files import SystemReading, read_wandb_system

SOURCE = "W&B system metrics"

_GPU = re.compile(r"(?:system\.)?gpu\.(\d{1,4})\.(\w+)")
_COLUMNS = {
    "gpu": "gpu_util",
    "memory": "mem_util",
    "memoryAllocatedBytes": "mem_used_mb",
    "powerWatts": "power_w",
    "smClock": "sm_clock_mhz",
    "memoryClock": "mem_clock_mhz",
    "temp": "temperature_c",
    "smActive": "sm_active",
    "pipeTensorActive": "tensor_active",
    "dramActive": "dram_active",
}
"""Since 0.26 with those of GPM, in percent."""


def read_wandb_run(data: bytes, file: str) -> MonitorRecording:
    """Return the readings of its GPUs; `elapsed` counts from the first of them.

    Raises GpudebugError if it holds none: a run without a GPU, of which W&B records the host alone, one that
    is alive or was killed before the first, or a file that breaks off before it.
    """
    found = read_wandb_system(data)
    rows = [row for reading in sorted(found.readings, key=_by_time) for row in _rows(reading)]
    if not rows:
        why = f"{found.note} and " if found.note else ""
        none = "has no GPU in its system metrics" if found.readings else "has no rows of system metrics yet"
        late = "" if found.readings else ": W&B writes the first after 15 s"
        raise GpudebugError(f"{why}{none}{late}", file=file, next="look at it again once its run has gone on")
    notes = [f"the file {found.note}: what is before that was read"] if found.note else []
    part = RowStretch(NamedColumns(SOURCE, 0, (), str.split), 1, rows)
    return recorded(MonitorRows(SOURCE, [part], 0, notes, dated=True), file)


def _by_time(reading: SystemReading) -> float:
    return reading.time


def _rows(reading: SystemReading) -> Iterable[Row]:
    by_gpu: dict[int, dict[str, float]] = {}
    for key, value in reading.values.items():
        named = _GPU.fullmatch(key)
        if named and named.group(2) in _COLUMNS:
            by_gpu.setdefault(int(named.group(1)), {})[_COLUMNS[named.group(2)]] = value
    for index, values in sorted(by_gpu.items()):
        shares = {name: values.pop(name) for name in SHARES if name in values}
        used, busy = values.pop("mem_used_mb", None), values.pop("gpu_util", None)
        shown = DeviceReading(
            elapsed=reading.time,
            gpu_index=index,
            gpu_util=busy if busy is None or 0 <= busy <= 100 else None,
            mem_used_mb=None if used is None else used / 2**20,
            new_samples=1,
            **values,  # type: ignore[arg-type]
        )
        yield Row(reading.time, str(index), shown, shares)
