"""What the wrappers around PyTorch's calls share: how one is put in place, and which calls count."""

from __future__ import annotations

import os
import sys
import weakref
from _thread import get_ident
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from .recorder import MOST_SITES, OTHER_SITES, Recorder

# Under such a name a method of Tensor that was replaced stays on it: torch.compile knows a method of Tensor
# by its presence there, and takes a call of what replaces it for a call of that.
KEPT = "_gpudebug_original_"

# Kinds of tensors: with nothing between a call and the tensor; a subclass that is asked first; no own data.
PLAIN, HOOKED, NEVER = range(3)
# Frames looked at on the way from a library back to the user's own code.
REACH = 12
# Code objects and places remembered; generated code would let them grow without end.
MOST = 4096
USER, LIBRARY, TORCH, PASSED = range(4)
# Of PyTorch, but only hands a call of its caller's on: `f"{loss:.3f}"`, a mode, a tensor's subclass.
HANDS_ON = ("_tensor.py", "tensor.py", "overrides.py", os.path.join("utils", "_device.py"))
# What an interactive Python or `python -c` runs is the user's; other names in brackets are generated code.
TYPED_IN = ("<stdin>", "<string>", "<ipython")
# Forces are gradients, which an evaluation of them records, too. A network in evaluation mode, or with frozen
# parameters, that is part of training records them in more than one step of so many.
RARELY = 4
# Methods that call nothing of the training's: what they call is passed by as well.
OURS_ALONE = frozenset(
    (
        *("begin", "iteration", "fetched", "failed", "count", "took", "started"),
        *("add", "place", "trained_on", "read", "hand", "taken", "looks_at", "copied"),
        *("stepping", "look", "feed", "fed", "_begins", "_ended"),
        *("called", "seen", "stepped", "pause", "resume", "anew", "end"),
    )
)


def shared(torch: Any, recorder: Recorder) -> Calls:
    """Return the one of this recorder."""
    if recorder.calls is None:
        recorder.calls = Calls(torch, recorder)
    calls: Calls = recorder.calls
    return calls


def replace(torch: Any, owner: Any, name: str, make: Callable[[Any], Any]) -> bool:
    """Put `make(original)` in place of `owner.name`; False if there is no such thing.

    It has the original's name, documentation and signature, is pickled by its name, and torch.compile takes
    it for the original.
    """
    original = getattr(owner, name, None)
    if original is None:
        return False
    wrapper = make(original)
    wrapper.__name__ = name
    wrapper.__doc__ = original.__doc__
    wrapper.__qualname__ = name
    wrapper.__module__ = getattr(original, "__module__", None) or owner.__module__
    if isinstance(owner, type):
        wrapper.__qualname__ = owner.__qualname__ + "." + name
        if not hasattr(original, "__code__"):
            setattr(owner, KEPT + name.strip("_"), original)
    wrapper.__wrapped__ = original
    wrapper._torchdynamo_inline = original
    hide(torch, wrapper)
    setattr(owner, name, wrapper)
    return True


class Calls:
    """Which calls count: those of the threads that train, on the device that is trained on, each once.

    trainers: threads that step an optimizer; until the first step the one in which training began. on_cpu:
    the training's device is the CPU, as far as is known; `settled` once an optimizer has shown it. looks:
    asked within some of the forwards whether they have seen enough. stepping: told of an optimizer's steps.
    evaluating: a module in evaluation mode is called that records no gradients, or that one or a frozen one
    is called with gradients in few of the steps; acting: one in training mode without them, of a training.
    losses: shown a backward while it is `due`.
    """

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self.recorder = recorder
        self.sites = Sites(torch, recorder)
        self.trainers = {get_ident()}
        self.looks: list[Callable[[], bool]] = []
        self.stepping: list[Callable[[Any], object]] = []
        self.losses: Any = None
        self.evaluating = self.acting = False
        self.kinds = {torch.Tensor: PLAIN}
        # Older PyTorch has none of these: nothing is between a call and its tensor.
        self.modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", int)
        self._dispatches: Callable[[], bool] = getattr(torch._C, "_is_torch_function_enabled", bool)
        self._torch = torch
        self._names: dict[Any, str] = {}
        # Kept apart from the counters, where adding is slower.
        self._reads: list[float] = [0, 0.0]
        self._began()
        recorder.on_begin(self._began)
        recorder.on_step(self._stepped)
        recorder.before_beat(self._tell)

    def _began(self) -> None:
        self.trainers.clear()
        self.trainers.add(get_ident())
        self.sites.clear()
        self._reads[:] = [0, 0.0]
        self.evaluating = self.acting = False
        self._passes, self._passed = 0, -1
        # What `cpu()` last handed out on the CPU: `x.cpu().numpy()` reads once.
        self.handed: Callable[[], Any] | None = None
        self.on_cpu, self.settled = True, False

    def called(self, module: Any, counts: bool) -> bool:
        """The outermost module is called now; `counts`: with gradients. Tell whether for training."""
        trains, steps = module.__dict__.get("training", True), self.recorder.steps
        trains = trains and not (counts and _frozen(module))
        if counts and not trains and self._passed != steps:
            self._passed = steps
            self._passes += 1
        self.evaluating = not trains and not (counts and RARELY * self._passes > steps)
        self.acting = not counts and trains and steps > 0
        return counts and not self.evaluating

    def _stepped(self, steps: int) -> None:
        if steps == 1:
            self.trainers.clear()
        self.trainers.add(get_ident())

    def _tell(self) -> None:
        self.recorder.counters["reads_n"], self.recorder.counters["reads_s"] = self._reads

    def place(self, tensor: Any) -> str:
        """Return where a tensor lives, as `cpu` or `cuda:0`; "" if a call on it is not to be looked at here.

        That is one of a subclass, or one under a mode, that is called in place of the tensor's own method:
        it calls that in turn, or does not. And tensors that only represent others (fake ones, traced ones).
        """
        kind = self.kinds.get(type(tensor))
        if kind is None:
            kind = self.kinds[type(tensor)] = self._kind(type(tensor))
        if kind == NEVER or self.modes() or (kind == HOOKED and self._dispatches()):
            return ""
        device = tensor.device
        name = self._names.get(device)
        if name is None:
            name = self._names[device] = str(device)
        return name

    def read(self, frame: FrameType, kind: str, tensor: Any, place: str, seconds: float) -> None:
        """Count a read that `frame` made, if it makes the training wait, or would on a GPU."""
        if place == "cpu":
            if not self.settled:
                self.on_cpu = not self._torch.cuda.is_initialized()
            if not self.on_cpu:
                return
            if self.handed is not None:
                handed, self.handed = self.handed, None
                if handed() is tensor:
                    return
            if kind == "cpu":
                self.handed = weakref.ref(tensor)
        if self.sites.add(frame, kind, place, seconds, own=place != "cpu"):
            reads = self._reads
            reads[0] += 1
            reads[1] += seconds

    def _kind(self, kind: type) -> int:
        if not issubclass(kind, self._torch.Tensor):
            return NEVER
        disabled = self._torch._C
        dispatch = getattr(kind, "__torch_dispatch__", None)
        if dispatch is not getattr(disabled, "_disabled_torch_dispatch_impl", None):
            return NEVER
        function = getattr(kind, "__torch_function__", None)
        return PLAIN if function is getattr(disabled, "_disabled_torch_function_impl", None) else HOOKED


def _frozen(module: Any) -> bool:
    """Tell whether it has parameters, and none of them takes gradients."""
    found = False
    try:
        for parameter in module.parameters():
            found = True
            if parameter.requires_grad:
                return False
    except Exception:  # noqa: BLE001 - a module of another make
        return False
    return found


class Sites:
    """Counts calls by the place that made them; a thread that trains costs it well under a microsecond."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._recorder = recorder
        self._torch = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self._ours = os.path.dirname(os.path.abspath(__file__)) + os.sep
        self._library = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
        # A script's name may be relative to where the training began.
        self._start = _working_folder()
        self.clear()

    def clear(self) -> None:
        """Forget all places, as a forked child must."""
        # By id: a code object's own hash is slow. Kept alive, so that no other one gets the id.
        self._kinds: dict[int, int] = {}
        self._kept: list[CodeType] = []
        self._entries: dict[tuple[int, int, str, str], list[float]] = {}

    def add(self, frame: FrameType, kind: str, device: str, seconds: float, own: bool = True) -> bool:
        """Count a call that `frame` made; under the user's code if that is within reach.

        Unless `own`, one that PyTorch made for its own ends, as Adam reads its step, is not counted: False.
        """
        key = (id(frame.f_code), frame.f_lasti, kind, device)
        entry = self._entries.get(key)
        if entry is None:
            made_by = self._kind(frame.f_code)
            if not own and self._for_torch(frame):
                return False
            if made_by != USER:
                frame = self._users(frame)
                key = (id(frame.f_code), frame.f_lasti, kind, device)
                entry = self._entries.get(key)
            if entry is None:
                entry = self._enter(frame, key)
        entry[0] += 1
        entry[1] += seconds
        return True

    def _for_torch(self, frame: FrameType) -> bool:
        above: FrameType | None = frame
        while above is not None and self._kind(above.f_code) == PASSED:
            above = above.f_back
        return above is not None and self._kind(above.f_code) == TORCH

    def _enter(self, frame: FrameType, key: tuple[int, int, str, str]) -> list[float]:
        if len(self._entries) >= MOST:
            self.clear()
        code = frame.f_code
        self._kept.append(code)
        file = code.co_filename
        if not file.startswith("<"):
            file = os.path.normpath(os.path.join(self._start, file))
        sites = self._recorder.sites
        place = (file, frame.f_lineno or code.co_firstlineno, key[2], key[3])
        if place not in sites and len(sites) >= MOST_SITES:
            place = OTHER_SITES
        entry = self._entries[key] = sites.setdefault(place, [0, 0.0])
        return entry

    def _users(self, frame: FrameType) -> FrameType:
        """Return the nearest frame of the user's, else the nearest one outside PyTorch, else this one."""
        outside: FrameType | None = None
        above: FrameType | None = frame
        for _ in range(REACH):
            if above is None:
                break
            kind = self._kind(above.f_code)
            if kind == USER:
                return above
            if kind == LIBRARY and outside is None:
                outside = above
            above = above.f_back
        return outside or frame

    def _kind(self, code: CodeType) -> int:
        kind = self._kinds.get(id(code))
        if kind is None:
            if len(self._kinds) >= MOST:
                self.clear()
            kind = self._kinds[id(code)] = self._classified(code.co_filename)
            self._kept.append(code)
        return kind

    def _classified(self, file: str) -> int:
        if file.startswith("<"):
            return USER if file.startswith(TYPED_IN) else PASSED
        file = os.path.normpath(os.path.join(self._start, file))
        if file.startswith(self._torch):
            return PASSED if file[len(self._torch) :] in HANDS_ON else TORCH
        if file.startswith(self._ours):
            return PASSED
        parts = file.split(os.sep)
        if file.startswith(self._library) or "site-packages" in parts or "dist-packages" in parts:
            return LIBRARY
        return USER


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def hide_all(torch: Any) -> None:
    """Hide every function of this package that is loaded by now, their inner ones included."""
    mark = _marker(torch)
    if mark is None:
        return
    for name, module in list(sys.modules.items()):
        if module is not None and name.startswith(__package__ + "."):
            for code in _codes(module):
                mark(code, code.co_name in OURS_ALONE)


def hide(torch: Any, wrapper: FunctionType) -> None:
    """Hide a function that calls the training's code, and those defined in it."""
    mark = _marker(torch)
    if mark is not None:
        for code in _within(wrapper.__code__):
            mark(code, False)


def _marker(torch: Any) -> Callable[[CodeType, bool], object] | None:
    """Marks code to pass by, what it calls included or not; None before PyTorch 2, which compiles nothing.

    `torch._dynamo` has a function for it, but takes seconds to import, and most trainings never do.
    """
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    strategy, action = getattr(frames, "_FrameExecStrategy", None), getattr(frames, "_FrameAction", None)
    mark = getattr(frames, "set_code_exec_strategy", None)
    if strategy is not None and action is not None and mark is not None:
        itself, below = strategy(action.SKIP, action.DEFAULT), strategy(action.SKIP, action.SKIP)
        return lambda code, all_below: mark(code, below if all_below else itself)
    skip = getattr(frames, "skip_code", None)
    return None if skip is None else lambda code, all_below: skip(code)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__:
            for member in vars(value).values() if isinstance(value, type) else (value,):
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    yield from _within(function.__code__)


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)
