"""Latencies as evidence: what is cut, what is summarised, and how sure a percentile is."""

from __future__ import annotations

import math
import random
from statistics import median, stdev

import pytest

from gpudebug.core.evidence.latency import figures, latency_evidence, quantile, quantile_error
from gpudebug.core.trainlog.latency import KEPT, PrintedLatencies
from gpudebug.core.trainlog.reader import LogReader


def printed(*lines: str, every: float | None = None) -> PrintedLatencies:
    """The latencies of a program that prints these lines, one each `every` seconds."""
    reader = LogReader()
    for place, line in enumerate(lines):
        reader.feed(f"{line}\n".encode(), None if every is None else place * every)
    return reader.summary().latencies


def bursty(count: int, seed: int, alike: float = 0.0) -> list[float]:
    """Latencies around 10 ms; `alike` is the correlation of neighbours."""
    source, state, values = random.Random(seed), 0.0, []
    for _ in range(count):
        state = alike * state + math.sqrt(1 - alike**2) * source.gauss(0, 1)
        values.append(0.010 * math.exp(0.1 * state))
    return values


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([f"latency: {v} ms" for v in (10, 11, 12, 13, 40)], 0.012),
        (["mean latency: 12 ms, median latency: 11 ms"], 0.011),
        (["mean latency: 12 ms"], None),
        ([f"Loop {i}: 0.2{i}s" for i in range(5)], 0.22),
        (["step 1 loss 2"], None),
    ],
)
def test_the_median_of_the_latencies(lines: list[str], expected: float | None) -> None:
    found = figures(printed(*lines)).get("latency_p50_s")
    assert found == (expected if expected is None else pytest.approx(expected))


def test_compilation_and_cold_start_are_cut_without_any_window() -> None:
    lines = ["latency: 2400 ms", *(f"latency: {90 - i} ms" for i in range(14))]
    lines += [f"latency: {1000 * v:.3f} ms" for v in bursty(300, 1)]
    found = latency_evidence(printed(*lines))
    assert found is not None
    assert found.warmup + (found.count or 0) == 315
    assert 10 <= found.warmup <= 25
    assert (found.first_s, found.p50_s) == (pytest.approx(2.4), pytest.approx(0.010, rel=0.02))
    assert found.p95_s is not None
    assert found.p99_s is not None
    assert found.p50_s < found.p95_s < found.p99_s < 0.02


def test_a_fixed_warm_up_cuts_by_time() -> None:
    lines = [f"latency: {50 if i < 30 else 10} ms" for i in range(60)]
    found = latency_evidence(printed(*lines, every=0.1), 3.0)
    assert found is not None
    assert (found.count, found.warmup, found.p50_s) == (30, 30, pytest.approx(0.01))


@pytest.mark.parametrize(("count", "known"), [(19, (False, False)), (20, (True, False)), (100, (True, True))])
def test_a_tail_needs_enough_values(count: int, known: tuple[bool, bool]) -> None:
    found = latency_evidence(printed(*["latency: 10 ms"] * count))
    assert found is not None
    assert (found.p95_s is not None, found.p99_s is not None) == known


def test_of_a_flood_an_even_spread_is_kept_and_all_are_counted() -> None:
    lines = [f"latency: {1000 * v:.4f} ms" for v in bursty(10 * KEPT, 2)]
    series = printed(*lines)
    assert len(series.values) <= KEPT
    assert series.count == 10 * KEPT
    found = latency_evidence(series)
    assert found is not None
    assert (found.count or 0) + found.warmup == 10 * KEPT
    assert found.p50_s == pytest.approx(0.010, rel=0.02)


@pytest.mark.parametrize("q", [0.5, 0.95])
@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_the_error_of_a_percentile_is_what_repeating_shows(q: float, alike: float) -> None:
    """Latencies that come in bursts say less: the error says so, as repeated runs do."""
    series = [bursty(300, seed, alike) for seed in range(200)]
    spread = stdev(math.log(quantile(sorted(values), q)) for values in series)
    claimed = median(quantile_error(values, q) for values in series)
    assert claimed == pytest.approx(spread, rel=0.35)


def test_equal_latencies_have_no_error() -> None:
    assert quantile_error([0.01] * 50, 0.5) == 0
