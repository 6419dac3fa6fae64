"""What the wrappers around PyTorch's calls share: how one is put in place, and which calls count."""

from __future__ import annotations

import weakref
from _thread import get_ident
from collections.abc import Callable
from types import FrameType
from typing import Any

from .dynamo import hide
from .recorder import Recorder
from .sites import Sites

# Under such a name a method of Tensor that was replaced stays on it: torch.compile knows a method of Tensor
# by its presence there, and takes a call of what replaces it for a call of that.
KEPT = "_gpudebug_original_"

# Kinds of tensors: with nothing between a call and the tensor; a subclass that is asked first; no own data.
PLAIN, HOOKED, NEVER = range(3)


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
    evaluating: a module in evaluation mode is called that records no gradients; acting: one in training mode,
    of a training.
    """

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self.recorder = recorder
        self.sites = Sites(torch, recorder)
        self.trainers = {get_ident()}
        self.looks: list[Callable[[], bool]] = []
        self.stepping: list[Callable[[Any], object]] = []
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
        # What `cpu()` last handed out on the CPU: `x.cpu().numpy()` reads once.
        self.handed: Callable[[], Any] | None = None
        self.on_cpu, self.settled = True, False

    def called(self, module: Any, counts: bool) -> None:
        """The outermost module is called now; `counts`: with gradients."""
        trains = module.__dict__.get("training", True)
        self.evaluating = not counts and not trains
        self.acting = not counts and trains and self.recorder.steps > 0

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
