"""What a training calls besides `profile_section`."""

from __future__ import annotations

from _thread import get_ident
from time import perf_counter_ns as clock

from gpudebug.training.profiling import entries, handles
from gpudebug.training.profiling.handles import profile_section
from gpudebug.training.profiling.profiler import PROFILER, Profiler
from gpudebug.training.profiling.settings import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ContextManager, TextIO

# Thirty years: what exceeds it was counted in another unit, and would outgrow what the report may say.
_LONGEST = 1e9

__all__ = [
    "disable",
    "enable_profiling",
    "export_trace",
    "get_profiler",
    "print_profiling_summary",
    "profile",
    "profile_section",
    "record_timing",
    "reset",
]


def get_profiler() -> Profiler:
    """Return the process's profiler, with all that can be done with it."""
    return PROFILER


enable_profiling = PROFILER.enable
disable = PROFILER.disable
reset = PROFILER.reset
export_trace = PROFILER.export_trace


def print_profiling_summary(tree: bool = False, file: TextIO | None = None) -> None:
    """Print what was measured so far: a table of sections, and below it, if asked for, their tree.

    Where there is nothing to print it says why. `file` is standard output unless it is given.
    """
    from gpudebug.training.profiling import summary

    print(summary.text(PROFILER, tree), file=file, flush=True)


def profile(name: str, track_memory: bool = False) -> ContextManager[None]:
    """As `profile_section`, with memory looked at before and after where `track_memory` is true.

    The report's peaks are what a call used above its beginning: resident memory at its end, and what PyTorch
    had allocated on its current GPU at most (where the call raised the process's peak, else at its end). The
    largest of all calls counts, and a section's is at least that of the sections in it.
    """
    if track_memory and not handles.off:
        return handles.make_tracked(str(name))
    return profile_section(name)


def record_timing(name: str, seconds: float) -> None:
    """Count in a duration that was measured elsewhere, as a section inside the innermost open one.

    Does nothing while profiling is off. ValueError for a negative or undefined duration, or one above
    30 years, TypeError for what is no number; if only a launcher enabled profiling these are noted in the
    report instead.
    """
    if handles.off:
        return
    try:
        duration = float(seconds)
        if not 0.0 <= duration < _LONGEST:
            raise ValueError(f"record_timing({name!r}) takes 0 to 1e9 seconds, not {duration!r}")
    except (TypeError, ValueError, OverflowError) as e:
        if PROFILER.asked_by_code:
            raise
        settings.note(f"a duration was refused: {e}")
        return
    nanoseconds = round(duration * 1e9)
    node = entries.here()[str(name)].node
    if settings.events is not None:
        settings.events.append((node.name, clock() - nanoseconds, nanoseconds, get_ident()))
    entries.record(node, nanoseconds + settings.bias, None)
