"""What a log shows of speed beyond its step rate."""

from __future__ import annotations

import math
import random
from itertools import count
from statistics import median, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.evidence import speed
from gpudebug.core.evidence.speed import latency_evidence, latency_figures, quantile, quantile_error
from gpudebug.core.records import Window
from gpudebug.core.trainlog.latency import KEPT, PrintedLatencies
from gpudebug.core.trainlog.reader import LogReader, LogSummary

WINDOW = Window(start_s=3.0, end_s=8.0, samples=20, rule="steps")


def summary(*lines: str, patterns: dict[str, str] | None = None, times: bool = True) -> LogSummary:
    """The log of a program that prints one line a second, from second 0."""
    reader = LogReader(patterns)
    for second, line in zip(count(), lines, strict=False):
        reader.feed(f"{line}\n".encode(), float(second) if times else None)
    return reader.summary()


STEPS = [f"step {i}/10 loss {2 - i / 10}" for i in range(1, 11)]


@pytest.mark.parametrize(
    ("lines", "flags", "rates", "expected"),
    [
        (["batch size: 8"], {}, (10.0, 10.0), (80.0, "batch")),
        (["batch size: 8"], {"batch_size": "4"}, (10.0, 10.0), (80.0, "batch")),
        ([], {"batch_size": "4"}, (10.0, 10.0), (40.0, "flags")),
        (["100 samples/s"] * 9, {}, (10.0, 10.0), (100.0, "printed")),
        (["100 samples/s"] * 9, {"batch_size": "4"}, (None, None), (100.0, "printed")),
        (["100 samples/s"] * 9, {"batch_size": "4"}, (10.0, 10.0), (40.0, "flags")),
        ([], {}, (10.0, 10.0), (None, None)),
        ([], {"batch_size": "4"}, (None, 2.0), (None, None)),
    ],
)
def test_samples_per_second_and_what_tells_them(
    lines: list[str],
    flags: dict[str, str],
    rates: tuple[float | None, float | None],
    expected: tuple[float | None, str | None],
) -> None:
    assert speed.samples(summary(*lines), WINDOW, rates, flags) == expected


def test_a_log_that_counts_samples_tells_them_itself() -> None:
    lines = [f"Train Epoch: 1 [{640 * i}/6000 ({i * 10}%)]\tLoss: 1.{i}" for i in range(10)]
    log = summary(*lines)
    assert log.step_unit == "samples"
    assert speed.samples(log, WINDOW, (None, 640.0), {"batch_size": "64"}) == (640.0, "counted")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("412.5 samples/s", 412.5),
        ("1,412 images/sec", 1412),
        ("2.5k img/s", 2500),
        ("throughput: 12 sequences per second", 12),
        ("{'train_samples_per_second': '285.8'}", 285.8),
        ("samples_per_sec=97.5 loss=1", 97.5),
        ("eval_samples_per_second: 1779", None),
        ("1e3 samples/s", 1000),
        ("0 samples/s", None),
        ("samples/s", None),
        ("12 samples/step", None),
        ("iter time (s): 0.100 samples/sec: 160.0", 160.0),
        ("step 10 loss 3.1 img/s 320", None),
        ("throughput 320 img/s 0.05 s/step", 320.0),
        ("lr: 0.02  img/s: 320.0  loss: 6.9 (6.8)", 320.0),
    ],
)
def test_how_samples_are_printed(line: str, expected: float | None) -> None:
    assert speed.printed_samples([line]) == expected


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=20))
def test_lines_after_equal_numbers_of_samples_tell_the_rate_of_all(seconds: list[float]) -> None:
    lines = [f"{100 / s:.12f} samples/s" for s in seconds]
    assert speed.printed_samples(lines) == pytest.approx(100 * len(seconds) / sum(seconds), rel=1e-6)


def test_only_the_window_counts() -> None:
    rates = [1, 1, 1, 50, 50, 50, 50, 50, 50, 2, 2]
    log = summary(*(f"{r} samples/s" for r in rates))
    assert speed.samples(log, WINDOW, (None, None), {}).per_s == pytest.approx(50)


def test_a_summary_at_the_end_counts_where_the_window_has_none() -> None:
    log = summary(*STEPS, "{'train_samples_per_second': '285.8'}")
    assert speed.samples(log, WINDOW, (None, None), {}).per_s == pytest.approx(285.8)


def test_what_the_warm_up_printed_alone_does_not() -> None:
    log = summary("batch size: 8", "50 samples/s", *STEPS)
    assert speed.samples(log, WINDOW, (None, None), {}).per_s is None


def test_step_times_need_enough_values() -> None:
    def times(number: int) -> LogSummary:
        return summary(
            *(f"step {i} loss 1.{i} step_time: 0.{i % 3 + 1}s" for i in range(number)), times=False
        )

    assert speed.step_times(times(4), None) == (None, None)
    assert speed.step_times(times(7), None) == (0.2, None)
    p50, p95 = speed.step_times(times(60), None)
    assert (p50, p95) == (pytest.approx(0.2), pytest.approx(0.3))


def test_own_figures_are_means_over_the_window() -> None:
    patterns = {"fps": r"fps (?P<value>\S+)", "odd": r"odd (?P<value>\S+)", "none": "none(?P<value>x)"}
    log = summary(*(f"fps {i} odd {'nan' if i == 5 else i}" for i in range(10)), patterns=patterns)
    assert speed.logged(log, WINDOW) == {"fps": pytest.approx(5.5)}


def test_a_log_that_says_nothing_has_no_figure() -> None:
    found = speed.figures(summary(*STEPS), WINDOW, (1.0, 1.0), {})
    assert {key: value for key, value in found.items() if value} == {}


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
    found = latency_figures(printed(*lines)).get("latency_p50_s")
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
