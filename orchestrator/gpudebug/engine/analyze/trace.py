"""`gpudebug analyze` of a Kineto or Chrome trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError


def trace(path: Path) -> dict[str, Any]:
    """The answer for a trace, JSON or JSON in gzip, with `kind` "trace" and `file`.

    Raises GpudebugError where the file holds no trace.
    """
    raise GpudebugError(
        "looks like a JSON report or trace, which this version does not read",
        file=str(path),
        next="give a training log, a samples CSV or a section report",
    )
