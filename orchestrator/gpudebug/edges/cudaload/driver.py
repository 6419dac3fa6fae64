"""CUDA's driver API by ctypes: what is needed to keep a GPU busy for a known time.

Loaded in a process of its own: a driver may hang or crash whoever calls it.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import NamedTuple

LIBRARY = "libcuda.so.1"
# CUdevice_attribute, CUctx_flags and CUjit_option of cuda.h.
_SM_COUNT, _MAJOR, _MINOR = 16, 75, 76
_BLOCKING_SYNC = 4
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
_LOG_BYTES = 4096
_NO_DEVICE = 100
# Names of CUDA 11 and what older drivers export in their place, with the same arguments.
_RENAMED = {
    "cuDevicePrimaryCtxSetFlags_v2": "cuDevicePrimaryCtxSetFlags",
    "cuDevicePrimaryCtxRelease_v2": "cuDevicePrimaryCtxRelease",
    "cuDeviceGetUuid_v2": "cuDeviceGetUuid",
}
# Architectures with the PTX version that knows them first (PTX ISA, release notes). The driver compiles PTX
# for an older architecture on a newer GPU, so the newest here that is not newer than the GPU is taken.
_TARGETS = ((50, "4.0"), (60, "5.0"), (70, "6.0"), (75, "6.3"), (80, "7.0"), (90, "7.8"))
# So many turns end a kernel whose clock stands still: seconds at the least, where milliseconds are asked for.
_MOST_TURNS = 100_000_000
_CHAINS = 8
_FMAS = 64
WORK_THREADS = 256
WORK_BLOCKS_PER_SM = 2
"""All blocks of the working grid are resident at once, so that they end together."""


class CudaError(Exception):
    """A call that failed: `call` is its name, `code` CUDA's number, `text` the name of that."""

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call}: {text} (CUDA error {code})")
        self.code = code
        self.text = text

    @property
    def no_device(self) -> bool:
        return self.code == _NO_DEVICE


class Copied(NamedTuple):
    """Seconds that pinned memory took to the GPU and back, by the host's clock, and if all was the same."""

    to_s: float
    back_s: float
    same: bool


class Cuda:
    """The driver, initialised. OSError if its library cannot be loaded, CudaError if it does not start."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self("cuInit", c_uint(0))

    def __call__(self, name: str, *arguments: object) -> None:
        """Call a function of the driver by its exported name. CudaError if it fails or is missing."""
        function = getattr(self._library, name, None) or getattr(
            self._library, _RENAMED.get(name, name), None
        )
        if function is None:
            raise CudaError(name, 0, "the driver has no such function")
        code = function(*arguments)
        if code:
            raise CudaError(name, code, self._name_of(code))

    def _name_of(self, code: int) -> str:
        text = c_char_p()
        self._library.cuGetErrorName(c_int(code), byref(text))
        return (text.value or b"unknown").decode("ascii", "replace")

    def version(self) -> int:
        """Return the CUDA version of the driver: 12040 is 12.4."""
        return self.number("cuDriverGetVersion")

    def number(self, name: str, *arguments: object) -> int:
        found = c_int()
        self(name, byref(found), *arguments)
        return found.value

    def devices(self) -> list[CudaDevice]:
        """Return the GPUs that this process sees, in CUDA's order."""
        return [CudaDevice(self, i) for i in range(self.number("cuDeviceGetCount"))]


class CudaDevice:
    """One GPU as CUDA counts it; nothing is put on it before `open`."""

    def __init__(self, cuda: Cuda, ordinal: int) -> None:
        self._cuda = cuda
        self._device = c_int(cuda.number("cuDeviceGet", c_int(ordinal)))
        self.uuid = self._uuid()

    def _uuid(self) -> str:
        """32 hexadecimal digits; of a MIG device its own, which only the newer call gives."""
        found = (ctypes.c_ubyte * 16)()
        self._cuda("cuDeviceGetUuid_v2", byref(found), self._device)
        return bytes(found).hex()

    def open(self) -> None:
        """Make a context whose waits sleep, and compile the kernels. CudaError with the compiler's words."""
        cuda = self._cuda
        cuda("cuDevicePrimaryCtxSetFlags_v2", self._device, c_uint(_BLOCKING_SYNC))
        self._context = c_void_p()
        cuda("cuDevicePrimaryCtxRetain", byref(self._context), self._device)
        self.use()
        sms, major, minor = (
            cuda.number("cuDeviceGetAttribute", c_int(which), self._device)
            for which in (_SM_COUNT, _MAJOR, _MINOR)
        )
        module = self._compiled(ptx(major, minor))
        self._grids = {"spin": (1, 1), "work": (sms * WORK_BLOCKS_PER_SM, WORK_THREADS)}
        self._kernels = {name: c_void_p() for name in self._grids}
        for name, kernel in self._kernels.items():
            cuda("cuModuleGetFunction", byref(kernel), module, name.encode())
        self._out = self.allocate(4)
        self._events = (c_void_p(), c_void_p())
        for event in self._events:
            cuda("cuEventCreate", byref(event), c_uint(0))

    def close(self) -> None:
        self._cuda("cuDevicePrimaryCtxRelease_v2", self._device)

    def use(self) -> None:
        """Let the calling thread's calls be about this GPU."""
        self._cuda("cuCtxSetCurrent", self._context)

    def _compiled(self, text: str) -> c_void_p:
        module, log = c_void_p(), ctypes.create_string_buffer(_LOG_BYTES)
        options = (c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        try:
            self._cuda(
                "cuModuleLoadDataEx", byref(module), c_char_p(text.encode()), c_uint(2), options, values
            )
        except CudaError as error:
            said = log.value.decode("ascii", "replace").strip().replace("\n", "; ")
            raise CudaError("cuModuleLoadDataEx", error.code, said or error.text) from None
        return module

    def run(self, kernel: str, seconds: float) -> float:
        """Run a kernel for about so long and wait for it; how long it took by the GPU's events, in s."""
        cuda, (first, last) = self._cuda, self._events
        blocks, threads = self._grids[kernel]
        length = c_uint64(int(seconds * 1e9))
        parameters = (c_void_p * 2)(ctypes.addressof(length), ctypes.addressof(self._out))
        one, none = c_uint(1), c_void_p()
        cuda("cuEventRecord", first, none)
        grid = (c_uint(blocks), one, one, c_uint(threads), one, one)
        cuda("cuLaunchKernel", self._kernels[kernel], *grid, c_uint(0), none, parameters, none)
        cuda("cuEventRecord", last, none)
        cuda("cuCtxSynchronize")
        took = c_float()
        cuda("cuEventElapsedTime", byref(took), first, last)
        return took.value / 1e3

    def allocate(self, size: int) -> c_uint64:
        memory = c_uint64()
        self._cuda("cuMemAlloc_v2", byref(memory), c_size_t(size))
        return memory

    def free(self, memory: c_uint64) -> None:
        self._cuda("cuMemFree_v2", memory)

    def copy(self, pattern: bytes, times: int) -> Copied:
        """Copy `pattern`, `times` over, from pinned memory to the GPU and back to other pinned memory."""
        size = c_size_t(len(pattern) * times)
        there, back = c_void_p(), c_void_p()
        for memory in (there, back):
            self._cuda("cuMemAllocHost_v2", byref(memory), size)
        assert there.value is not None and back.value is not None
        for i in range(times):
            ctypes.memmove(there.value + i * len(pattern), pattern, len(pattern))
        device = self.allocate(size.value)
        moments = [time.perf_counter()]
        self._cuda("cuMemcpyHtoD_v2", device, there, size)
        self._cuda("cuCtxSynchronize")
        moments.append(time.perf_counter())
        self._cuda("cuMemcpyDtoH_v2", back, device, size)
        moments.append(time.perf_counter())
        parts = range(back.value, back.value + size.value, len(pattern))
        same = all(ctypes.string_at(part, len(pattern)) == pattern for part in parts)
        self.free(device)
        for memory in (there, back):
            self._cuda("cuMemFreeHost", memory)
        return Copied(moments[1] - moments[0], moments[2] - moments[1], same)


def ptx(major: int, minor: int) -> str:
    """The module for a GPU of this compute capability: entries `spin` and `work`, each (u64 ns, u64 address).

    A kernel runs for `ns` nanoseconds of %globaltimer. `address` is memory for a float that is never
    written: it keeps the compiler from dropping the work.
    """
    target, version = next(((t, v) for t, v in reversed(_TARGETS) if t <= 10 * major + minor), _TARGETS[0])
    head = (f".version {version}", f".target sm_{target}", ".address_size 64")
    return "\n".join((*head, *_entry("spin", (), ()), *_entry("work", _chains(), _never()))) + "\n"


def _entry(name: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
    """One kernel: `before` prepares registers, each turn works on them, `after` uses what came of it."""
    turn = [f"fma.rn.f32 %x{i % _CHAINS}, %x{i % _CHAINS}, %a, %b;" for i in range(_CHAINS * _FMAS)]
    return [
        f".visible .entry {name}(.param .u64 {name}_ns, .param .u64 {name}_out)",
        "{",
        ".reg .pred %more, %never;",
        ".reg .u64 %ns, %out, %start, %now;",
        ".reg .u32 %turns, %me;",
        f".reg .f32 %x<{_CHAINS}>, %a, %b;",
        f"ld.param.u64 %ns, [{name}_ns];",
        f"ld.param.u64 %out, [{name}_out];",
        *before,
        "mov.u32 %turns, 0;",
        "mov.u64 %start, %globaltimer;",
        f"{name}_turn:",
        *(turn if before else ()),
        "add.u32 %turns, %turns, 1;",
        "mov.u64 %now, %globaltimer;",
        "sub.u64 %now, %now, %start;",
        "setp.lt.u64 %more, %now, %ns;",
        f"setp.lt.and.u32 %more, %turns, {_MOST_TURNS}, %more;",
        f"@%more bra {name}_turn;",
        *after,
        "ret;",
        "}",
    ]


def _chains() -> list[str]:
    first = ["mov.u32 %me, %tid.x;", "cvt.rn.f32.u32 %x0, %me;"]
    rest = [f"add.f32 %x{i}, %x{i - 1}, 0f3F800000;" for i in range(1, _CHAINS)]
    # x becomes x * 0.99999994 + 0.001, which stays finite however often.
    return [*first, *rest, "mov.f32 %a, 0f3F7FFFFF;", "mov.f32 %b, 0f3A83126F;"]


def _never() -> list[str]:
    sums = [f"add.f32 %x0, %x0, %x{i};" for i in range(1, _CHAINS)]
    store = ["cvta.to.global.u64 %out, %out;", "@%never st.global.f32 [%out], %x0;"]
    return [*sums, "setp.eq.f32 %never, %x0, 0fFF800000;", *store]
