"""`gpudebug analyze` of a Kineto or Chrome trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError

_READ = 1 << 20


def trace(path: Path) -> dict[str, Any]:
    """The answer for a trace, JSON or JSON in gzip, with `kind` "trace" and `file`.

    Raises GpudebugError if the file holds no trace.
    """
    # numpy takes longer to import than a log to analyse.
    from gpudebug.core.trace import summarise

    try:
        with path.open("rb") as f:
            answer = summarise(iter(lambda: f.read(_READ), b"")).as_dict()
    except GpudebugError as e:
        e.file = str(path)
        raise
    return {"kind": answer["kind"], "file": str(path), **answer}
