"""Ends of iterations, seen by the optimizers that step.

An iteration is one step of the optimizer that steps most often; of those that step equally often, the one
that was seen first. That is the leading one: another that steps twice while it steps not once takes the
lead, and so does the next one to step where it is gone. Where none was made, as by a program that moves its
weights itself, each backward ends an iteration.
"""

from __future__ import annotations

import functools
import sys
import weakref
from _thread import get_ident
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .recorder import Recorder

# Optimizers that are counted at the same time, and reported.
MOST = 64
# A step inside a step of the same optimizer (`super().step()`) is found at most that many calls above it.
DEEPEST = 12


def install(torch: Any, recorder: Recorder) -> None:
    """Count the steps of every optimizer."""
    steps = _Optimizers(recorder)
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not (recorder.on or recorder.begin()):
            return
        try:
            steps.count(optimizer)
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            recorder.failed(error, "counting a step")

    # `torch.optim.optimizer` is not an attribute everywhere.
    module = import_module("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is None:
        _wrap_each_class(module.Optimizer, stepped)
        return

    compiled = Compiled()

    def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
        if compiling():
            # All that torch.compile can trace of us without breaking its graph; seen at the next fetch.
            compiled.stepped = True
        elif not (steps.may_nest(optimizer) and _inside_its_own_step(optimizer)):
            stepped(optimizer, args, kwargs)

    def fetched() -> None:
        if compiled.stepped:
            compiled.stepped = False
            stepped(compiled, (), {})

    def went_back() -> None:
        if not steps.made(module.Optimizer) and (recorder.on or recorder.begin()):
            recorder.iteration()

    register(hook)
    recorder.on_fetch(fetched)
    recorder.on_backward(went_back)


class Compiled:
    """Represents the optimizers whose steps torch.compile has compiled."""

    stepped = False


class _Optimizer:
    """One that stepped: `seen` is the count of iterations when it did last."""

    def __init__(self, index: int, gone: Any) -> None:
        self.index = index
        self.gone = gone
        self.steps = 0
        self.seen = -1


class _Optimizers:
    """Which optimizers there are, and which one ends iterations. Keeps none of them alive."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._anew()
        recorder.on_begin(self._anew)
        recorder.before_beat(self._tell)

    def _anew(self) -> None:
        self._known: dict[int, _Optimizer] = {}
        self._names: list[str] = []
        self._weights: list[int | None] = []
        self._seen = 0
        self._leading: _Optimizer | None = None
        self._kinds: set[type] = set()
        self._nesting = False

    def may_nest(self, optimizer: Any) -> bool:
        """Tell whether a step of it may be inside another one of it."""
        return self._nesting or type(optimizer) not in self._kinds

    def made(self, base: type) -> bool:
        """Tell whether there is an optimizer, or was one."""
        kinds = [base] if self._leading is None else []
        for kind in kinds:
            if _hooked(kind):
                return True
            kinds += kind.__subclasses__()
        return self._leading is not None

    def count(self, optimizer: Any) -> None:
        """One step of it."""
        entry = self._known.get(id(optimizer)) or self._enter(optimizer)
        if entry is None:
            return
        entry.steps += 1
        if entry.index < MOST:
            self._recorder.optimizers[entry.index] = entry.steps
        leading = self._leading
        if (
            leading is None
            or entry is leading
            or entry.seen == self._recorder.steps
            or leading.gone() is None
        ):
            self._leading = entry
            entry.seen = self._recorder.steps + 1
            self._recorder.iteration()
        else:
            entry.seen = self._recorder.steps

    def _enter(self, optimizer: Any) -> _Optimizer | None:
        if len(self._known) >= MOST:
            return None
        known, key = self._known, id(optimizer)
        entry = _Optimizer(self._seen, weakref.ref(optimizer, lambda _: known.pop(key, None)))
        known[key] = entry
        self._seen += 1
        if len(self._kinds) < MOST:
            self._kinds.add(type(optimizer))
        self._look()
        if entry.index < MOST:
            self._names.append(type(optimizer).__name__)
            self._weights.append(_weights(optimizer))
        return entry

    def _look(self) -> None:
        self._nesting = any(sum(map(_hooked, kind.__mro__)) > 1 for kind in self._kinds)

    def _tell(self) -> None:
        self._look()
        self._recorder.facts["optimizers"] = [
            {"index": index, "name": self._names[index], "steps": steps, "weights": self._weights[index]}
            for index, steps in self._recorder.optimizers.items()
        ]


def _hooked(kind: type) -> bool:
    """PyTorch wraps `step` of a class once an optimizer of it is made, and marks it as hooked."""
    return hasattr(vars(kind).get("step"), "hooked")


def _weights(optimizer: Any) -> int | None:
    """Return how many numbers a step of it trains; None of an optimizer of another make."""
    try:
        groups = optimizer.param_groups
        return sum(int(one.numel()) for group in groups for one in group["params"] if one.requires_grad)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError):
        # One that compiled code steps has none, one of lazy modules does not know them yet.
        return None


def _inside_its_own_step(optimizer: Any) -> bool:
    """Tell whether a step of the same optimizer waits for this one: a class that calls `super().step()`."""
    # The hook's caller is the function that torch puts around each class's step.
    around = sys._getframe(1).f_back
    frame = around
    for _ in range(DEEPEST):
        frame = frame and frame.f_back
        if frame is None or around is None:
            return False
        if frame.f_code is around.f_code and frame.f_locals.get("self") is optimizer:
            return True
    return False


def _wrap_each_class(base: Any, stepped: Callable[[Any, Any, Any], None]) -> None:
    """For a PyTorch without such hooks: wrap `step` of each class of which an optimizer is made."""
    original = base.__init__
    inside: set[tuple[int, int]] = set()

    def wrap(step: Any) -> Any:
        @functools.wraps(step)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            key = get_ident(), id(self)
            if key in inside:
                return step(self, *args, **kwargs)
            inside.add(key)
            try:
                result = step(self, *args, **kwargs)
            finally:
                inside.discard(key)
            stepped(self, args, kwargs)
            return result

        wrapper.gpudebug_probe = True  # type: ignore[attr-defined]
        return wrapper

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        step = type(self).step
        if not getattr(step, "gpudebug_probe", False):
            type(self).step = wrap(step)

    base.__init__ = __init__
