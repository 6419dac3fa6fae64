"""Launching a command so that nothing of it outlives its run, whatever ends it.

The warden (a process of its own) starts and ends the job; this side talks to it and takes over if it is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.lazy import loader

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
        KEEP,
        KEPT_NOTES,
        LAYER,
        NODE,
        PROBE,
        RECORD,
        RECORDS_DIR,
        SECTIONS,
        STOPPED,
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

# `status` looks a command up and launches nothing.
__getattr__ = loader(
    __name__,
    {
        "agent": "AgentEnded AgentSpec adopt_orphans end_agent run_agent",
        "command": "find_command",
        "follower": "Launched LaunchSpec SamplerSpec ServerSpec Tick free_port launch taken",
        "injection": (
            "KEEP KEPT_NOTES LAYER NODE PROBE RECORD RECORDS_DIR SECTIONS STOPPED TORCH_PROFILE inject"
        ),
        "interpreter": "Asked ask ask_anew inside try_profiling",
        "interrupts": "forget_held holding_interrupts naming_interrupts raise_held",
        "recovery": "marked sweep",
        "warden.memory": "limit_mb",
    },
)
