"""Starts what gpudebug asked a Python process of a training to tell of itself.

Python imports this at its start, because its folder is in front of PYTHONPATH; the user's own
sitecustomize comes right after it, as if nothing were here. Standard library only. An older Python than 3.8
is left alone; types are in comments because it reads this file all the same.
"""

import os
import sys

_HERE = os.path.normpath(os.path.dirname(__file__))


def _start():
    # type: () -> None
    if sys.version_info < (3, 8):  # noqa: UP036 - whatever Python the training starts
        return
    try:  # noqa: SIM105 - whatever Python
        __import__("gpudebug_probe").start(os.environ)
    except Exception:  # noqa: BLE001, S110 - a training never fails or prints because it is watched
        pass


def _step_aside():
    # type: () -> None
    """Leave search path and modules as they would be without this one.

    `gpudebug` can be imported from the shim where the training's environment has none of its own.
    """
    sys.path[:] = [entry for entry in sys.path if os.path.normpath(entry) != _HERE]
    shim = os.path.join(os.path.dirname(_HERE), "shim")
    if sys.version_info >= (3, 8) and os.path.isdir(shim):
        sys.path.append(shim)
    sys.modules.pop("sitecustomize", None)


def _time_methods():
    # type: () -> None
    """Load the profiling of named classes' methods, if the environment asks for it."""
    if sys.version_info < (3, 8) or not os.environ.get("GPUDEBUG_PROFILE_METHODS"):
        return
    try:  # noqa: SIM105 - whatever Python
        __import__("gpudebug.training.profiling")
    except Exception:  # noqa: BLE001, S110 - a training never fails or prints because it is watched
        pass


_start()
_step_aside()
_time_methods()
# The user's own. What it raises, that there is none included, reaches Python as if it came from there.
__import__("sitecustomize")
