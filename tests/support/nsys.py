"""Exports of Nsight Systems, made up: the tables and columns of its schema that matter, a process a rank."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Tables with their columns, as schema 3.24 and 3.25 have them; older ones have fewer.
SCHEMA = {
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, uuid TEXT, cuDevice INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, "
    "dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, "
    "globalTid INTEGER",
}
_HOST = 1 << 48
HTOD, PAGEABLE, PINNED, DEVICE = 1, 0, 1, 2
PUSHED = 59


class Export:
    """A database to which events are added; times are in microseconds."""

    def __init__(self, path: Path, *, without: Iterable[str] = ()) -> None:
        self.path = path
        self._connection = sqlite3.connect(path)
        self._texts: dict[str, int] = {}
        self._correlation = 0
        for table, columns in SCHEMA.items():
            if table not in without:
                self._connection.execute(f"CREATE TABLE {table} ({columns})")
        self.put("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION", "2026.1.1")
        self.put("META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION", "3.24.14")

    def put(self, table: str, *values: Any) -> None:
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)

    def text(self, value: str) -> int:
        if value not in self._texts:
            self._texts[value] = len(self._texts) + 1
            self.put("StringIds", self._texts[value], value)
        return self._texts[value]

    def call(self, name: str, start: float, length: float, pid: int = 100) -> int:
        """A runtime call; its correlation."""
        self._correlation += 1
        times = round(start * 1e3), round((start + length) * 1e3)
        self.put(
            "CUPTI_ACTIVITY_KIND_RUNTIME", *times, _process(pid) + pid, self._correlation, self.text(name)
        )
        return self._correlation

    def kernel(
        self, name: str, asked: float, start: float, length: float, pid: int = 100, device: int = 0
    ) -> None:
        """A kernel, with its launch of 2 us."""
        number = self.call("cudaLaunchKernel_v7000", asked, 2.0, pid)
        times = round(start * 1e3), round((start + length) * 1e3)
        of = _process(pid), self.text(f"void {name}(int)"), self.text(name)
        self.put("CUPTI_ACTIVITY_KIND_KERNEL", *times, device, 7, number, *of)

    def copy(self, start: float, length: float, size: int, pid: int = 100) -> None:
        times = round(start * 1e3), round((start + length) * 1e3)
        number = self.call("cudaMemcpyAsync_v3020", start - 5, 2.0, pid)
        of = 0, 7, number, _process(pid), size, HTOD, PAGEABLE, DEVICE
        self.put("CUPTI_ACTIVITY_KIND_MEMCPY", *times, *of)

    def range(
        self, name: str, start: float, length: float, pid: int = 100, *, registered: bool = False
    ) -> None:
        times = round(start * 1e3), round((start + length) * 1e3)
        of = (None, self.text(name)) if registered else (name, None)
        self.put("NVTX_EVENTS", *times, PUSHED, *of, _process(pid) + pid)

    def gpu(self, number: int, name: str, pid: int, cuda: int = 0) -> None:
        """A GPU, and the number that CUDA gives it in a process."""
        self.put("TARGET_INFO_GPU", number, name, f"uuid-{number}", number)
        self.put("TARGET_INFO_CUDA_DEVICE", number, cuda, pid, f"uuid-{number}")

    def close(self) -> Path:
        self._connection.commit()
        self._connection.close()
        return self.path


def two_ranks(path: Path, *, steps: int = 20, late: int = 1, slower: float = 300.0) -> Path:
    """Two processes with a GPU each, both device 0 to CUDA: rank `late` begins each all-reduce so much later.

    A step of 2 ms: 1 ms of computation (more on the late rank), then an all-reduce that ends on both at once.
    """
    export = Export(path)
    for rank in range(2):
        export.gpu(rank, "NVIDIA H100 80GB HBM3", pid=100 + rank)
    for step in range(steps):
        begin = 2_000.0 * step
        for rank in range(2):
            pid = 100 + rank
            export.range(f"step {step}", begin, 2_000.0, pid)
            work = 1_000.0 + (slower if rank == late else 0.0)
            export.kernel("gemm", begin + 5, begin + 10, work, pid)
            arrived = begin + 20 + work
            name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
            export.kernel(name, begin + 8, arrived, begin + 1_800 - arrived, pid)
    return export.close()


def _process(pid: int) -> int:
    return _HOST + (pid << 24)
