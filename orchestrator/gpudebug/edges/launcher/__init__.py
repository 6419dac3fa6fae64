"""Launching a command so that nothing of it outlives its run, whatever ends it.

The warden (a process of its own) starts and ends the job; this side talks to it and takes over if it is lost.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudebug.edges.launcher.agent import AgentEnded, AgentSpec, adopt_orphans, end_agent, run_agent
    from gpudebug.edges.launcher.command import find_command
    from gpudebug.edges.launcher.follower import (
        Launched,
        LaunchSpec,
        SamplerSpec,
        ServerSpec,
        Tick,
        free_port,
        launch,
        taken,
    )
    from gpudebug.edges.launcher.injection import (
        LAYER,
        NODE,
        PROBE,
        RECORD,
        RECORDS_DIR,
        SECTIONS,
        TORCH_PROFILE,
        inject,
    )
    from gpudebug.edges.launcher.interpreter import Asked, ask, ask_anew, inside, try_profiling
    from gpudebug.edges.launcher.interrupts import (
        forget_held,
        holding_interrupts,
        naming_interrupts,
        raise_held,
    )
    from gpudebug.edges.launcher.recovery import marked, sweep
    from gpudebug.edges.launcher.warden.memory import limit_mb

__all__ = [
    "LAYER",
    "NODE",
    "PROBE",
    "RECORD",
    "RECORDS_DIR",
    "SECTIONS",
    "TORCH_PROFILE",
    "AgentEnded",
    "AgentSpec",
    "Asked",
    "LaunchSpec",
    "Launched",
    "SamplerSpec",
    "ServerSpec",
    "Tick",
    "adopt_orphans",
    "ask",
    "ask_anew",
    "end_agent",
    "find_command",
    "forget_held",
    "free_port",
    "holding_interrupts",
    "inject",
    "inside",
    "launch",
    "limit_mb",
    "marked",
    "naming_interrupts",
    "raise_held",
    "run_agent",
    "sweep",
    "taken",
    "try_profiling",
]

_HOMES = {
    **dict.fromkeys(("AgentEnded", "AgentSpec", "adopt_orphans", "end_agent", "run_agent"), "agent"),
    **dict.fromkeys(("Asked", "ask", "ask_anew", "inside", "try_profiling"), "interpreter"),
    "find_command": "command",
    **dict.fromkeys(("marked", "sweep"), "recovery"),
    "limit_mb": "warden.memory",
    "forget_held": "interrupts",
    "holding_interrupts": "interrupts",
    "naming_interrupts": "interrupts",
    "raise_held": "interrupts",
    **dict.fromkeys(
        ("LAYER", "NODE", "PROBE", "RECORD", "RECORDS_DIR", "SECTIONS", "TORCH_PROFILE", "inject"),
        "injection",
    ),
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: `status` looks a command up and launches nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "follower")
    return getattr(import_module(f"{__name__}.{home}"), name)
