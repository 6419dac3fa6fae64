"""Profiling of named sections inside a training: standard library only, from Python 3.8 on.

Off until `enable_profiling()`, or until the environment says GPUDEBUG_PROFILE=report.json.
"""

from __future__ import annotations

from gpudebug.training.profiling import startup as _startup
from gpudebug.training.profiling.decorators import profile_function, profile_method
from gpudebug.training.profiling.profiler import PROFILER as _PROFILER
from gpudebug.training.profiling.sections import (
    disable,
    enable_profiling,
    export_trace,
    get_profiler,
    print_profiling_summary,
    profile,
    profile_section,
    record_timing,
    reset,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpudebug.training.profiling.objects import profile_object

__all__ = [
    "disable",
    "enable_profiling",
    "export_trace",
    "get_profiler",
    "print_profiling_summary",
    "profile",
    "profile_function",
    "profile_method",
    "profile_object",
    "profile_section",
    "record_timing",
    "reset",
]

# Loaded when they are asked for: the import of a training should stay short.
_LATER = {"profile_object": "objects"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


_startup.begin(_PROFILER.start)
_startup.methods()
