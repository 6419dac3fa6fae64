"""Reads of tensors that make the training wait: until the device has computed them, nothing new is queued.

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
