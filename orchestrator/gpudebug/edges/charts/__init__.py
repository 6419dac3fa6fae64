"""Pictures of what `analyze` finds, as PNG bytes. Needs matplotlib, the extra `charts`."""

from __future__ import annotations

from typing import Any

from gpudebug.core.errors import GpudebugError


def check() -> None:
    """GpudebugError if nothing can be drawn here."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise GpudebugError(
            "charts need matplotlib, which is not installed", next="pip install 'gpudebug[charts]'"
        ) from None


def sections(answer: dict[str, Any]) -> bytes:
    """Time, mean and memory of a report's sections, and its categories."""
    from gpudebug.edges.charts import bars

    return bars.sections(answer)


def trace(answer: dict[str, Any]) -> bytes:
    """Return what the devices did, why they idled, and the operators that took longest."""
    from gpudebug.edges.charts import shares

    return shares.trace(answer)


def training_log(answer: dict[str, Any]) -> bytes:
    """Return the loss over steps, and the step time if the log prints it."""
    from gpudebug.edges.charts import curves

    return curves.training_log(answer)


def samples(answer: dict[str, Any]) -> bytes:
    """Utilisation and memory of each device over time, the steady window marked."""
    from gpudebug.edges.charts import curves

    return curves.samples(answer)
