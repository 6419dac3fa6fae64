"""A trace drawn: one device or many, or none at all."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from tests.support.pictures import size

from gpudebug.edges import charts
from gpudebug.edges.charts import canvas, shares


def device(number: int, **more: Any) -> dict[str, Any]:
    parts = {"compute_s": 3.0, "memory_s": 1.0, "communication_s": 1.0}
    return {"device": number, "busy_share": 0.4, **parts, **more}


def answer(*devices: dict[str, Any], operators: int = 3) -> dict[str, Any]:
    causes = [{"cause": "data_loading", "seconds": 4.0}, {"cause": "queued", "seconds": 0.0}]
    return {
        "file": "trace.json",
        "span_s": 12.0,
        "devices": list(devices),
        "gaps": {"by_cause": causes} if devices else None,
        "operators": [
            {"name": f"$aten::{i}_{'x' * 20 * i}", "self_s": 1.0 / (i + 1)} for i in range(operators)
        ],
    }


DRAWN = {
    "one device": answer(device(0)),
    "many": answer(*map(device, range(40)), operators=100),
    "none": answer(),
    "nothing at all": answer(operators=0),
    "an unknown share": answer(
        device(0, busy_share=None, compute_s=None, memory_s=None, communication_s=0.0)
    ),
}


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_any_trace_can_be_drawn(drawn: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        width, height = size(charts.trace(drawn))
    assert width == (15 if drawn["devices"] else 8) * canvas.DPI
    assert 300 < height < 800


def test_the_parts_of_a_device_fill_its_time() -> None:
    with canvas.figure(5, 4) as made:
        axes = made.subplots()
        shares._occupied(axes, [device(0)])
        widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([0.24, 0.08, 0.08, 0.6])
