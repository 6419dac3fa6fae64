"""Exports of Nsight Systems, made up: the tables and columns of its schema that matter, a process a rank."""

from __future__ import annotations

import sqlite3
import struct
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


def shared_pages(path: Path, size: int) -> None:
    """Write a database of about `size` bytes in which each row of NVTX_EVENTS has the same half of the file
    as its text: SQLite's file format, 1.5 and 1.6, of pages of 512 bytes."""
    page, local, whole = 512, 39, 508
    head = 4 + len(_varint(size + 13))
    length = size // 2
    length += -(head + 1 + length - local) % whole
    with sqlite3.connect(path) as c:
        c.execute(f"PRAGMA page_size = {page}")
        c.execute("CREATE TABLE StringIds (id, value)")
        c.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end)")
        c.execute("CREATE TABLE NVTX_EVENTS (start, end, eventType, text)")
        c.execute("INSERT INTO NVTX_EVENTS VALUES (1, 1, ?, ?)", (PUSHED, "x" * length))
        (root,) = c.execute("SELECT rootpage FROM sqlite_master WHERE name = 'NVTX_EVENTS'").fetchone()
    c.close()
    data = bytearray(path.read_bytes())
    at = (root - 1) * page
    (cell,) = struct.unpack_from(">H", data, at + 8)
    payload = _varint(head + 1 + length)
    row = bytes(data[at + cell + len(payload) + 1 :][: local + 4])
    children: list[tuple[int, int]] = []
    number = 0
    while len(data) < size:
        cells = [payload + _varint(n) + row for n in range(number + 1, number + 10)]
        number += len(cells)
        data += _page(13, cells, page)
        children.append((len(data) // page, number))
    while len(children) > 40:
        above = []
        for start in range(0, len(children), 40):
            data += _inner(children[start : start + 40], page)
            above.append((len(data) // page, children[start : start + 40][-1][1]))
        children = above
    data[at : at + page] = _inner(children, page)
    struct.pack_into(">I", data, 28, len(data) // page)
    path.write_bytes(data)


def _inner(children: list[tuple[int, int]], page: int) -> bytearray:
    """A page of the tree; the number of each child, and the last row in it."""
    cells = [struct.pack(">I", number) + _varint(last) for number, last in children[:-1]]
    return _page(5, cells, page, struct.pack(">I", children[-1][0]))


def _page(kind: int, cells: list[bytes], size: int, right: bytes = b"") -> bytearray:
    made, end = bytearray(size), size
    for place, cell in enumerate(cells):
        end -= len(cell)
        made[end : end + len(cell)] = cell
        struct.pack_into(">H", made, 8 + len(right) + 2 * place, end)
    struct.pack_into(">BHHHB", made, 0, kind, 0, len(cells), end, 0)
    made[8 : 8 + len(right)] = right
    return made


def _varint(value: int) -> bytes:
    out = bytes([value & 0x7F])
    while value := value >> 7:
        out = bytes([value & 0x7F | 0x80]) + out
    return out
