"""System metrics in the stores of experiment trackers, as rows of their GPUs: W&B, MLflow, trackio."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.lazy import regex
from gpudebug.core.recordings.cells import moment
from gpudebug.core.recordings.collect import MonitorRows, Row, RowStretch
from gpudebug.core.recordings.names import FIGURES, SHARES, named
from gpudebug.core.recordings.runs import MonitorRecording, recorded
from gpudebug.core.recordings.tables import NamedColumns
from gpudebug.core.samples.row import DeviceReading
from gpudebug.core.samples.table import LARGEST
from gpudebug.core.trainlog.logger_files import SystemReading, SystemReadings, WrittenScalars
from gpudebug.core.trainlog.text import as_number

WANDB, MLFLOW, TRACKIO = "W&B system metrics", "MLflow system metrics", "trackio system metrics"
_LATE = {WANDB: "W&B writes the first after 15 s", MLFLOW: "MLflow writes the first after 10 s"}
_AGAIN = "look at it again once its run has gone on"
_MIB = {"B": 2.0**-20, "KiB": 2.0**-10, "MiB": 1.0, "GiB": 1024.0}
# What MLflow writes for an infinite value, as databases have none.
_MLFLOW_INFINITE = 1.7976931348623157e308
_GPU = regex(r"(?:system\.)?gpu\.(\d{1,4})\.(\w+)")
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
Figure = tuple[int, str, float]
"""Of which GPU, what of it, and what to multiply it with."""


@dataclass
class StoredRun:
    """One run of a store: its system metrics, and what it logged of its training."""

    readings: list[SystemReading] = field(default_factory=list)
    history: WrittenScalars = field(default_factory=WrittenScalars)


def read_wandb_run(found: SystemReadings, file: str) -> MonitorRecording:
    """Return the readings of a run's GPUs; `elapsed` counts from the first of them.

    Raises GpudebugError if it holds none: a run without a GPU, of which W&B records the host alone, one that
    is alive or was killed before the first, or a file that breaks off before it.
    """
    return stored_recording({"": found.readings}, WANDB, file, found.note)


def stored_recording(
    runs: Mapping[str, Sequence[SystemReading]], source: str, file: str, note: str | None = None
) -> MonitorRecording:
    """Return the readings of the GPUs of each run. Raises GpudebugError if there are none."""
    figure = _of_wandb if source == WANDB else _of_trackio if source == TRACKIO else _of_mlflow
    parts = []
    for readings in runs.values():
        rows = [row for one in sorted(readings, key=lambda r: r.time) for row in _rows(one, figure)]
        parts += [RowStretch(NamedColumns(source, 0, (), str.split), 1, rows)] if rows else []
    if not parts:
        why = f"{note} and " if note else ""
        if any(runs.values()):
            raise GpudebugError(
                f"{why}has no GPU in its system metrics", file=file, next="give the run of a host with GPUs"
            )
        late = f": {_LATE[source]}" if source in _LATE else ""
        raise GpudebugError(f"{why}has no rows of system metrics yet{late}", file=file, next=_AGAIN)
    notes = [f"the file {note}: what is before that was read"] if note else []
    return recorded(
        MonitorRows(source, parts, 0, notes, dated=True, between="another run of the store"), file
    )


def _of_wandb(key: str) -> Figure | None:
    found = _GPU.fullmatch(key)
    if found is None or found.group(2) not in _COLUMNS:
        return None
    quantity = _COLUMNS[found.group(2)]
    return int(found.group(1)), quantity, 2.0**-20 if quantity == "mem_used_mb" else 1.0


def _of_mlflow(key: str) -> Figure | None:
    found = named(key)
    if found is None or found.device is None or found.quantity not in FIGURES or found.vague:
        return None
    scale = _MIB.get(found.unit or "MiB", 1.0) if found.quantity.endswith("_mb") else 1.0
    return int(found.device), found.quantity, scale


def _of_trackio(key: str) -> Figure | None:
    """As `_of_mlflow`; memory is counted in GiB, and `memory_usage` is a share of it."""
    found = named(key)
    memory = found is not None and found.quantity in ("mem_used_mb", "mem_total_mb")
    if found is None or found.device is None or not memory:
        return _of_mlflow(key)
    return None if key.endswith("usage") else (int(found.device), found.quantity, 1024.0)


def _rows(reading: SystemReading, figure: Callable[[str], Figure | None]) -> Iterable[Row]:
    by_gpu: dict[int, dict[str, float]] = {}
    for key, value in reading.values.items():
        found = figure(key)
        if found is not None:
            index, quantity, scale = found
            if abs(value * scale) < LARGEST:
                by_gpu.setdefault(index, {}).setdefault(quantity, value * scale)
    for index, values in sorted(by_gpu.items()):
        shares = {name: values.pop(name) for name in SHARES if name in values}
        busy = values.pop("gpu_util", None)
        shown = DeviceReading(
            elapsed=reading.time,
            gpu_index=index,
            gpu_util=busy if busy is None or 0 <= busy <= 100 else None,
            new_samples=1,
            **values,  # type: ignore[arg-type]
        )
        yield Row(reading.time, str(index), shown, shares)


def of_mlflow(rows: Iterable[Sequence[Any]]) -> dict[str, StoredRun]:
    """Return the runs of rows of `metrics`: run, key, value, milliseconds since 1970, step, nan or not."""
    runs: dict[str, StoredRun] = {}
    system: dict[tuple[str, float], dict[str, float]] = {}
    for run, key, value, timestamp, step, is_nan in rows:
        if not isinstance(value, (int, float)) or not isinstance(timestamp, int) or not isinstance(step, int):
            continue
        one = runs.setdefault(str(run), StoredRun())
        number = nan if is_nan else float(value)
        if abs(number) >= _MLFLOW_INFINITE:
            number = inf if number > 0 else -inf
        if not str(key).startswith("system/"):
            one.history.add(str(key), step, number)
        elif isfinite(number):
            system.setdefault((str(run), timestamp / 1000), {})[str(key)] = number
    for (name, time), values in system.items():
        runs[name].readings.append(SystemReading(time, values))
    return runs


def of_trackio(history: Iterable[Sequence[Any]], system: Iterable[Sequence[Any]]) -> dict[str, StoredRun]:
    """Return the runs of rows of `metrics` (run, step, JSON) and of `system_metrics` (run, time, JSON)."""
    runs: dict[str, StoredRun] = {}
    for run, step, text in history:
        for key, value in _numbers(text).items():
            if isinstance(step, int):
                runs.setdefault(str(run), StoredRun()).history.add(key, step, value)
    for run, timestamp, text in system:
        at = moment(str(timestamp))
        if at is not None:
            runs.setdefault(str(run), StoredRun()).readings.append(SystemReading(at[0], _numbers(text)))
    return runs


def _numbers(text: Any) -> dict[str, float]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    numbers = {k: as_number(v) for k, v in pairs if isinstance(v, (int, float))}
    return {k: v for k, v in numbers.items() if v is not None}
