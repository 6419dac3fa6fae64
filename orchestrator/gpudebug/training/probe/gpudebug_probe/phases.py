"""How long an iteration's forward, backward and optimizer step keep the thread that trains.

forward: the outermost calls of modules while gradients are recorded, the loss's module included, but for
those of an evaluation. backward: `backward()` and `torch.autograd.grad` outside of a forward. optimizer:
`step()` without what its closure computes. On a GPU this is the time it takes to queue the work, and to
wait where the work is read.

Of each backward, the elements that its first forward was given are counted, too: what a step takes in,
whatever the program prints of it, and whether or not a loader feeds it. Forwards without gradients that carry
less than half as many rows as training's are counted with their time and their rows: a policy acts in such.
Those that follow an evaluation's batch are not: a metric is a module, too, and is given a part of a batch.
Of some forwards, how much of that reaches parameters is looked at, too: see `reached`.
"""

from __future__ import annotations

import os
from _thread import get_ident
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from time import perf_counter
from typing import Any

from .calls import Calls, replace, shared
from .loader import elements, largest, rows_of
from .recorder import RARE, Recorder

# A forward without gradients of so many times fewer rows than training's is none of a batch of it.
FEWER = 2
# Nested steps, and those that an exception ended, which look alike.
DEEPEST = 8
# Forwards are looked at after so many first beats, then after every RARE-th, and no more than MOST in all.
FIRST = 4
MOST = 50


def install(torch: Any, recorder: Recorder) -> None:
    """Time forward, backward and the optimizer's step, each where PyTorch lets it be seen."""
    calls = shared(torch, recorder)
    phases = _Phases(torch, calls)
    replace(torch, torch.nn.Module, "__call__", lambda original: _calling(original, phases))
    engine = "_engine_run_backward"
    # Before PyTorch 2.2 there is no such function: then `loss.backward()` alone is seen.
    if not replace(torch, torch.autograd, engine, lambda original: _backward(original, phases, True)):
        replace(torch, torch.Tensor, "backward", lambda original: _backward(original, phases, False))
    _OptimizerTime(torch, phases).install()


class _Phases:
    """`within`: the thread is inside a forward or a backward, so that no other one begins."""

    def __init__(self, torch: Any, calls: Calls) -> None:
        self.calls = calls
        self.recorder = calls.recorder
        self.reached = Reached(torch, calls.recorder)
        self.grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        self.within: set[int] = set()
        # Set when the next forward is to be looked at, the modules inside it included.
        self.look = False
        # Elements of the largest tensor that the first forward since the last backward was given.
        self.given = 0
        # Rows of what the first forward of the last backward was given.
        self.rows = 0
        # Batches that evaluations had fetched by then.
        self.evaluated = 0.0
        self._torch = torch
        self.recorder.on_begin(self._anew)
        self.recorder.before_beat(self._known)

    def _anew(self) -> None:
        self.within.clear()
        self.look = True
        self.given = self.rows = 0
        self.evaluated = 0.0

    def _known(self) -> None:
        self.look = True

    def spent(self) -> float:
        """Seconds of all phases so far."""
        get = self.recorder.counters.get
        return get("forward_s", 0.0) + get("backward_s", 0.0) + get("optimizer_s", 0.0)

    def add(self, name: str, more: float) -> None:
        counters = self.recorder.counters
        counters[name] = counters.get(name, 0.0) + more

    def forwarded(self, args: Any, kwargs: Any, took: float, counts: bool) -> None:
        """A forward took so long; `counts`: one of training's."""
        if not counts:
            self._acted(args, kwargs, took)
            return
        self.add("forward_s", took)
        if not self.given:
            self._feed(args, kwargs)

    def _feed(self, args: Any, kwargs: Any) -> None:
        self.given = largest(self._torch, (args, kwargs))
        self.rows = rows_of(self._torch, args, kwargs) or self.rows

    def _acted(self, args: Any, kwargs: Any, took: float) -> None:
        if self.recorder.counters.get("eval_data_n", 0.0) != self.evaluated:
            return
        rows = rows_of(self._torch, args, kwargs)
        if rows and rows * FEWER <= self.rows:
            self.add("acts_n", 1)
            self.add("acts_s", took)
            self.add("acts_rows_n", rows)

    def fed(self) -> None:
        """Count what the backward that has ended took in."""
        self.evaluated = self.recorder.counters.get("eval_data_n", 0.0)
        if self.given:
            self.add("inputs_n", self.given)
            self.given = 0
        if self.rows:
            self.add("rows_n", self.rows)


def _calling(original: Callable[..., Any], phases: _Phases) -> Callable[..., Any]:
    """Module.__call__, of which a step makes hundreds: all but the outermost do next to nothing."""
    recorder, calls, within = phases.recorder, phases.calls, phases.within
    trainers, reached = calls.trainers, phases.reached
    # Whether calls are only passed on: no training here, which the first call of all reports to the recorder,
    # or this is a module's inside another's.
    passing = False
    looking = False

    def wake() -> None:
        nonlocal passing, looking
        passing, looking = False, False

    def listen() -> None:
        nonlocal passing
        passing = False

    def seen_enough() -> bool:
        return all(look() for look in phases.calls.looks)

    recorder.on_begin(wake)
    recorder.listen = listen
    os.register_at_fork(after_in_child=listen)

    def outermost(self: Any, args: Any, kwargs: Any) -> Any:
        nonlocal passing, looking
        if not recorder.on:
            passing = True
            recorder.called()
            return original(self, *args, **kwargs)
        thread = get_ident()
        if thread not in trainers or recorder.in_loader:
            return original(self, *args, **kwargs)
        if looking:
            if seen_enough() and reached.thread is None:
                looking, passing = False, True
            return reached.through(thread, original, self, args, kwargs)
        if thread in within:
            return original(self, *args, **kwargs)
        counts = calls.called(self, phases.grad_enabled())
        if counts and phases.look:
            phases.look = False
            looking = not seen_enough()
            looking = (not phases.given and reached.begin(thread)) or looking
        passing = not looking
        within.add(thread)
        begun = perf_counter()
        try:
            return reached.through(thread, original, self, args, kwargs)
        finally:
            took = perf_counter() - begun
            within.discard(thread)
            calls.evaluating = calls.acting = passing = looking = False
            phases.forwarded(args, kwargs, took, counts)

    if _plain(original):
        # In the original's place rather than around it: one frame less, for each module of each step.
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not passing:
                return outermost(self, args, kwargs)
            if self._compiled_call_impl is not None:
                return self._compiled_call_impl(*args, **kwargs)
            return self._call_impl(*args, **kwargs)

        return __call__

    def around(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not passing:
            return outermost(self, args, kwargs)
        return original(self, *args, **kwargs)

    return around


def _plain(original: Callable[..., Any]) -> bool:
    """Tell whether Module.__call__ does nothing but choose between the compiled call and the usual one."""
    code = getattr(original, "__code__", None)
    return code is not None and code.co_names == ("_compiled_call_impl", "_call_impl")


def _backward(original: Callable[..., Any], phases: _Phases, engine: bool) -> Callable[..., Any]:
    calls, recorder, within = phases.calls, phases.recorder, phases.within
    trainers = calls.trainers

    def backward(*args: Any, **kwargs: Any) -> Any:
        thread = get_ident()
        # `torch.autograd.grad` accumulates nothing.
        accumulates = not engine or bool(kwargs.get("accumulate_grad"))
        if not recorder.on or thread not in trainers or thread in within:
            result = original(*args, **kwargs)
            if accumulates and not (recorder.on or recorder.refused):
                recorder.went_back()
            return result
        if accumulates and args and calls.losses.due:
            calls.losses.seen(args[0])
        within.add(thread)
        begun = perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            phases.add("backward_s", perf_counter() - begun)
            within.discard(thread)
            if accumulates:
                phases.add("backward_n", 1)
                phases.fed()
                recorder.went_back()

    return backward


class _OptimizerTime:
    """The optimizer's own time: a closure's, and nested phases', are not."""

    def __init__(self, torch: Any, phases: _Phases) -> None:
        self._phases = phases
        self._torch = torch
        self._begun: list[_BegunStep] = []
        phases.recorder.on_begin(self._begun.clear)

    def install(self) -> None:
        """Nothing is known of the optimizer's time before PyTorch 2.0, which has no such hooks."""
        module = import_module("torch.optim.optimizer")
        before = getattr(module, "register_optimizer_step_pre_hook", None)
        after = getattr(module, "register_optimizer_step_post_hook", None)
        if before is None or after is None:
            return
        compiling = getattr(getattr(self._torch, "compiler", None), "is_compiling", None) or (lambda: False)
        recorder = self._phases.recorder

        # What the compiler traces must hold nothing of ours.
        def begins(optimizer: Any, args: Any, kwargs: Any) -> Any:
            if compiling() or not (recorder.on or recorder.begin()):
                return None
            try:
                return self._begins(optimizer, args, kwargs)
            except Exception as error:  # noqa: BLE001 - the training goes on without us
                recorder.failed(error, "before a step")
                return None

        def ended(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not compiling() and recorder.on:
                try:
                    self._ended(optimizer)
                except Exception as error:  # noqa: BLE001
                    recorder.failed(error, "after a step")

        before(begins)
        after(ended)

    def _begins(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """None, or the step's arguments with another closure that knows how long it takes."""
        for callback in self._phases.calls.stepping:
            callback(optimizer)
        del self._begun[: -(DEEPEST - 1)]
        step = _BegunStep(id(optimizer), perf_counter(), self._phases.spent())
        self._begun.append(step)
        if callable(kwargs.get("closure")):
            return args, {**kwargs, "closure": _timed(kwargs["closure"], step, self._phases)}
        # The first is the optimizer itself.
        if len(args) > 1 and callable(args[1]):
            return (args[0], _timed(args[1], step, self._phases), *args[2:]), kwargs
        return None

    def _ended(self, optimizer: Any) -> None:
        now = perf_counter()
        while self._begun:
            step = self._begun.pop()
            if step.optimizer == id(optimizer):
                nested = self._phases.spent() - step.spent
                self._phases.add("optimizer_s", now - step.begun - nested - step.closure)
                return


class _BegunStep:
    """A step that has begun: of which optimizer, when, and the seconds of all phases by then.

    `closure` is what its closure took besides phases.
    """

    def __init__(self, optimizer: int, begun: float, spent: float) -> None:
        self.optimizer = optimizer
        self.begun = begun
        self.spent = spent
        self.closure = 0.0


def _timed(closure: Callable[..., Any], step: _BegunStep, phases: _Phases) -> Callable[..., Any]:
    @wraps(closure, updated=())
    def timed(*args: Any, **kwargs: Any) -> Any:
        begun, spent = perf_counter(), phases.spent()
        try:
            return closure(*args, **kwargs)
        finally:
            step.closure += perf_counter() - begun - (phases.spent() - spent)

    return timed


class Reached:
    """`thread` is the one in whose forward each module is looked at; None outside of such forwards."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._anew()
        recorder.on_begin(self._anew)
        recorder.before_beat(self._beat)

    def _anew(self) -> None:
        self.thread: int | None = None
        self._due = True
        self._beats = self._looks = self._given = self._reached = 0
        self._model = ""
        # Of each module that is being called what has reached parameters inside of it.
        self._inside: list[int] = []

    def _beat(self) -> None:
        self._beats += 1
        self._due = self._looks < MOST and (self._beats <= FIRST or self._beats % RARE == 0)
        if self._looks:
            given, reached = self._given / self._looks, self._reached / self._looks
            self._recorder.facts["input"] = {
                "looks": self._looks,
                "given": given,
                "reached": reached,
                "model": self._model,
            }

    def begin(self, thread: int) -> bool:
        """Whether this forward is looked at; the next call of `through` in it is the outermost module's."""
        if not self._due:
            return False
        self.thread, self._due = thread, False
        self._inside.clear()
        return True

    def through(self, thread: int, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        """Call a module, and count what reaches parameters in it if its forward is looked at."""
        if thread != self.thread:
            return original(module, *args, **kwargs)
        given = elements(self._torch, (args, kwargs)) if not self._inside or _owns(module) else 0
        read = given if _owns(module) else 0
        self._inside.append(0)
        done = False
        try:
            result = original(module, *args, **kwargs)
            done = True
            return result
        finally:
            read = self._inside.pop() or read
            if self._inside:
                self._inside[-1] += read
            else:
                self._end(given, read, done)
                self._model = self._model or type(module).__name__

    def _end(self, given: int, read: int, done: bool) -> None:
        self.thread = None
        if done:
            self._looks += 1
            self._given += given
            self._reached += read


def _owns(module: Any) -> bool:
    """Tell whether a module has parameters of its own, trained or not."""
    try:
        return any(one is not None for one in module.__dict__["_parameters"].values())
    except Exception:  # noqa: BLE001 - a module of another make
        return False
