"""An Nsight Systems export (SQLite) as the events of a trace: kernels, copies, runtime calls and NVTX ranges.

Of a table only columns that it has are asked for: schemas differ from version to version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from gpudebug.core.errors import GpudebugError
from gpudebug.core.lazy import regex
from gpudebug.core.trace.events import Args, Event

_KERNEL, _MEMCPY, _MEMSET = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET"))
_GRAPH, _RUNTIME = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_RUNTIME"
_NVTX, _STRINGS = "NVTX_EVENTS", "StringIds"
_DEVICE_TABLES = (_KERNEL, _MEMCPY, _MEMSET, _GRAPH)
_MARKS = ("META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME", _RUNTIME, _NVTX, *_DEVICE_TABLES)
_BATCH = 20_000
# globalPid and globalTid hold the process in bits 24 to 47, and the machine above them.
_PID_BITS, _PID_MASK = 24, 0xFFFFFF
# ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND of schema 3.24; exports hold them too.
_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD"}
_MEMORIES = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
# Ranges of NVTX: pushed and popped, or started and ended.
_RANGES = frozenset({59, 60})
_VERSION = regex(r"_v\d+(_ptsz|_ptds)?$")
# emit_nvtx names an operator `aten::add, op_id = 314359`.
_OPERATOR = regex(r"([\w.]+::[\w.:]+)(, .*)?")
_ITERATION = regex(r"(?:train[ _]?)?(?:step|iteration|iter)[ _#:=]*(\d+)", re.IGNORECASE)
_NEXT = "record with nsys profile --trace cuda,nvtx, then nsys export --type sqlite"


class Tables(Protocol):
    """A database: the columns of its tables, and rows of some of them."""

    def tables(self) -> Mapping[str, frozenset[str]]: ...

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        order: str | None = None,
        within: tuple[str, int, int] | None = None,
    ) -> Iterator[tuple[Any, ...]]: ...


class NsysExport:
    """An export: the `processes` that used a GPU, as it numbers them, and what wrote it as `source`.

    Raises GpudebugError if the database is no export of nsys, or holds no CUDA events.
    """

    def __init__(self, database: Tables) -> None:
        self._database = database
        self._tables = database.tables()
        if _STRINGS not in self._tables or not any(name in self._tables for name in _MARKS):
            names = ", ".join(sorted(self._tables)[:5]) or "no table"
            raise GpudebugError(
                f"is an SQLite database, but no export of Nsight Systems (it holds {names})",
                next="give an export of nsys: nsys export --type sqlite F.nsys-rep",
            )
        if not any(name in self._tables for name in (*_DEVICE_TABLES, _RUNTIME)):
            raise GpudebugError("is an export of Nsight Systems without CUDA events", next=_NEXT)
        self.texts = dict(self.read(_STRINGS, ("id", "value")))
        self.gpus = {
            number: name if isinstance(name, str) else None
            for number, name in self.read("TARGET_INFO_GPU", ("id", "name"))
            if isinstance(number, int)
        }
        self.numbers = {
            (pid, cuda): gpu
            for gpu, cuda, pid in self.read("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
            if isinstance(gpu, int)
        }
        self.processes = sorted(
            {
                of >> _PID_BITS
                for table in _DEVICE_TABLES
                for (of,) in self.read(table, ("globalPid",))
                if isinstance(of, int)
            }
        )
        self.source = self._version()

    def read(
        self, table: str, columns: Sequence[str], order: str | None = None, process: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of a table with None for columns that it lacks, of one process if it is given and the table
        names processes; none of a table that is not there."""
        known = self._tables.get(table, frozenset())
        asked = [column for column in columns if column in known]
        if not asked:
            return
        owner = next((column for column in ("globalPid", "globalTid") if column in known), None)
        within = None
        if process is not None and owner is not None:
            low = process << _PID_BITS
            within = (owner, low, low + (1 << _PID_BITS) - 1)
        places = [asked.index(column) if column in known else None for column in columns]
        for row in self._database.rows(table, asked, order if order in known else None, within):
            yield tuple(None if at is None else row[at] for at in places)

    def _version(self) -> str:
        known = dict(self.read("META_DATA_EXPORT", ("name", "value")))
        version, schema = known.get("EXPORT_PRODUCT_VERSION"), known.get("EXPORT_SCHEMA_VERSION")
        text = f"Nsight Systems {version}" if version else "Nsight Systems"
        return f"{text}, schema {schema}" if schema else text


class ProcessEvents:
    """The events of one process, all if it is None: an `EventSource`.

    CUDA numbers the devices that a process sees; an export that maps them to GPUs names these.
    """

    def __init__(self, export: NsysExport, process: int | None) -> None:
        self._export, self._process = export, process
        self.truncated = False
        self.unreadable = 0
        self.notes: list[str] = []
        # Without the map a process's device 0 may be any GPU.
        sure = export.numbers or len(set(export.gpus.values())) == 1
        gpus = [{"id": number, "name": name} for number, name in export.gpus.items() if sure]
        self.metadata: dict[str, Any] = {"deviceProperties": gpus}

    def batches(self) -> Iterator[list[Event]]:
        """Table by table, each in order of start."""
        for make in (self._ranges, self._calls, self._kernels, self._copies, self._fills, self._graphs):
            events = make()
            while batch := list(islice(events, _BATCH)):
                yield batch

    def _read(
        self, table: str, columns: Sequence[str], order: str | None = None
    ) -> Iterator[tuple[Any, ...]]:
        return self._export.read(table, columns, order, self._process)

    def _text(self, number: Any) -> str:
        return str(self._export.texts.get(number, "(unnamed)"))

    def _ranges(self) -> Iterator[Event]:
        columns = ("start", "end", "eventType", "text", "textId", "globalTid")
        for start, end, kind, text, number, thread in self._read(_NVTX, columns, "start"):
            if kind not in _RANGES or not _timed(start, end):
                continue
            name = str(text) if text is not None else self._text(number)
            operator, iteration = _OPERATOR.fullmatch(name), _ITERATION.fullmatch(name.strip())
            if operator:
                yield _event("cpu_op", operator.group(1), start, end, thread)
            else:
                name = f"ProfilerStep#{iteration.group(1)}" if iteration else name
                yield _event("user_annotation", name, start, end, thread)

    def _calls(self) -> Iterator[Event]:
        columns = ("start", "end", "globalTid", "correlationId", "nameId")
        for start, end, thread, number, name in self._read(_RUNTIME, columns, "start"):
            if not _timed(start, end):
                self.unreadable += 1
                continue
            text = self._text(name)
            plain = _VERSION.sub("", text) if text.startswith("cuda") else text
            yield _event("cuda_runtime", plain, start, end, thread, Args(correlation=_whole(number)))

    def _kernels(self) -> Iterator[Event]:
        return self._on_device(
            _KERNEL, ("demangledName", "shortName"), "kernel", lambda long, short: self._text(long or short)
        )

    def _copies(self) -> Iterator[Event]:
        labels = ("id", "label")
        kinds = _labelled(self._export.read("ENUM_CUDA_MEMCPY_OPER", labels), _KINDS, _short_kind)
        memories = _labelled(self._export.read("ENUM_CUDA_MEM_KIND", labels), _MEMORIES, str)

        def name(kind: Any, source: Any, target: Any) -> str:
            ends = f"{memories.get(source, 'Unknown')} -> {memories.get(target, 'Unknown')}"
            return f"Memcpy {kinds.get(kind, 'other')} ({ends})"

        return self._on_device(_MEMCPY, ("copyKind", "srcKind", "dstKind"), "gpu_memcpy", name)

    def _fills(self) -> Iterator[Event]:
        return self._on_device(_MEMSET, ("memKind",), "gpu_memset", lambda _: "Memset (Device)")

    def _graphs(self) -> Iterator[Event]:
        return self._on_device(_GRAPH, ("graphId",), "kernel", lambda number: f"CUDA graph {number}")

    def _on_device(
        self, table: str, of: Sequence[str], category: str, name: Callable[..., str]
    ) -> Iterator[Event]:
        """Work on a device; `name` makes its name from the columns `of`."""
        columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", *of)
        for start, end, device, stream, number, process, size, *rest in self._read(table, columns, "start"):
            if not _timed(start, end):
                self.unreadable += 1
                continue
            args = Args(
                stream=_whole(stream) or 0,
                device=self._export.numbers.get((_pid(process), device), _whole(device)),
                correlation=_whole(number),
                bytes=_whole(size),
            )
            yield _event(category, name(*rest), start, end, process, args)


def pid_of(process: int) -> int:
    """Return the operating system's number of a process of an export."""
    return process & _PID_MASK


def _event(category: str, name: str, start: int, end: int, thread: Any, args: Args | None = None) -> Event:
    length = (end - start) / 1e3
    pid, tid = _pid(thread), _whole(thread)
    return Event(name=name, cat=category, ts=start / 1e3, dur=length, pid=pid, tid=tid, args=args)


def _timed(start: Any, end: Any) -> bool:
    """Tell whether an event has both its times; SQLite keeps values of any type in a column."""
    return isinstance(start, int) and isinstance(end, int) and start <= end


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _pid(of: Any) -> int:
    return of >> _PID_BITS & _PID_MASK if isinstance(of, int) else 0


def _labelled(
    rows: Iterator[tuple[Any, ...]], default: Mapping[int, str], name: Callable[[str], str]
) -> dict[Any, str]:
    return {**default, **{number: name(str(label)) for number, label in rows if label}}


def _short_kind(label: str) -> str:
    """`HtoD` of `Host-to-Device`, with unified memory's among them."""
    ends = label.removeprefix("Unified ").split("-to-")
    return "to".join(end[:1] for end in ends) if len(ends) == 2 else "other"
