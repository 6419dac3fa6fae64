"""What differs in the surroundings of baseline and trial, as the report shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.support.trials import run

from gpudebug.core.records import Conditions, DeviceEvidence, Spread
from gpudebug.engine.report import hypotheses


def side(*clocks: float | None, worst: float = 1410.0) -> list[Any]:
    devices = tuple(
        DeviceEvidence(
            index=n,
            uuid=f"GPU-{n}",
            name="x",
            sm_clock_mhz=Spread(mean=c, p5=c, p50=c, p95=c) if c is not None else None,
            throttle={} if c is not None else None,
        )
        for n, c in enumerate(clocks)
    )
    conditions = Conditions(sm_clock_mhz=worst, throttle={})
    return [SimpleNamespace(evidence=run(devices=devices, conditions=conditions))]


def test_the_clock_of_each_gpu_is_compared_with_its_own() -> None:
    """The worst of all would be the one that idles on both sides."""
    found = hypotheses._clocks(side(900, 1410, 1410, worst=900), side(900, 1410, 1200, worst=900))
    assert found == [("clocks of GPU 2", "1410 MHz", "1200 MHz")]
    assert hypotheses._clocks(side(900, 1410), side(900, 1400)) == []
    assert hypotheses._clocks(side(1410), side(1000)) == [("clocks", "1410 MHz", "1000 MHz")]


def test_runs_without_figures_of_each_device_have_the_worst_ones() -> None:
    found = hypotheses._clocks(side(None, worst=1410), side(None, worst=1000))
    assert found == [("mean clock", "1410 MHz", "1000 MHz")]
