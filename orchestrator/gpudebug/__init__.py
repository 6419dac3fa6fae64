"""gpudebug finds why a GPU sits idle in training, one measured hypothesis at a time."""

__version__ = "0.2.0"

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpudebug.training.profiling import (
        disable,
        enable_profiling,
        export_trace,
        get_profiler,
        print_profiling_summary,
        profile,
        profile_function,
        profile_method,
        profile_object,
        profile_section,
        record_timing,
        reset,
    )


def __getattr__(name: str) -> object:
    """Return the training's side, loaded when a training asks for it: the commands never do."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpudebug.training import profiling

    # Kept, so that `gpudebug.profile_section` is looked up like any other name from then on.
    found = globals()[name] = getattr(profiling, name)
    return found
