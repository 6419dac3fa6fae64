"""A figure without a display, and the bytes of its picture."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DPI = 110
MUTED = "#888888"
# Names come from programs: a dollar sign in one is no formula. Whatever matplotlibrc says is left aside.
_STYLE: Any = {"text.parse_math": False, "text.usetex": False, "font.size": 9, "axes.titlesize": 10}


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """A figure of so many inches, to be drawn and saved inside the block."""
    with rc_context(_STYLE), warnings.catch_warnings():
        # A font that lacks a character shows a box in its place.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        made = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
        FigureCanvasAgg(made)
        yield made


def png(made: Figure) -> bytes:
    """Return the picture; inside the block of `figure`."""
    buffer = io.BytesIO()
    made.savefig(buffer, format="png", metadata={"Software": "gpudebug"})
    return buffer.getvalue()


def padded(made: Figure) -> None:
    """Room around what is drawn, so that it fits a page of text."""
    layout: Any = made.get_layout_engine()
    layout.set(w_pad=0.12, h_pad=0.06)


def plain(axes: Any) -> None:
    """Axes without a frame at the right and at the top."""
    axes.spines[["right", "top"]].set_visible(False)
