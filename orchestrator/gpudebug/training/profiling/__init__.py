"""Profiling of named sections inside a training: standard library only, from Python 3.8 on.

Off until `enable_profiling()`, or until the environment says GPUDEBUG_PROFILE=report.json.
"""

from __future__ import annotations

from gpudebug.training.profiling import exits as _exits
from gpudebug.training.profiling.decorators import profile_function, profile_method
from gpudebug.training.profiling.objects import profile_object, time_named
from gpudebug.training.profiling.profiler import PROFILER, get_profiler, print_profiling_summary
from gpudebug.training.profiling.sections import profile, profile_section, record_timing

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

enable_profiling = PROFILER.enable
disable = PROFILER.disable
reset = PROFILER.reset
export_trace = PROFILER.export_trace

_exits.begin(PROFILER.start, time_named)
