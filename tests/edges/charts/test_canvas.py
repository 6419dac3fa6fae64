"""A figure without a display."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
from tests.support.campaigns import environment
from tests.support.pictures import size

from gpudebug.edges.charts import canvas


def test_it_is_as_large_as_asked_for_and_changes_no_settings() -> None:
    before = dict(matplotlib.rcParams)
    with canvas.figure(4, 2) as made:
        assert size(canvas.png(made)) == (4 * canvas.DPI, 2 * canvas.DPI)
    assert dict(matplotlib.rcParams) == before


def test_a_dollar_sign_is_no_formula() -> None:
    with canvas.figure(3, 2) as made:
        made.suptitle("$x^{2$ \\frac{")
        assert canvas.png(made)


def test_it_needs_no_display_and_loads_no_window_system() -> None:
    code = (
        "import sys; from gpudebug.edges.charts import canvas\n"
        "with canvas.figure(2, 2) as made: canvas.png(made)\n"
        "print([m for m in ('matplotlib.pyplot', 'tkinter') if m in sys.modules])"
    )
    env = environment({"DISPLAY": None, "MPLBACKEND": "TkAgg"})
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
