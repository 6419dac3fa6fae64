"""The system metrics of a W&B run file as rows in the columns of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.runs import MonitorRecording, RecordedRun
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
}


def read_wandb_run(data: bytes, file: str) -> MonitorRecording:
    """Return the readings of its GPUs; `elapsed` counts from the first of them.

    Raises GpudebugError if it holds none: a run without a GPU, of which W&B records the host alone, or a file
    that breaks off before the first.
    """
    found = read_wandb_system(data)
    rows = list(_rows(found.readings))
    if not rows:
        why = f"{found.note} and " if found.note else ""
        raise GpudebugError(
            f"{why}has no GPU in its system metrics", file=file, next="gpudebug analyze shows its losses"
        )
    notes = (f"the file {found.note}: what is before that was read",) if found.note else ()
    run = RecordedRun(tuple(rows), rows[0].elapsed or 0.0, rows[-1].elapsed or 0.0)
    return MonitorRecording(SOURCE, (run,), 0, notes)


def _rows(readings: Iterable[SystemReading]) -> Iterable[DeviceReading]:
    start: float | None = None
    for reading in sorted(readings, key=lambda r: r.time):
        by_gpu: dict[int, dict[str, float]] = {}
        for key, value in reading.values.items():
            named = _GPU.fullmatch(key)
            if named and named.group(2) in _COLUMNS:
                by_gpu.setdefault(int(named.group(1)), {})[_COLUMNS[named.group(2)]] = value
        for index, values in sorted(by_gpu.items()):
            used, busy = values.pop("mem_used_mb", None), values.pop("gpu_util", None)
            start = reading.time if start is None else start
            yield DeviceReading(
                elapsed=reading.time - start,
                gpu_index=index,
                gpu_util=busy if busy is None or 0 <= busy <= 100 else None,
                mem_used_mb=None if used is None else used / 2**20,
                new_samples=1,
                **values,  # type: ignore[arg-type]
            )
