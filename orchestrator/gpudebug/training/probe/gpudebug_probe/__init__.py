"""What gpudebug puts into a training's Python: it reports on itself, unnoticed.

Standard library only, Python 3.8 and later. Nothing here may fail, print, or change what is computed.
"""

from __future__ import annotations

import os

# typing would cost a Python that never trains more than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Modules of this package with `install(torch, recorder)`, in the order in which they are called once
# `import torch` is done. Each wraps what it watches; `recorder` says what a wrapper must keep to.
WATCHERS = (
    "steps",
    "loader",
    "reads",
    "events",
    "losses",
    "phases",
    "stacks",
    "state",
    "torchprofile",
)


def start(environ: Mapping[str, str]) -> None:
    """Start what the variables ask for; called once a process, before anything else runs in it.

    GPUDEBUG_RECORDS_DIR is the folder to write into. GPUDEBUG_TREES: tell which files were loaded.
    GPUDEBUG_KEEP: stop before files of the user are overwritten, see `keep`. GPUDEBUG_PROBE is `1`: watch the
    training once it imports torch.
    """
    run, trees = environ.get("GPUDEBUG_RECORDS_DIR", ""), environ.get("GPUDEBUG_TREES", "")
    if not os.path.isabs(run):
        return
    if environ.get("GPUDEBUG_KEEP"):
        from . import writers

        writers.watch(run, environ["GPUDEBUG_KEEP"])
    if os.path.isabs(trees):
        from . import loaded

        loaded.watch(run, trees)
    if environ.get("GPUDEBUG_PROBE") == "1":
        from . import hook, lone

        lone.watch(run)
        hook.when_imported("torch", lambda torch: watch(torch, run))


def watch(torch: object, run: str) -> None:
    """Install every watcher into `torch`. An error in one switches all of them off, and is noted."""
    from importlib import import_module

    from .recorder import Recorder

    recorder = Recorder(run, torch)
    for name in WATCHERS:
        try:
            import_module("." + name, __name__).install(torch, recorder)
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            recorder.failed(error, "installing " + name)
            return
