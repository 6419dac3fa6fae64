"""Figures as people read them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import run, runs, verdict

from gpudebug.core.records import Verdict
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.statistics.numbers import buckets, thin

VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, 100.0]))
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=300)
Point = tuple[float, float | None, float | None]


def series(rows: list[tuple[float | None, float | None]]) -> list[Point]:
    return [(0.2 * at, *values) for at, values in enumerate(rows)]


@given(ROWS, st.integers(2, 60))
def test_short_in_order_and_of_the_points_themselves(
    rows: list[tuple[float | None, float | None]], most: int
) -> None:
    points = series(rows)
    found = thin(points, most, (1, 2))
    assert len(found) <= most
    assert len(found) == len(points) or len(points) > most
    assert all(a[0] < b[0] for a, b in pairwise(found))
    assert set(found) <= set(points)
    assert found[:1] == points[:1]
    assert found[-1:] == points[-1:]


@given(ROWS.filter(lambda rows: len(rows) > 20), st.integers(8, 20))
def test_each_bucket_keeps_its_extremes_and_a_gap(
    rows: list[tuple[float | None, float | None]], most: int
) -> None:
    points = series(rows)
    kept = set(thin(points, most, (1, 2)))
    # At most an extreme of each kind, and a gap, of two columns.
    for start, stop in buckets(len(points), (most - 2) // 6):
        bucket, left = points[start:stop], [p for p in points[start:stop] if p in kept]
        for column in (1, 2):
            before, after = ([p[column] for p in side] for side in (bucket, left))
            assert (None in before) == (None in after) or all(v is None for v in _column(points, column))
            known, told = ([v for v in side if v is not None] for side in (before, after))
            assert (min(known, default=None), max(known, default=None)) == (
                min(told, default=None),
                max(told, default=None),
            )


def _column(points: list[Point], column: int) -> list[float | None]:
    return [p[column] for p in points]


@given(st.integers(0, 400), st.integers(0, 50))
def test_buckets_hold_every_point_between_the_ends_once(length: int, count: int) -> None:
    found = list(buckets(length, count))
    held = [at for start, stop in found for at in range(start, stop)]
    assert held == (list(range(1, length - 1)) if found else [])
    assert len(found) <= count


def test_one_peak_among_a_million_points_stays() -> None:
    points = [(float(at), 1.0) for at in range(1_000_000)]
    points[123_457] = (123_457.0, 99.0)
    points[777_777] = (777_777.0, 0.0)
    found = thin(points, 1000)
    assert {points[123_457], points[777_777]} <= set(found)
    assert len(found) <= 1000


def test_a_value_that_is_never_known_costs_no_room() -> None:
    points = [(float(at), float(at % 7), None) for at in range(1000)]
    assert thin(points, 100, (1, 2)) == thin(points, 100, (1,))
    nothing = [(float(at), None) for at in range(100)]
    assert thin(nothing, 10) == [nothing[0], nothing[-1]]


def test_a_series_has_two_ends() -> None:
    with pytest.raises(ValueError, match="two ends"):
        thin([(0.0, 1.0)], 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (0.0, "0.0%"), (27.44, "27.4%"), (99.96, "100.0%"), (-0.01, "0.0%")],
)
def test_percent(value: float | None, text: str) -> None:
    assert numbers.percent(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "steps/s", "unknown"),
        (6.0999, "steps/s", "6.1 steps/s"),
        (13.449, "", "13.4"),
        (0.0, "s", "0 s"),
        (0.012345, "s", "0.0123 s"),
        (999.4, "", "999"),
        (999.6, "", "1000"),
        (1234.5, "", "1234"),
        (123456.7, "steps/s", "123457 steps/s"),
        (-0.5, "", "-0.5"),
    ],
)
def test_number(value: float | None, unit: str, text: str) -> None:
    assert numbers.number(value, unit) == text


@given(st.floats(0.001, 1e12))
def test_a_number_has_no_positive_exponent_and_three_true_digits(value: float) -> None:
    text = numbers.number(value)
    assert "e+" not in text
    assert float(text) == pytest.approx(value, rel=5.1e-3)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (None, "unknown"),
        ({"value": 33.6}, "+33.6pp"),
        ({"value": 33.6, "low": None, "high": None}, "+33.6pp"),
        ({"value": 33.62, "low": 31.18, "high": 36.04}, "+33.6pp (95% CI +31.2 to +36.0)"),
        ({"value": -3.0, "low": -6.0, "high": 0.0}, "-3.0pp (95% CI -6.0 to +0.0)"),
        ({"value": -0.04, "low": -0.01, "high": 4.0}, "+0.0pp (95% CI +0.0 to +4.0)"),
    ],
)
def test_points(estimate: dict[str, Any] | None, text: str) -> None:
    assert numbers.points(estimate) == text


@pytest.mark.parametrize(
    ("before", "after", "unit", "text"),
    [
        (None, None, None, "unknown"),
        (6.1, 13.4, None, "6.1 to 13.4 steps/s"),
        (6.1, 13.4, "step", "6.1 to 13.4 steps/s"),
        (6.1, None, "step", "6.1 to unknown steps/s"),
        (None, 13.4, "step", "unknown to 13.4 steps/s"),
        (0.25, 0.5, "epoch", "0.25 to 0.5 epochs/s"),
        (1280.0, 2560.0, "samples", "1280 to 2560 samples/s"),
        (64.0, 128.0, "timesteps", "64 to 128 timesteps/s"),
    ],
)
def test_throughput(before: float | None, after: float | None, unit: str | None, text: str) -> None:
    assert numbers.throughput_change(before, after, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (5e-6, "5 us"),
        (0.0005, "500 us"),
        (0.0415, "41.5 ms"),
        (2.345, "2.35 s"),
        (250, "4 min 10 s"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert numbers.seconds(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (7.34, "7.3 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min 0 s"),
        (250, "4 min 10 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


def as_json(found: Verdict) -> dict[str, Any]:
    return found.model_dump(mode="json")


def test_a_result_is_derived_from_the_verdict_alone() -> None:
    found = as_json(verdict(runs(27.4, 27.4, rate=6.1), runs(61, 61, rate=13.4)))
    assert numbers.result_fields(found) == {
        "gpu util before": "27.4% (level during the trial, 2 runs)",
        "gpu util after": "61.0%",
        "improvement": numbers.points(found["delta"]),
        "training": "SUCCESS",
        "loss": "CONVERGING",
        "throughput": "6.1 to 13.4 steps/s",
    }
    assert found["delta"]["value"] == pytest.approx(33.6)


def test_a_result_says_unknown_where_nothing_was_measured() -> None:
    found = as_json(verdict(runs(27.4, rate=6.1), [run(window=None, rate=None)]))
    fields = numbers.result_fields(found)
    assert (fields["gpu util after"], fields["improvement"]) == ("unknown", "unknown")
    assert fields["throughput"] == "6.1 to unknown steps/s"


def test_another_metric_has_a_line_of_its_own() -> None:
    before, after = [run(28, latency_p50_s=0.0123)] * 4, [run(28, rate=6.0, latency_p50_s=0.00941)] * 3
    terms = {"metric": "latency_p50", "direction": "lower", "success": 1.2, "failure": 1.05}
    found = as_json(verdict(before, after, **terms))
    fields = numbers.result_fields(found)
    assert fields["metric"] == "latency_p50 12.3 to 9.41 ms"
    assert fields["improvement"] == numbers.factor(found["delta"])
    assert fields["improvement"].startswith("1.31x (95% CI 1.")
    assert (fields["gpu util before"], fields["gpu util after"]) == (
        "28.0% (level during the trial, 4 runs)",
        "28.0%",
    )
    assert numbers.same_figures(found, fields)
    assert not numbers.same_figures(found, {**fields, "metric": "latency_p50 12.3 to 9.40 ms"})


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (None, "unknown"),
        ({"value": 1.314, "low": 1.236, "high": 1.384}, "1.31x (95% CI 1.24x to 1.38x)"),
        ({"value": 1.2}, "1.20x"),
    ],
)
def test_factor(estimate: dict[str, Any] | None, text: str) -> None:
    assert numbers.factor(estimate) == text


@pytest.mark.parametrize(
    ("name", "before", "after", "text"),
    [
        ("steps_per_s", 6.1, 13.4, "steps_per_s 6.1 to 13.4 steps/s"),
        ("step_time_p50", 1.64, 0.75, "step_time_p50 1.64 to 0.75 s"),
        ("step_time_p50", 0.164, 1.5, "step_time_p50 164 to 1500 ms"),
        ("log:fps", 24.0, None, "log:fps 24 to unknown"),
        ("latency_p50", None, 0.01, "latency_p50 unknown to 10 ms"),
        ("latency_p50", None, None, "latency_p50 unknown"),
    ],
)
def test_a_metric_before_and_after(name: str, before: float | None, after: float | None, text: str) -> None:
    found = {"metric": name, "metric_before": before, "metric_after": after}
    assert numbers.metric_change(found) == text


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        (Metric(), 61.04, "61.0%"),
        (Metric("steps_per_s"), 13.4, "13.4 steps/s"),
        (Metric("latency_p50"), 0.0123, "12.3 ms"),
        (Metric("step_time_p95"), 1.5, "1.5 s"),
        (Metric("log:fps"), 24.0, "24"),
        (Metric("steps_per_s"), None, "unknown"),
        (Metric("latency_p50"), None, "unknown"),
    ],
)
def test_a_metrics_figure(metric: Metric, value: float | None, text: str) -> None:
    assert numbers.figure(metric, value) == text


def test_an_interval_has_the_unit_of_its_value() -> None:
    assert numbers.bounds(Metric("steps_per_s"), 18.0, (16.55, 19.61)) == "16.6 to 19.6"
    assert numbers.bounds(Metric("latency_p50"), 0.9, (0.8, 1.1)) == "800 to 1100"


def test_notes_begin_with_why() -> None:
    found = as_json(verdict(runs(28, 28), runs(61, 62, 61, 62, rate=4.5)))
    assert numbers.result_notes(found) == "; ".join([found["why"], *found["notes"]])
    assert "hollow gain" in numbers.result_notes(found)
    assert numbers.result_notes({"why": "delta"}) == "delta"


@pytest.mark.parametrize("key", ["gpu util before", "gpu util after", "improvement"])
def test_an_edited_figure_is_noticed(key: str) -> None:
    found = as_json(verdict(runs(28, 28), runs(61, 62, rate=11)))
    fields = numbers.result_fields(found)
    assert numbers.same_figures(found, {k: f" {v} " for k, v in fields.items()})
    assert not numbers.same_figures(found, {**fields, key: "99.0%"})
    assert not numbers.same_figures(found, {k: v for k, v in fields.items() if k != key})


@pytest.mark.parametrize(
    ("values", "text"), [((), ""), ((0, 12, 13, 50, 99, 100, 120, -3, 1e308), "▁▁▂▅███▁█")]
)
def test_a_sparkline_has_a_block_a_value(values: tuple[float, ...], text: str) -> None:
    assert numbers.sparkline(values) == text


@given(st.lists(st.floats(-10, 200), max_size=40))
def test_a_sparkline_rises_with_its_values(values: list[float]) -> None:
    line = numbers.sparkline(sorted(values))
    assert len(line) == len(values)
    assert list(line) == sorted(line)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (7.34, "7.3 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1.0 min"),
        (250, "4.2 min"),
        (3569, "59 min"),
        (3590, "1.0 h"),
        (47.6 * 3600, "2.0 d"),
        (47.4 * 3600, "47 h"),
        (365 * 86400, "365 d"),
    ],
)
def test_span(seconds: float, text: str) -> None:
    assert numbers.span(seconds) == text


def test_sparklines_have_eight_levels() -> None:
    values = [-5, 0, 12.4, 12.5, 99, 100, 900]
    assert numbers.sparkline(values) == "▁▁▁▂████"[: len(values)]
    assert numbers.sparkline(values, letters=numbers.INK) == "...:@@@"
    assert numbers.sparkline([1, 3], top=4.0) == "▃▇"


@given(st.lists(st.floats(0, 100), max_size=200), st.integers(1, 40))
def test_shrunk_keeps_the_range_and_the_order(values: list[float], count: int) -> None:
    found = numbers.shrunk(values, count)
    assert len(found) == min(count, len(values))
    if values:
        assert min(values) - 1e-9 <= min(found) and max(found) <= max(values) + 1e-9
    assert numbers.shrunk(sorted(values), count) == sorted(numbers.shrunk(sorted(values), count))


def test_shrunk_takes_means_of_equal_parts() -> None:
    assert numbers.shrunk([0, 10, 20, 30], 2) == [5, 25]
    assert numbers.shrunk([1, 2], 40) == [1, 2]
