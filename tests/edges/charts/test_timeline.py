"""The utilisation of runs over time, of one device or many, with gaps or without a timeline at all."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.support.campaign_data import a_run

from gpudebug.edges.charts import canvas, timeline


def a_device(*points: Any) -> dict[str, Any]:
    return {"index": 0, "uuid": "GPU-0", "name": "", "points": [[t, u, None] for t, u in points]}


def values(column: Any) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 3) for v in column]


def test_one_device_is_drawn_as_it_was_read_with_its_gaps() -> None:
    run = a_run("r", timeline=[a_device((1.0, 10.0), (2.0, 20.0), (3.0, None), (4.0, 40.0))])
    found = timeline.series(run)
    assert found is not None
    assert values(found.times) == [1, 2, 3, 4]
    assert values(found.mean) == values(found.least) == values(found.most) == [10, 20, None, 40]


def test_several_devices_are_their_mean_and_the_band_they_fill() -> None:
    made = [a_device((1.0, 10.0), (3.0, 30.0)), a_device((1.0, 90.0), (2.0, 80.0), (3.0, None))]
    found = timeline.series(a_run("r", timeline=made))
    assert found is not None
    assert values(found.mean) == [50, 50, 30]
    assert values(found.least) == [10, 20, 30]
    assert values(found.most) == [90, 80, 30]


def test_a_device_that_was_lost_is_left_out_of_the_mean() -> None:
    made = [a_device((1.0, 10.0), (2.0, 10.0)), a_device((2.0, 90.0), (3.0, 80.0))]
    found = timeline.series(a_run("r", timeline=made))
    assert found is not None
    assert values(found.mean) == [10, 50, 80]


def test_where_only_the_spark_was_kept_it_is_drawn() -> None:
    found = timeline.series(a_run("r", timeline=[], spark=[10.0, 30.0], duration_s=20.0))
    assert found is not None
    assert values(found.times) == [5, 15]
    assert values(found.mean) == [10, 30]


NOTHING = {
    "no samples": {"timeline": [], "spark": []},
    "no length": {"timeline": [], "duration_s": None},
    "nothing known": {"timeline": [a_device((1.0, None))], "spark": []},
}


@pytest.mark.parametrize("known", NOTHING.values(), ids=NOTHING)
def test_of_nothing_nothing_is_drawn(known: dict[str, Any]) -> None:
    run = a_run("r", **known)
    assert timeline.series(run) is None
    assert timeline.typical(["r"], {"r": run}) is None
    with canvas.figure(3, 2) as made:
        axes = made.subplots()
        timeline.draw(axes, run, "#000000")
        assert not axes.lines


def test_the_run_in_the_middle_stands_for_the_others() -> None:
    runs = {f"r{u}": a_run(f"r{u}", util=u) for u in (10, 50, 20)}
    runs["unknown"] = a_run("unknown", utilisation=None)
    names = ["r50", "r10", "missing", "unknown", "r20"]
    assert (timeline.typical(names, runs) or {})["name"] == "r20"
    assert (timeline.typical(["r50", "r10"], runs) or {})["name"] == "r10"
    assert (timeline.typical(["unknown"], runs) or {})["name"] == "unknown"
    assert timeline.typical([], runs) is None


def test_only_what_is_counted_is_drawn_in_full() -> None:
    run = a_run("r", timeline=[a_device((1.0, 10.0), (2.0, 20.0), (3.0, 30.0))])
    with canvas.figure(3, 2) as made, warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = made.subplots()
        timeline.draw(axes, {**run, "window": {"start_s": 1.5, "end_s": 3.0}}, "#000000", filled=True)
        timeline.frame(axes)
        whole, counted = axes.lines
        assert canvas.png(made)
    assert whole.get_alpha() < 1
    assert values(counted.get_ydata()) == [None, 20, 30]
