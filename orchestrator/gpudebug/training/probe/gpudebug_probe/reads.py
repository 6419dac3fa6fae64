"""Reads of tensors that make the training wait, and copies between the host and the device.

Until the device has computed what is read, nothing new is queued.

`x[mask]`, `torch.nonzero(x)` and whatever else PyTorch's own code waits for are not seen. Where the training
runs on the CPU, what would wait on a GPU is counted, and the device says so.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from functools import partial
from importlib import import_module
from time import perf_counter
from types import FrameType
from typing import Any

from .calls import Calls, replace, shared
from .recorder import Recorder

READS = ("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__")
# The others take none.
WITH_ARGUMENTS = ("numpy",)
# (module, class or "", method): what waits for the whole device, a stream or an event.
WAITS = (
    ("cuda", "", "synchronize"),
    ("cuda", "Stream", "synchronize"),
    ("cuda", "Event", "synchronize"),
    ("accelerator", "", "synchronize"),
    ("xpu", "", "synchronize"),
    ("mps", "", "synchronize"),
)
KINDS = ("to", "cpu", "cuda", "copy_")


def install(torch: Any, recorder: Recorder) -> None:
    """Count blocking reads and waits, with the time that they take and the places that make them."""
    calls = shared(torch, recorder)
    for name in READS:
        replace(torch, torch.Tensor, name, partial(_reading, name, calls))
    for module, kind, name in WAITS:
        owner = getattr(torch, module, None)
        owner = getattr(owner, kind, None) if kind else owner
        label = ".".join(filter(None, (module, kind, name)))
        if owner is not None:
            replace(torch, owner, name, partial(_waiting, label, module, calls))
    recorder.before_beat(lambda: _known(recorder))
    _watch_copies(torch, calls)


def _known(recorder: Recorder) -> None:
    """What was never called is known to be 0, where it could have been."""
    if not str(recorder.facts.get("device") or "cpu").startswith("cpu"):
        recorder.counters.setdefault("sync_n", 0)
        recorder.counters.setdefault("sync_s", 0.0)


def _reading(kind: str, calls: Calls, original: Callable[..., Any]) -> Callable[..., Any]:
    recorder, trainers = calls.recorder, calls.trainers
    place_of, count, caller = calls.place, calls.read, sys._getframe
    # Reads an optimizer's steps, on the CPU, for each of its parameters: hundreds a step, none to count.
    steps_read = getattr(
        getattr(import_module("torch.optim.optimizer"), "_get_value", None), "__code__", None
    )

    def counted(self: Any, args: Any, kwargs: Any, frame: FrameType) -> Any:
        try:
            place = place_of(self)
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            recorder.failed(error, "looking at a tensor")
            place = ""
        if not place:
            return original(self, *args, **kwargs)
        begun = perf_counter()
        result = original(self, *args, **kwargs)
        took = perf_counter() - begun
        try:
            count(frame, kind, self, place, took)
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "counting a read")
        return result

    if kind in WITH_ARGUMENTS:

        def read_with(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not recorder.on or recorder.in_loader or get_ident() not in trainers:
                return original(self, *args, **kwargs)
            return counted(self, args, kwargs, caller(1))

        return read_with

    def read(self: Any, /) -> Any:
        if not recorder.on:
            return original(self)
        frame = caller(1)
        if frame.f_code is steps_read or recorder.in_loader or get_ident() not in trainers:
            return original(self)
        return counted(self, (), {}, frame)

    return read


def _waiting(kind: str, device: str, calls: Calls, original: Callable[..., Any]) -> Callable[..., Any]:
    recorder, trainers = calls.recorder, calls.trainers

    def synchronize(*args: Any, **kwargs: Any) -> Any:
        if not recorder.on or get_ident() not in trainers:
            return original(*args, **kwargs)
        begun = perf_counter()
        result = original(*args, **kwargs)
        took = perf_counter() - begun
        try:
            recorder.add("sync_n")
            recorder.add("sync_s", took)
            calls.sites.add(sys._getframe(1), kind, device, took)
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "counting a wait")
        return result

    return synchronize


def _watch_copies(torch: Any, calls: Calls) -> None:
    """Count copies between host and device; if there is no device, `cpu()` as a read alone.

    Time is the calling thread's: a copy that does not wait takes only as long as it takes to queue. A copy to
    the host that waits is a blocking read besides. What is created on the device from a list is not seen.
    """
    copies = _CopyCounter(torch, calls)
    for name in KINDS:
        replace(torch, torch.Tensor, name, partial(_copying, name, copies))
    calls.recorder.before_beat(copies.known)


def _copying(kind: str, copies: _CopyCounter, original: Callable[..., Any]) -> Callable[..., Any]:
    calls = copies.calls
    recorder, trainers = calls.recorder, calls.trainers
    always = kind == "cpu"

    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            not recorder.on
            or (calls.on_cpu and calls.settled and not always)
            or get_ident() not in trainers
            # The loader's copies are copies, but they do not read there.
            or (always and calls.on_cpu and recorder.in_loader)
        ):
            return original(self, *args, **kwargs)
        try:
            place = calls.place(self)
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            recorder.failed(error, "looking at a tensor")
            place = ""
        if not place:
            return original(self, *args, **kwargs)
        begun = perf_counter()
        result = original(self, *args, **kwargs)
        took = perf_counter() - begun
        try:
            if kind == "copy_":
                source = args[0] if args else kwargs.get("other")
                copies.copied(sys._getframe(1), kind, source, self, _waits(args, kwargs), took)
            elif result is not self:
                copies.copied(sys._getframe(1), kind, self, result, _waits(args, kwargs), took)
            elif always and place == "cpu":
                calls.read(sys._getframe(1), kind, self, place, took)
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "counting a copy")
        return result

    return copy


def _waits(args: tuple[Any, ...], kwargs: dict[str, object]) -> bool:
    """Whether a copy was not asked to be `non_blocking`: the first truth value among positional arguments."""
    given = kwargs.get("non_blocking")
    if given is None:
        given = next((value for value in args if value is True or value is False), False)
    return not given


class _CopyCounter:
    """What becomes of a copy once it is made."""

    def __init__(self, torch: Any, calls: Calls) -> None:
        self.calls = calls
        self._torch = torch
        self._tracing = getattr(torch._C, "_get_tracing_state", lambda: None)

    def copied(self, frame: FrameType, kind: str, source: Any, target: Any, waits: bool, took: float) -> None:
        """Count it, if it was one between host and device."""
        calls = self.calls
        here, there = calls.place(source), calls.place(target)
        if not here or not there or (here == "cpu") == (there == "cpu"):
            return
        if there == "cpu":
            self._count("d2h", source, took)
            if waits and not calls.recorder.in_loader:
                calls.read(frame, kind, source, here, took)
        else:
            self._count("h2d", source, took)
            if self._pinned(source):
                calls.recorder.add("h2d_pinned_n")

    def known(self) -> None:
        """What was never copied is known to be 0, if there is a device."""
        facts, counters = self.calls.recorder.facts, self.calls.recorder.counters
        if not str(facts.get("device") or "cpu").startswith("cpu"):
            for name in ("h2d_n", "h2d_bytes", "h2d_s", "h2d_pinned_n", "d2h_n", "d2h_bytes", "d2h_s"):
                counters.setdefault(name, 0)

    def _count(self, way: str, source: Any, took: float) -> None:
        add = self.calls.recorder.add
        add(way + "_n")
        add(way + "_s", took)
        # To ask a traced tensor for its size would enter the trace.
        if source.layout is self._torch.strided and self._tracing() is None:
            add(way + "_bytes", source.numel() * source.element_size())

    def _pinned(self, source: Any) -> bool:
        cuda = self._torch.cuda
        # Asking the driver is not allowed while a graph is captured.
        capturing = getattr(cuda, "is_current_stream_capturing", None)
        if source.layout is not self._torch.strided or (capturing and cuda.is_initialized() and capturing()):
            return False
        return bool(source.is_pinned())
