"""Ends of iterations, seen by the optimizers that step."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .recorder import Recorder


def install(torch: Any, recorder: Recorder) -> None:
    """Count the steps of every optimizer."""

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.on or recorder.begin():
            recorder.iteration()

    # `torch.optim.optimizer` is not an attribute everywhere.
    import_module("torch.optim.optimizer").register_optimizer_step_post_hook(stepped)
