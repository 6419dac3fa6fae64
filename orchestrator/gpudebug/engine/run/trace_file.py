"""`gpudebug analyze` of a Kineto or Chrome trace."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.answers.analyze import TraceAnswer
from gpudebug.core.errors import GpudebugError

_READ = 1 << 20


def trace(path: Path) -> TraceAnswer:
    """What a trace says, JSON or JSON in gzip.

    Raises GpudebugError if the file holds no trace.
    """
    # numpy takes longer to import than a log to analyse.
    from gpudebug.core.trace import summarise

    try:
        with path.open("rb") as f:
            return TraceAnswer(file=str(path), **summarise(iter(lambda: f.read(_READ), b"")).as_dict())
    except GpudebugError as e:
        e.file = str(path)
        raise
