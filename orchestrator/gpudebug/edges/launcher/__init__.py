"""Launching a command so that nothing of it outlives its run, whatever ends it.

The warden (a process of its own) starts and ends the job; this side talks to it and takes over if it is lost.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudebug.edges.launcher.command import find_command
    from gpudebug.edges.launcher.following import Launched, LaunchSpec, SamplerSpec, Tick, launch
    from gpudebug.edges.launcher.injection import RECORD, inject
    from gpudebug.edges.launcher.recovery import sweep

__all__ = [
    "RECORD",
    "LaunchSpec",
    "Launched",
    "SamplerSpec",
    "Tick",
    "find_command",
    "inject",
    "launch",
    "sweep",
]

_HOMES = {"find_command": "command", "sweep": "recovery", "RECORD": "injection", "inject": "injection"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: `status` looks a command up and launches nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "following")
    return getattr(import_module(f"{__name__}.{home}"), name)
