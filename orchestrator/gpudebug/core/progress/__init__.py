"""The progress file: parse with spans, splice, make text harmless. Bytes in, bytes out.

The format is CommonMark that people and agents write by hand. gpudebug reads the entries in it and
replaces only the lines of the entry that changes; every other byte stays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpudebug.core.progress.entries import BaselineEntry, HypothesisEntry, ProgressFile
from gpudebug.core.progress.parser import parse

if TYPE_CHECKING:
    from gpudebug.core.progress.sanitise import harmless
    from gpudebug.core.progress.splice import (
        add_hypothesis,
        next_number,
        set_baseline,
        set_result,
        set_status,
        with_heading,
    )
    from gpudebug.core.progress.stages import next_acceptance, reopen, set_accepted, set_testing

__all__ = [
    "BaselineEntry",
    "HypothesisEntry",
    "ProgressFile",
    "add_hypothesis",
    "harmless",
    "next_acceptance",
    "next_number",
    "parse",
    "reopen",
    "set_accepted",
    "set_baseline",
    "set_result",
    "set_status",
    "set_testing",
    "with_heading",
]

_HOMES = {
    "harmless": "sanitise",
    **dict.fromkeys(("next_acceptance", "reopen", "set_accepted", "set_testing"), "stages"),
}


def __getattr__(name: str) -> Any:
    """Load the writing half when it is asked for: `status` only reads."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "splice")
    return getattr(import_module(f"{__name__}.{home}"), name)
