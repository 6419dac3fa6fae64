"""One side of a comparison as it is shown."""

from __future__ import annotations

import pytest
from tests.support.comparisons import CPU, run

from gpudebug.core.answers.answer import plain
from gpudebug.core.answers.compare import CompareSide, RateSpread, WallTimes
from gpudebug.core.compare import sides
from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.records import DeviceEvidence, ProbeEvidence
from gpudebug.core.trainlog.latency import Latency


def side(*runs: ComparedRun) -> CompareSide:
    return sides.side("A", runs)


def test_a_side_tells_mean_least_and_most() -> None:
    shown = side(run(rate=10, wall=50, peak_rss_mb=100), run(rate=20, wall=70, peak_rss_mb=300))
    assert shown.throughput == RateSpread(mean=15, min=10, max=20, unit="step")
    assert shown.wall_time == WallTimes(mean_s=60, min_s=50, max_s=70)
    assert (shown.latency, shown.peak_rss_mb, shown.runs) == (None, 300, ("0001-x", "0001-x"))


def test_latencies_are_those_of_all_runs() -> None:
    shown = side(
        run(latency=Latency(0.2, least=0.1, most=0.5, first=0.9, count=40, warmup=5)),
        run(latency=Latency(0.4, least=0.2, most=0.6, first=0.3, count=40, warmup=0)),
    )
    expected = {"mean_s": 0.3, "min_s": 0.1, "max_s": 0.6, "first_s": 0.9, "count": 80, "warmup": 5}
    assert plain(shown.latency) == pytest.approx(expected)


def test_device_memory_is_none_where_the_cpu_stands_in() -> None:
    """What the device reports as used there is the program's own memory."""
    on_gpu = side(run(peak_rss_mb=100, peak_device_mb=900))
    assert (on_gpu.peak_rss_mb, on_gpu.peak_device_mb) == (100, 900)
    stand_in = (DeviceEvidence(index=0, uuid="CPU", name="x"),)
    on_cpu = side(run(devices=stand_in, facts={"devices": (CPU,)}, peak_rss_mb=100, peak_device_mb=120))
    assert (on_cpu.peak_rss_mb, on_cpu.peak_device_mb) == (120, None)


def test_what_is_unknown_is_none_and_never_zero() -> None:
    shown = side(run(rate=None, window=None, peak_rss_mb=0.0))
    assert [getattr(shown, key) for key in ("utilisation", "throughput", "latency", "peak_rss_mb")] == [
        None
    ] * 4
    assert "too short" in str(shown.utilisation_reason)


def test_a_side_tells_what_the_trainings_told_of_themselves() -> None:
    inside = [ProbeEvidence(pid=1, steps=9, data_wait_share=share) for share in (0.2, 0.4)]
    found = sides.side("x", [run(probe=inside[0]), run(probe=inside[1])])
    assert found.probe is not None
    assert found.probe.data_wait_share == pytest.approx(0.3)
    silent = sides.side("x", [run(probe_reason="no process told")])
    assert (silent.probe, silent.probe_reason) == (None, "no process told")


def test_calls_of_a_section_that_decide_are_shown_as_throughput() -> None:
    found = sides.side("A", [run(rate=None), run(rate=None)], calls=(10.0, 20.0))
    assert found.throughput == RateSpread(mean=15, min=10, max=20, unit="call")
