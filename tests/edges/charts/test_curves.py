"""Loss curves and timelines, of whatever was printed and sampled."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from tests.support.pictures import size

from gpudebug.edges import charts
from gpudebug.edges.charts import canvas, curves

LOG = {"file": "train.log", "loss": {"name": "loss", "trend": "CONVERGING", "points": 3}}


@pytest.mark.parametrize(
    "series",
    [
        {"loss": [[0, 2.0], [10, 1.0], [20, None]], "step_times": [[1, 0.1]], "stepped": True},
        {"loss": [[0, 2.0]], "step_times": [[0, 0.1], [1, 0.2]], "stepped": False},
        {"loss": [], "step_times": [], "stepped": True},
        {"loss": [[i, None] for i in range(1000)], "step_times": [], "stepped": True},
    ],
    ids=["both", "numbered", "nothing", "no number"],
)
def test_a_loss_curve(series: dict[str, Any]) -> None:
    width, height = size(charts.training_log({**LOG, "series": series}))
    assert width == 11 * canvas.DPI
    assert (height > 600) == bool(series["step_times"])


WINDOW = {"start_s": 1.0, "end_s": 2.0}
GPU = {"index": 0, "uuid": "GPU-1", "points": [[0.5, 10.0, 100.0], [1.0, None, 200.0], [2.0, 90.0, None]]}
CPU = {"index": 0, "uuid": "CPU", "points": [[0.5, 10.0, None]]}


@pytest.mark.parametrize(
    ("devices", "window", "panels"),
    [([GPU, {**GPU, "index": 1}], WINDOW, 2), ([CPU], None, 1), ([], None, 1)],
    ids=["two GPUs", "the stand-in", "none"],
)
def test_a_timeline(devices: list[Any], window: Any, panels: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = charts.samples({"file": "samples.csv", "timeline": devices, "window": window})
    assert (size(drawn)[1] > 600) == (panels == 2)
    assert curves.samples({"file": "samples.csv", "timeline": devices, "window": window}) == drawn
