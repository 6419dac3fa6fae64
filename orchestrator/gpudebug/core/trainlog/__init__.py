"""A training program's output, read without configuration: losses, steps, work, rewards, rates, failure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudebug.core.trainlog.reader import LogReader
    from gpudebug.core.trainlog.summary import LogSummary

__all__ = ["LogReader", "LogSummary"]

_HOMES = {"LogReader": "reader", "LogSummary": "summary"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: to split a line needs no reader of whole logs."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
