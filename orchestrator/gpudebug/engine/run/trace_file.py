"""A Kineto or Chrome trace in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.answers.analyze import TraceAnswer
from gpudebug.core.errors import GpudebugError
from gpudebug.edges import opener

if TYPE_CHECKING:
    from gpudebug.core.trace.summary import TraceSummary

_READ = 1 << 20


def trace(path: Path) -> TraceAnswer:
    """Return what a trace says. Raises as `summary_of`."""
    return TraceAnswer(file=str(path), **summary_of(path).answer)


def summary_of(path: Path) -> TraceSummary:
    """Read a trace, JSON or JSON in gzip. Raises GpudebugError if the file holds none."""
    # numpy takes longer to import than a log to analyse.
    from gpudebug.core.trace.summary import summarise

    try:
        with opener.saying(path, "cannot read"), opener.opened(path, follow=True) as f:
            return summarise(iter(lambda: f.read(_READ), b""))
    except GpudebugError as e:
        e.file = str(path)
        raise
