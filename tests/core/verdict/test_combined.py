from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.powered import busy
from tests.support.trials import run, runs

from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.combined import combined


def test_the_contrast_of_two_baselines() -> None:
    found = combined(Metric(), runs(19, 21, 20, 20, rate=5.0), runs(59, 61, 60, 60, rate=15.0))
    assert found.delta is not None and found.ratio is not None
    assert found.delta.value == pytest.approx(40.0)
    assert found.delta.low is not None and found.delta.high is not None
    assert 30.0 < found.delta.low < 40.0 < found.delta.high < 50.0
    assert found.ratio.value == pytest.approx(3.0)
    assert (found.before, found.after) == (20.0, 60.0)
    assert (found.throughput_before, found.throughput_after, found.unit) == (5.0, 15.0, "step")


def test_another_metric_is_a_ratio_that_is_above_one_where_it_is_better() -> None:
    before, after = runs(20, 20, rate=5.0, latency_p50_s=0.2), runs(60, 60, rate=5.0, latency_p50_s=0.1)
    found = combined(Metric("latency_p50", lower=True), before, after)
    assert found.delta is not None
    assert found.delta.value == pytest.approx(2.0)
    assert (found.metric_before, found.metric_after) == (pytest.approx(0.2), pytest.approx(0.1))


@pytest.mark.parametrize(
    ("after", "delta", "ratio"),
    [
        ([run(60.0, None)], True, False),
        ([run(None, 15.0)], False, True),
        ([run(60.0, 15.0), run(None, None)], False, False),
        ([run(60.0, 15.0, unit="sample")], True, False),
    ],
)
def test_what_a_run_lacks_is_unknown(after: list[Any], delta: bool, ratio: bool) -> None:
    found = combined(Metric(), runs(20, 20), after)
    assert (found.delta is not None, found.ratio is not None) == (delta, ratio)


@given(st.lists(st.floats(1, 99), min_size=1, max_size=6), st.lists(st.floats(1, 99), min_size=1, max_size=6))
def test_the_interval_holds_the_difference_of_the_means(before: list[float], after: list[float]) -> None:
    found = combined(Metric(), runs(*before), runs(*after))
    assert found.delta is not None and found.delta.low is not None and found.delta.high is not None
    assert found.delta.value == pytest.approx(sum(after) / len(after) - sum(before) / len(before), abs=1e-6)
    assert found.delta.low < found.delta.value < found.delta.high


def test_the_contrast_is_of_the_devices_that_trials_are_judged_by() -> None:
    """The fix of a straggler: the GPU that others waited for gains 60 points, the mean of both 28."""
    before = [run(64, 5.0, devices=(busy(30, 264.0), busy(98, 264.0, 1))) for _ in range(3)]
    after = [run(92, 15.0, devices=(busy(90, 492.0), busy(94, 492.0, 1))) for _ in range(3)]
    for devices, ends in ((None, (64, 92)), ("least", (30, 90)), ("working", (30, 90))):
        found = combined(Metric(), before, after, devices=devices)
        assert found.delta is not None
        assert (found.before, found.after) == pytest.approx(ends)
        assert found.delta.value == pytest.approx(ends[1] - ends[0])
