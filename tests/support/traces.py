"""Traces as Kineto writes them, made up: a small model of training on a GPU, seeded, of any size."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]

HOST, BACKWARD, STREAM, NCCL = 4242, 4250, 7, 20
_OPERATORS = ("addmm", "native_layer_norm", "gelu", "softmax", "bmm", "add_", "mul", "copy_", "cat", "sum")
_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::{0}_functor<float>, "
    "std::array<char*, 3ul> >(int, at::native::{0}_functor<float>, std::array<char*, 3>)"
)
HEADER = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "Synthetic GPU", "totalGlobalMem": 1 << 34, "computeMajor": 9}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1700000000000000000,
}


_SHAPE = {
    "registers per thread": 32,
    "shared memory": 16384,
    "blocks per SM": 4.848485,
    "warps per SM": 19.393939,
    "grid": [640, 1, 1],
    "block": [128, 1, 1],
    "est. achieved occupancy %": 30,
}


class Training:
    """Events of one training step after the other: a loader, operators that launch kernels, a read, NCCL."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._clock = 4411256817600.0
        self._free = self._clock
        self._number = 0

    def steps(self, operators: int = 60) -> Iterator[list[Event]]:
        """Each step's events in the order in which Kineto writes them: operators, calls, device, flows."""
        step = 0
        while True:
            yield self._step(step, operators)
            step += 1

    def _step(self, number: int, operators: int) -> list[Event]:
        begin = self._clock
        host: list[Event] = []
        calls: list[Event] = []
        waited = self._random.uniform(200, 3000)
        host.append(
            _span(
                "user_annotation",
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                begin,
                waited,
            )
        )
        self._clock += waited + 20
        for index in range(operators):
            self._operator(host, calls, _OPERATORS[index % len(_OPERATORS)], index)
        self._copy(host, calls)
        self._reduce(calls)
        self._read(host, calls)
        host.insert(0, _span("user_annotation", f"ProfilerStep#{number}", begin, self._clock - begin))
        return host + calls

    def _operator(self, host: list[Event], calls: list[Event], name: str, index: int) -> None:
        number = self._next()
        start, length = self._clock, self._random.uniform(12, 40)
        host.append(_span("cpu_op", f"aten::{name}", start, length, self._args(number)))
        host.append(_span("cpu_op", f"aten::_{name}_impl", start + 2, length - 4, self._args(number + 1)))
        self._number += 1
        kernel = _KERNEL.format(name) if index % 3 else f"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_{name}"
        self._launch(
            calls, start + 4, 5.0, "cudaLaunchKernel", "kernel", kernel, self._random.expovariate(1 / 30)
        )
        self._clock = start + length + self._random.uniform(1, 6)

    def _copy(self, host: list[Event], calls: list[Event]) -> None:
        start, memory = self._clock, self._random.choice(("Pageable", "Pinned"))
        host.append(_span("cpu_op", "aten::copy_", start, 60, self._args(self._next())))
        size = {"bytes": 1 << 20, "memory bandwidth (GB/s)": 10.5}
        name = f"Memcpy HtoD ({memory} -> Device)"
        self._launch(calls, start + 5, 50.0, "cudaMemcpyAsync", "gpu_memcpy", name, 100.0, more=size)
        self._clock = start + 65

    def _reduce(self, calls: list[Event]) -> None:
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
        self._launch(calls, self._clock, 8.0, "cudaLaunchKernelExC", "kernel", name, 150.0, stream=NCCL)
        self._clock += 12

    def _read(self, host: list[Event], calls: list[Event]) -> None:
        number, start = self._next(), self._clock
        end = max(self._free, start + 10) + 8
        host.append(_span("cpu_op", "aten::item", start, end - start + 4, self._args(number)))
        host.append(
            _span("cpu_op", "aten::_local_scalar_dense", start + 1, end - start + 2, self._args(number))
        )
        calls.append(
            _span(
                "cuda_runtime",
                "cudaStreamSynchronize",
                start + 3,
                end - start - 3,
                {"External id": number, "cbid": 131, "correlation": self._next()},
            )
        )
        self._clock = end + 6

    def _launch(
        self,
        calls: list[Event],
        start: float,
        length: float,
        call: str,
        category: str,
        name: str,
        ran: float,
        stream: int = STREAM,
        more: Event | None = None,
    ) -> None:
        correlation = self._next()
        external = {"External id": correlation - 1}
        told = {**external, "cbid": 211, "correlation": correlation}
        calls.append(_span("cuda_runtime", call, start, length, told))
        calls.append(_flow("s", correlation, HOST, HOST, start))
        begins = start + length + 3 if stream == NCCL else max(self._free, start + length + 3)
        if stream != NCCL:
            self._free = begins + ran
        device = {**external, "queued": 0, "device": 0, "context": 1, "stream": stream}
        device |= {"correlation": correlation, **(more or _SHAPE)}
        calls.append({**_span(category, name, begins, ran, device), "pid": 0, "tid": stream})
        calls.append(_flow("f", correlation, 0, stream, begins))

    def _args(self, number: int) -> Event:
        return {
            "External id": number,
            "Sequence number": number,
            "Fwd thread id": 0,
            "Record function id": 0,
            "Ev Idx": number,
        }

    def _next(self) -> int:
        self._number += 1
        return self._number


def _span(category: str, name: str, start: float, length: float, args: Event | None = None) -> Event:
    event: Event = {"ph": "X", "cat": category, "name": name, "pid": HOST, "tid": HOST}
    return {**event, "ts": round(start, 3), "dur": round(length, 3), "args": args or {"Ev Idx": 0}}


def _flow(phase: str, number: int, pid: int, tid: int, start: float) -> Event:
    flow = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": round(start, 3)}
    return {**flow, "cat": "ac2g", "name": "ac2g"}


def training(steps: int, seed: int = 0, operators: int = 60) -> list[Event]:
    """The events of so many steps."""
    made = Training(seed).steps(operators)
    return [event for _ in range(steps) for event in next(made)]


def text(events: Iterable[Event], layout: str = "lines", header: Event | None = None) -> bytes:
    """A trace file's content: `lines` (one event a line), `one` (all on one line) or `pretty`."""
    head = HEADER if header is None else header
    return b"".join(pieces([list(events)], layout, head))


def pieces(groups: Iterable[list[Event]], layout: str, header: Event) -> Iterator[bytes]:
    """A trace in parts, a group of events each, for files larger than the memory."""
    indent = 2 if layout == "pretty" else None
    between = ", " if layout == "one" else ",\n"
    yield (json.dumps(header, indent=indent)[:-1] + ', "traceEvents": [').encode()
    first = True
    for group in groups:
        body = between.join(json.dumps(event, indent=indent) for event in group)
        yield (body if first else between + body).encode()
        first = False
    yield b'], "traceName": "synthetic.json"}'


def write(path: Path, size: int, layout: str = "lines", seed: int = 0) -> int:
    """Write a trace of about `size` bytes; returns the count of its device events."""
    count = device = 0
    made = Training(seed).steps()

    def until() -> Iterator[list[Event]]:
        nonlocal device
        while count < size:
            group = next(made)
            device += sum(event["pid"] == 0 and event["ph"] == "X" for event in group)
            yield group

    with path.open("wb") as f:
        for piece in pieces(until(), layout, HEADER):
            f.write(piece)
            count += len(piece)
    return device


def write_kernels(path: Path, count: int, seed: int = 0) -> None:
    """Write a trace of kernels alone, so many, on two streams and not quite in order, with few letters."""
    made, clock = random.Random(seed), 4411256817600.0
    line = (
        '{{"ph": "X", "cat": "kernel", "name": "k{0}", "pid": 0, "tid": {1}, "ts": {2:.3f}, "dur": {3:.3f}, '
        '"args": {{"device": 0, "stream": {1}, "correlation": {4}}}}}'
    )
    with path.open("w") as f:
        f.write('{"schemaVersion": 1, "traceEvents": [')
        for number in range(count):
            clock += 1 + 9 * made.random()
            stream, late = (NCCL, 60 * made.random()) if number % 9 == 0 else (STREAM, 0.0)
            f.write(",\n" if number else "\n")
            f.write(line.format(number % 40, stream, clock + late, 1 + 8 * made.random(), number + 1))
        f.write("\n]}")


def compressed(data: bytes) -> bytes:
    return gzip.compress(data, 6, mtime=0)


def host(category: str, name: str, start: float, length: float, tid: int = HOST, **args: Any) -> Event:
    """A span of the host: `cpu_op`, `cuda_runtime`, `user_annotation` or `python_function`."""
    return {**_span(category, name, start, length, args), "tid": tid}


def device(
    name: str,
    start: float,
    length: float,
    category: str = "kernel",
    number: int = 0,
    stream: int = STREAM,
    **args: Any,
) -> Event:
    """Work on a device."""
    told = {"device": number, "stream": stream, **args}
    return {**_span(category, name, start, length, told), "pid": number, "tid": stream}


def launched(
    name: str, asked: float, start: float, length: float, correlation: int, **more: Any
) -> list[Event]:
    """A kernel and the call that launched it, 2 microseconds long."""
    call = host("cuda_runtime", "cudaLaunchKernel", asked, 2.0, correlation=correlation)
    return [call, device(name, start, length, correlation=correlation, **more)]


def of_rank(late: float, steps: int = 20) -> list[Event]:
    """A rank whose all-reduces end at 800 us of each 1,000, and begin at 100, or so much later."""
    events: list[Event] = []
    for n in range(steps):
        begin = 1000.0 * n
        events += launched("gemm", begin, begin + 5, 50, 2 * n + 1)
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
        events += launched(name, begin + 50, begin + 100 + late, 700 - late, 2 * n + 2)
    return events
