"""In what state the training is, from its device to its threads, and what the process itself spends.

Facts are refreshed with each beat. What PyTorch does not tell, or not in this version, is absent.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from .calls import Calls, hide_all, replace, shared
from .raised import give_back
from .recorder import Recorder

# Modules of one forward that are asked whether mixed precision is on there.
MOST_LOOKS = 64
MB = 1 << 20


def install(torch: Any, recorder: Recorder) -> None:
    """Tell the state of the training."""
    state = _TorchState(torch, shared(torch, recorder))
    for owner in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
        scaler = getattr(owner, "GradScaler", None)
        if scaler is not None and replace(torch, scaler, "update", state.scaling):
            break
    hide_all(torch)
    recorder.on_begin(lambda: hide_all(torch))
    _watch_process(recorder)


class _TorchState:
    """Looks, and remembers what was seen only at times."""

    def __init__(self, torch: Any, calls: Calls) -> None:
        self._torch = torch
        self._calls = calls
        self._recorder = calls.recorder
        self._amp: dict[str, Any] = {}
        self._looks = MOST_LOOKS
        self._peaks: dict[str, float] = {}
        calls.looks.append(self.look)
        calls.stepping.append(self.stepping)
        self._first: float | None = None
        self._device_known = False
        self._recorder.on_begin(self._anew)
        self._recorder.on_step(self._stepped)
        self._recorder.before_beat(self._tell)

    def _anew(self) -> None:
        self._amp.clear()
        self._peaks.clear()
        self._looks = MOST_LOOKS
        self._first = None
        self._device_known = False

    def _stepped(self, steps: int) -> None:
        if steps == 1:
            # What was seen of the first iteration need not be all of it.
            self._first = self._recorder.counters.get("backward_n", 0)

    def stepping(self, optimizer: Any) -> None:
        """The training's device is that of an optimizer's first parameter; a GPU goes before the CPU."""
        calls = self._calls
        if self._device_known:
            return
        try:
            parameter = optimizer.param_groups[0]["params"][0]
            place = calls.place(parameter) or str(parameter.device)
            if place == "cpu" and self._cuda_holds():
                # Parameters that were moved to the host, but are computed with on the GPU.
                place = "cuda:" + str(self._torch.cuda.current_device())
            calls.on_cpu, calls.settled, self._device_known = place == "cpu", True, True
            self._recorder.facts["device"] = place
            self._recorder.facts["parameter_dtype"] = _name(parameter.dtype)
        except (AttributeError, IndexError, KeyError, TypeError, RuntimeError):
            # An optimizer of another make: the first beat reports what it can.
            pass

    def look(self) -> bool:
        """Within a forward: whether mixed precision is on. True once it is known or not worth more."""
        self._looks -= 1
        try:
            kind = "cpu" if self._calls.on_cpu else "cuda"
            dtype = self._autocast(kind)
            if dtype is not None:
                self._amp.update(enabled=True, dtype=dtype)
                return True
            self._amp.setdefault("enabled", False)
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            self._recorder.failed(error, "looking at mixed precision")
        return self._looks <= 0

    def scaling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Around GradScaler.update: a scaler is in use if it is enabled."""

        def update(self: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.on and not amp.get("grad_scaler"):
                try:
                    amp["grad_scaler"] = bool(self.is_enabled())
                except Exception as error:  # noqa: BLE001
                    recorder.failed(error, "looking at a scaler")
            return original(self, *args, **kwargs)

        recorder, amp = self._recorder, self._amp
        return update

    def _autocast(self, kind: str) -> str | None:
        torch = self._torch
        if hasattr(torch, "get_autocast_dtype"):
            return _name(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else None
        if kind == "cuda" and torch.is_autocast_enabled():
            get = getattr(torch, "get_autocast_gpu_dtype", None)
            return _name(get()) if get else "float16"
        if kind == "cpu" and getattr(torch, "is_autocast_cpu_enabled", bool)():
            return _name(torch.get_autocast_cpu_dtype())
        return None

    def _tell(self) -> None:
        facts = self._recorder.facts
        # Another optimizer may be the one on the GPU.
        self._device_known = self._calls.settled and not self._calls.on_cpu
        self._looks = MOST_LOOKS
        if not self._calls.settled:
            used = self._torch.cuda.is_initialized()
            facts["device"] = "cuda:" + str(self._torch.cuda.current_device()) if used else "cpu"
        # On a GPU the host only queues the work: what it takes there is another thing.
        facts["phases"] = "host" if facts["device"] == "cpu" else "launch"
        if self._amp:
            facts["amp"] = dict(self._amp)
        facts["compile"] = self._compiled()
        # A process group is taken apart before the end.
        facts["distributed"] = self._distributed() or facts.get("distributed")
        for name, source in _FACTS.items():
            with contextlib.suppress(AttributeError, RuntimeError):
                facts[name] = source(self._torch)
        if self._first is not None and self._recorder.steps > 1:
            backwards = self._recorder.counters.get("backward_n", 0) - self._first
            facts["backwards_per_step"] = round(backwards / (self._recorder.steps - 1), 2)
        if facts["device"].startswith("cuda"):
            self._memory(facts["device"])

    def _compiled(self) -> dict[str, int] | None:
        """Return what torch.compile has done; None if it is not in use. Nothing is imported for it."""
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None) or {}
        frames = (counters.get("frames") or {}).get("ok", 0)
        if not frames:
            return None
        graphs = (counters.get("stats") or {}).get("unique_graphs", 0)
        breaks = sum((counters.get("graph_break") or {}).values())
        return {"frames": frames, "graphs": graphs, "graph_breaks": breaks}

    def _distributed(self) -> dict[str, object] | None:
        distributed = getattr(self._torch, "distributed", None)
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return {"backend": str(distributed.get_backend()), "world_size": distributed.get_world_size()}

    def _cuda_holds(self) -> bool:
        cuda = self._torch.cuda
        return bool(cuda.is_initialized() and cuda.memory_allocated() > 0)

    def _memory(self, device: str) -> None:
        """The allocator's counts; its peaks may be set back by the training, these are not."""
        if not self._torch.cuda.is_initialized():
            return
        # PyTorch before 2.4 does not know it.
        uuid = getattr(self._torch.cuda.get_device_properties(device), "uuid", None)
        if uuid is not None:
            self._recorder.facts["device_uuid"] = str(uuid)
        stats = self._torch.cuda.memory_stats(device)
        if "num_alloc_retries" in stats:
            self._recorder.counters["alloc_retries"] = stats["num_alloc_retries"]
        for name, key in (("peak_device_mb", "allocated"), ("peak_device_reserved_mb", "reserved")):
            peak = stats.get(key + "_bytes.all.peak")
            if peak is not None:
                self._peaks[name] = max(self._peaks.get(name, 0.0), round(peak / MB, 1))
        self._recorder.facts.update(self._peaks)


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


_FACTS: dict[str, Callable[[Any], Any]] = {
    "cudnn_benchmark": lambda torch: torch._C._get_cudnn_benchmark(),
    "cudnn_deterministic": lambda torch: torch._C._get_cudnn_deterministic(),
    "deterministic": lambda torch: torch.are_deterministic_algorithms_enabled(),
    "matmul_precision": lambda torch: torch.get_float32_matmul_precision(),
    "anomaly": lambda torch: torch.is_anomaly_enabled(),
    "threads": lambda torch: torch.get_num_threads(),
    "interop_threads": lambda torch: torch.get_num_interop_threads(),
    "launch_blocking": lambda torch: os.environ.get("CUDA_LAUNCH_BLOCKING") == "1",
}


def _watch_process(recorder: Recorder) -> None:
    """Time every garbage collection; read what the process itself spends when a beat is written."""
    began = 0.0

    def collecting(phase: str, info: dict[str, int]) -> None:
        # Called inside whatever allocates: nothing here may fail or allocate much.
        nonlocal began
        if not recorder.on:
            return
        if phase == "start":
            began = time.monotonic()
        elif began:
            counters = recorder.counters
            counters["gc_n"] = counters.get("gc_n", 0) + 1
            counters["gc_s"] = counters.get("gc_s", 0.0) + time.monotonic() - began
            began = 0.0

    def begin() -> None:
        recorder.counters["gc_n"] = recorder.counters["gc_s"] = 0
        if collecting not in gc.callbacks:
            gc.callbacks.append(collecting)
            give_back(collecting)

    def refresh() -> None:
        recorder.counters["cpu_s"] = time.process_time()
        recorder.facts["cpus"] = (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        )
        recorder.facts["peak_host_mb"] = round(_peak_host_kb() / 1024, 1)

    recorder.on_begin(begin)
    recorder.before_beat(refresh)


def _peak_host_kb() -> int:
    """The most memory that this process had resident; getrusage's may be that of the program before it."""
    try:
        with open("/proc/self/status", "rb") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(b"VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
