"""When this rank came to its collectives, as PyTorch's flight recorder has it where the environment switches
that on. Its JSON is read, never a pickle.

`TORCH_FR_BUFFER_SIZE`, in older versions `TORCH_NCCL_TRACE_BUFFER_SIZE`, is how many collectives it holds.
A few in a row are reported of every `EVERY`, by their number, which all ranks of a group count alike: so that
each rank reports the same ones.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from .record import RecordFile
from .recorder import Recorder

VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
# Of the recorder of gloo and other backends, and of NCCL's.
DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
EVERY, ROW = 256, 64
# Rows of a report, and of all ranks together: evidence of hundreds of ranks fits into one file.
MOST, OF_ALL = 192, 2048
# Seconds until the first report; each later one comes after twice the time.
FIRST_S = 10.0
# Reading a larger buffer would hold the training up: that is done at its end alone.
LARGEST = 5000


def held(environ: Any = os.environ) -> int:
    """How many collectives the flight recorder holds; 0 if it is off."""
    sizes = [environ.get(name, "") for name in VARIABLES]
    return max((int(size) for size in sizes if size.isdigit()), default=0)


def install(torch: Any, recorder: Recorder) -> None:
    size = held()
    if size:
        flight = FlightReports(torch, recorder)
        recorder.on_begin(flight.begin)
        recorder.on_end(flight.tell)
        if size <= LARGEST:
            recorder.before_beat(flight.beat)


class FlightReports:
    """What was reported of this process's collectives."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self.begin()

    def begin(self) -> None:
        self._over = False
        self._due, self._after = time.monotonic() + FIRST_S, FIRST_S
        # The last number by group and backend: each backend of a group counts its own.
        self._told: dict[tuple[str, str], int] = {}

    def beat(self) -> None:
        if time.monotonic() >= self._due:
            self._after *= 2
            self._due = time.monotonic() + self._after
            self.tell()

    def tell(self) -> None:
        """Report the collectives that were not yet; never again after a dump of another form."""
        if not self._over:
            try:
                self._tell()
            except Exception:  # noqa: BLE001 - the rest of the probe goes on
                self._over = True

    def _tell(self) -> None:
        known = [row for row in map(_row, self._entries()) if row]
        rows = [row for row in known if row[1] > self._told.get(_counted(row), -1)]
        ranks = self._recorder.ranks()
        rows = rows[-min(MOST, max(1, OF_ALL // (ranks["world_size"] or 1))) :]
        if not rows:
            return
        for row in rows:
            self._told[_counted(row)] = row[1]
        record = RecordFile(self._recorder.run)
        record.others = bool(ranks["rank"])
        record.append_stacks([record.line("collectives", now=time.time_ns() // 1000, rows=rows)])

    def _entries(self) -> list[Any]:
        bindings = getattr(self._torch._C, "_distributed_c10d", None)
        found: list[Any] = []
        for name in DUMPS:
            dump = getattr(bindings, name, None)
            if dump is not None:
                found += json.loads(dump(True, False)).get("entries") or []
        return found


def _row(entry: Any) -> list[Any] | None:
    """Group, number, what it is, when the rank called it (microseconds since the epoch), how many numbers it
    takes in, and how long it took on the device in milliseconds if that was timed; None if it is not one of
    those that are reported."""
    number = entry["collective_seq_id"]
    if entry.get("is_p2p") or number % EVERY >= ROW:
        return None
    sizes = [_product(size) for size in entry.get("input_sizes") or []]
    duration = entry.get("duration_ms")
    name, group = entry["profiling_name"], entry["process_group"][0]
    return [str(group), number, str(name), entry["time_created_ns"] // 1000, sum(sizes), duration]


def _counted(row: list[Any]) -> tuple[str, str]:
    return row[0], row[2].partition(":")[0]


def _product(size: Any) -> int:
    found = 1
    for length in size:
        found *= length
    return found
