"""Launching a command so that nothing of it outlives its run, whatever ends it.

The warden (a process of its own) starts and ends the job; this side talks to it and takes over if it is lost.
"""

from gpudebug.edges.launcher.command import find_command
from gpudebug.edges.launcher.launch import Launched, LaunchSpec, SamplerSpec, Tick, launch
from gpudebug.edges.launcher.recovery import sweep

__all__ = ["LaunchSpec", "Launched", "SamplerSpec", "Tick", "find_command", "launch", "sweep"]
