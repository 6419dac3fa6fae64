"""The loss by its steps: the scalar on which `backward()` is called, whatever the program prints of it.

Of the first iterations, and of one after each beat, the first backward's scalar is kept until the device has
come to it: nothing waits for it. What a GradScaler has scaled is reported as it was before; another product
is left out, as its factor may change from step to step.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from .calls import Calls, replace, shared
from .recorder import Recorder

# So many iterations are looked at from the first on: later ones show how far the loss fell from there.
FIRST = 12
# Values that the device has not come to, or that no beat has told.
MOST = 32


def install(torch: Any, recorder: Recorder) -> None:
    """Report some values of the loss with the beats."""
    losses = LossReader(torch, shared(torch, recorder))
    for owner in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
        scaler = getattr(owner, "GradScaler", None)
        if scaler is not None and replace(torch, scaler, "scale", losses.scaling):
            break


class LossReader:
    """`due`: the next backward is to be `seen`."""

    def __init__(self, torch: Any, calls: Calls) -> None:
        self._torch = torch
        self._calls = calls
        self._recorder = calls.recorder
        # Not the one of torch.Tensor, whose reads are counted.
        self._read: Callable[[Any], Any] = (
            getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
        ).item
        self._broken = False
        calls.losses = self
        self._anew()
        self._recorder.on_begin(self._anew)
        self._recorder.on_step(self._stepped)
        self._recorder.before_beat(self._tell)

    def _anew(self) -> None:
        self.due = not self._broken
        self._scaled: tuple[Any, Any] | None = None
        self._waiting: deque[tuple[int, Any, Any]] = deque(maxlen=MOST)
        self._stream: Any = None

    def _stepped(self, steps: int) -> None:
        self._scaled = None
        if steps < FIRST and not self._broken:
            self.due = True

    def _tell(self) -> None:
        """What is known by now goes with the beat, and the next iteration is looked at."""
        try:
            while self._waiting and self._waiting[0][2].query():
                step, loss, _ = self._waiting.popleft()
                with self._torch.cuda.stream(self._stream):
                    self._know(step, loss)
        except Exception as error:  # noqa: BLE001 - the rest of the probe goes on without losses
            self._break(error)
        self.due = not self._broken

    def scaling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Around GradScaler.scale: remember what the scaled loss was."""

        def scale(self: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, outputs, *args, **kwargs)
            if losses.due and recorder.on:
                losses._scaled = (result, outputs)
            return result

        losses, recorder = self, self._recorder
        return scale

    def seen(self, tensors: Any) -> None:
        """A backward of `tensors`, one or a tuple of them, begins in a thread that trains."""
        self.due = False
        scaled, self._scaled = self._scaled, None
        try:
            loss = tensors[0] if isinstance(tensors, tuple) and len(tensors) == 1 else tensors
            if scaled is not None and scaled[0] is loss:
                loss = scaled[1]
            elif type(getattr(loss, "grad_fn", None)).__name__ == "MulBackward0":
                return
            place = self._calls.place(loss)
            if place and loss.numel() == 1 and loss.is_floating_point():
                self._keep(self._recorder.steps + 1, loss.detach(), place)
        except Exception as error:  # noqa: BLE001 - the rest of the probe goes on without losses
            self._break(error)

    def _keep(self, step: int, loss: Any, place: str) -> None:
        if place == "cpu":
            self._know(step, loss)
            return
        cuda = self._torch.cuda
        capturing = getattr(cuda, "is_current_stream_capturing", None)
        if not place.startswith("cuda") or (capturing is not None and capturing()):
            return
        if self._stream is None:
            self._stream = cuda.Stream(loss.device)
        event = cuda.Event()
        event.record()
        self._waiting.append((step, loss, event))

    def _know(self, step: int, loss: Any) -> None:
        value = float(self._read(loss))
        if len(self._recorder.losses) < MOST:
            known = float(f"{value:.6g}") if math.isfinite(value) else None
            self._recorder.losses.append([step, known])

    def _break(self, error: Exception) -> None:
        self._broken, self.due = True, False
        self._waiting.clear()
        self._recorder.facts["losses"] = "off: " + type(error).__name__ + ": " + str(error)[:200]
