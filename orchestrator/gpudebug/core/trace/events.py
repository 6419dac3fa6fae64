"""What is read of an event, and what its category and name say that it is: learnt once a name."""

from __future__ import annotations

import re
from enum import IntEnum

import msgspec

from gpudebug.core.lazy import regex


class Args(msgspec.Struct, gc=False):
    """The arguments that the analysis needs; `external` links a launch to its operator."""

    stream: int | str | None = None
    device: int | str | None = None
    correlation: int | None = None
    bytes: float | str | None = None
    rate: float | str | None = msgspec.field(default=None, name="memory bandwidth (GB/s)")
    external: int | None = msgspec.field(default=None, name="External id")
    external_old: int | None = msgspec.field(default=None, name="external id")


class Event(msgspec.Struct, gc=False):
    """One event; times in microseconds. Only complete events (phase X) have a duration."""

    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    args: Args | None = None


class EventKind(IntEnum):
    """What an event is. The first three run on the device."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    RUNTIME = 3
    OPERATOR = 4
    ANNOTATION = 5
    PYTHON = 6


DEVICE = EventKind.MEMSET

# Categories of Kineto since 2021, with the capital letters of its first traces, and of MTIA.
CATEGORIES: dict[str, int] = {
    "kernel": EventKind.KERNEL,
    "Kernel": EventKind.KERNEL,
    "mtia_ccp_events": EventKind.KERNEL,
    "gpu_memcpy": EventKind.MEMCPY,
    "Memcpy": EventKind.MEMCPY,
    "gpu_memset": EventKind.MEMSET,
    "Memset": EventKind.MEMSET,
    "cuda_runtime": EventKind.RUNTIME,
    "cuda_driver": EventKind.RUNTIME,
    "Runtime": EventKind.RUNTIME,
    "mtia_runtime": EventKind.RUNTIME,
    "xpu_runtime": EventKind.RUNTIME,
    "cpu_op": EventKind.OPERATOR,
    "Operator": EventKind.OPERATOR,
    "user_annotation": EventKind.ANNOTATION,
    "python_function": EventKind.PYTHON,
    "": EventKind.ANNOTATION,
}


class Call(IntEnum):
    """What a runtime call does to the host."""

    OTHER = 0
    LAUNCH = 1
    COPY = 2
    SYNC = 3
    ALLOCATION = 4
    GRAPH = 5


_SYNC = regex(
    r"(cuda|hip|cu)(Device|Stream|Event|Ctx)Synchronize|(cuda|hip)Memcpy(2D|3D|(To|From)Symbol|WithStream|Peer)?$"
    r"|cuMemcpy(HtoD|DtoH|DtoD)(_v2)?$|hipMemcpy(HtoD|DtoH|DtoD)$|synchronize(Stream|Event)?$"
)
_GRAPH = regex(r"(cuda|hip|cu)GraphLaunch")
_COPY = regex(r"(cuda|hip|cu)Mem(cpy|set)")
_LAUNCH = regex(r"Launch|^runFunction|^enqueueCommand")
_ALLOCATION = regex(
    r"(cuda|hip)(Malloc|Free|Host(Alloc|Register|Unregister|Malloc|Free))|cuMem(Alloc|Free|Create|Release|Map|Unmap|"
    r"AddressReserve|SetAccess|HostAlloc|HostRegister)"
)
_LOADER = regex(r"DataLoader\w*(Iter)?\.__next__|utils/data/dataloader\.py\(\d+\): (__next__|_next_data)$")
_READS = regex(r"aten::(item|_local_scalar_dense|is_nonzero|nonzero|equal)$")
# What may hold a synchronising call: its stack is kept.
_HOLDERS = regex(
    r"aten::(copy_|_to_copy|to|nonzero|masked_select|_unique2?|unique_dim|unique_consecutive|index|repeat_interleave)$"
    r"|: (synchronize|item|tolist|cpu|numpy|__bool__|__float__|__int__|__index__|record|wait|cuda|to)\b"
    r"|\b(synchronize|item|tolist|cpu|numpy)>?$"
)
_COMMUNICATION = regex(r"^(nccl|rccl|hccl|msccl)|nccl(Dev)?Kernel", re.IGNORECASE)
_TRANSFER = regex(r"(hip)?Mem(cpy|set)|dma")
_OWN = regex(r"gpudebug_probe[/\\][^/\\]+\.py\(\d+\): ")
_STEP = regex(r"ProfilerStep\s?#(\d+)")


def call_of(name: str) -> Call:
    """Return the class of a runtime or driver call by its name, of CUDA and of HIP."""
    if _SYNC.match(name):
        return Call.SYNC
    if _GRAPH.match(name):
        return Call.GRAPH
    if _LAUNCH.search(name):
        return Call.LAUNCH
    if _COPY.match(name):
        return Call.COPY
    return Call.ALLOCATION if _ALLOCATION.match(name) else Call.OTHER


def is_loader(name: str) -> bool:
    """A span in which the training waits for its data loader."""
    return _LOADER.search(name) is not None


def is_read(name: str) -> bool:
    """An operator that brings a value of the device to the host and waits for it."""
    return _READS.match(name) is not None


def holds_sync(name: str) -> bool:
    """An operator or Python function that may call a synchronising function."""
    return is_read(name) or _HOLDERS.search(name) is not None


def is_communication(name: str) -> bool:
    """A kernel that talks to other devices: NCCL and its kin."""
    return _COMMUNICATION.search(name) is not None


def is_transfer(name: str) -> bool:
    """Work on the device that only moves or fills memory, where its category does not say so."""
    return _TRANSFER.match(name) is not None


def is_own(name: str) -> bool:
    """A Python function of gpudebug's own probe, around those that it counts."""
    return _OWN.search(name) is not None


def step_of(name: str) -> int | None:
    """Return the number of `ProfilerStep#5`."""
    found = _STEP.match(name)
    return int(found.group(1)) if found else None


def copy_of(name: str) -> tuple[str, str | None]:
    """`("HtoD", "pinned")` of `Memcpy HtoD (Pinned -> Device)`; None if it names no host memory."""
    if "emset" in name:
        return "Memset", None
    found = re.search(r"(?:Copy)?(H|Host|D|Device|P|Peer)(?:to|To)(H|Host|D|Device|P|Peer)", name)
    kind = f"{found.group(1)[0]}to{found.group(2)[0]}" if found else "other"
    memory = re.search(r"Pinned|Pageable", name)
    return kind, memory.group(0).lower() if memory else None


# Beyond this a new name is counted under OTHER (numbers of names are kept in 16 bits); a kernel's name may
# have a thousand letters.
LIMIT = 20_000
_LONGEST = 2_000
# In "<built-in method item of Tensor object at 0x7f1b>": each tensor would be a name of its own.
_ADDRESS = regex(r"( object)? at 0x[0-9a-fA-F]+")
OTHER = 0

LOADER, READ, HOLDER, COMMUNICATION, TRANSFER, OWN = 1, 2, 4, 8, 16, 32


class Names:
    """`ids[name]` is a name's number, `texts` the way back; `flags` and `calls` say what it means."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.ids: dict[str, int] = {}
        self.texts = ["(other names)"]
        self.flags = [0]
        self.calls = [Call.OTHER]
        self._limit = limit

    def add(self, name: str) -> int:
        """The number of a name that `ids` does not hold yet; the address of an object is no part of it."""
        if " at 0x" in name:
            name = _ADDRESS.sub("", name)
            known = self.ids.get(name)
            if known is not None:
                return known
        if len(self.texts) >= self._limit:
            return OTHER
        number = len(self.texts)
        self.ids[name] = number
        self.texts.append(name[:_LONGEST])
        self.calls.append(call_of(name))
        self.flags.append(
            LOADER * is_loader(name)
            | READ * is_read(name)
            | HOLDER * holds_sync(name)
            | COMMUNICATION * is_communication(name)
            | TRANSFER * is_transfer(name)
            | OWN * is_own(name)
        )
        return number

    @property
    def full(self) -> bool:
        return len(self.texts) >= self._limit
