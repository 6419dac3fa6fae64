"""What the environment asks for when the library is loaded: profiling, and the methods of whole classes."""

from __future__ import annotations

import os

from gpudebug.training.profiling.exits import places, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


def begin(start: Callable[[], None]) -> None:
    """Enable profiling where the environment asks for it; an error of ours is a line on standard error."""
    if places.problem:
        warn(places.problem)
    try:
        if places.path or places.summary_every:
            start()
    except Exception as e:  # noqa: BLE001 - the import of a training must not fail for us
        warn(f"sections are not profiled: {type(e).__name__}: {e}")


def methods() -> None:
    """Time the methods of the classes that the environment names; an error of ours is a line."""
    named = os.environ.get("GPUDEBUG_PROFILE_METHODS", "")
    if not named:
        return
    try:
        from importlib import import_module

        import_module("gpudebug.training.profiling.methods").arrange(named)
    except Exception as e:  # noqa: BLE001 - the import of a training must not fail for us
        warn(f"methods are not profiled: {type(e).__name__}: {e}")
