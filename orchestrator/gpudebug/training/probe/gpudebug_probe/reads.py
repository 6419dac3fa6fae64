"""Reads of tensors that make the training wait: until the device has computed them, nothing new is queued.

`x[mask]`, `torch.nonzero(x)` and whatever else PyTorch's own code waits for are not seen. Where the training
runs on the CPU, what would wait on a GPU is counted, and the device says so.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from .calls import Calls, replace, shared
from .recorder import Recorder

READS = ("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__")
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
    recorder.counters.setdefault("reads_n", 0)
    recorder.counters.setdefault("reads_s", 0.0)
    if not str(recorder.facts.get("device") or "cpu").startswith("cpu"):
        recorder.counters.setdefault("sync_n", 0)
        recorder.counters.setdefault("sync_s", 0.0)


def _reading(kind: str, calls: Calls, original: Callable[..., Any]) -> Callable[..., Any]:
    recorder, inside, trainers = calls.recorder, calls.inside, calls.trainers

    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.on or recorder.in_loader:
            return original(self, *args, **kwargs)
        thread = get_ident()
        if thread in inside or thread not in trainers:
            return original(self, *args, **kwargs)
        frame = sys._getframe(1)
        try:
            place = calls.place(self)
            counts = calls.trained_on(place, frame) and not calls.taken(self)
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            recorder.failed(error, "looking at a tensor")
            counts = False
        if not counts:
            return original(self, *args, **kwargs)
        inside.add(thread)
        begun = perf_counter()
        try:
            result = original(self, *args, **kwargs)
        finally:
            took = perf_counter() - begun
            inside.discard(thread)
        try:
            calls.read(frame, kind, place, took)
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "counting a read")
        return result

    return read


def _waiting(kind: str, device: str, calls: Calls, original: Callable[..., Any]) -> Callable[..., Any]:
    recorder, inside, trainers = calls.recorder, calls.inside, calls.trainers

    def synchronize(*args: Any, **kwargs: Any) -> Any:
        thread = get_ident()
        if not recorder.on or thread in inside or thread not in trainers:
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        inside.add(thread)
        begun = perf_counter()
        try:
            result = original(*args, **kwargs)
        finally:
            took = perf_counter() - begun
            inside.discard(thread)
        try:
            recorder.add("sync_n")
            recorder.add("sync_s", took)
            calls.sites.add(frame, kind, device, took)
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "counting a wait")
        return result

    return synchronize
