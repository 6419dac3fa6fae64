"""Statistics against direct implementations, published tables and simulation."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.statistics import intervals

UTILISATION = st.floats(0, 100, allow_nan=False)
RUNS = st.lists(st.floats(1, 99), min_size=1, max_size=8)


def ar1(rng: random.Random, count: int, *, rho: float, mean: float = 0.0, sd: float = 1.0) -> list[float]:
    """A stationary AR(1) series: its autocorrelation time is (1 + rho) / (1 - rho)."""
    value = rng.gauss(0, sd)
    out = []
    for _ in range(count):
        out.append(mean + value)
        value = rho * value + math.sqrt(1 - rho * rho) * rng.gauss(0, sd)
    return out


def direct_scores(values: Sequence[float]) -> list[float]:
    """MSER's statistic at every truncation point, from its definition."""
    means = [sum(values[i : i + 5]) / 5 for i in range(0, len(values) // 5 * 5, 5)]
    scores = []
    for start in range(len(means)):
        left = means[start:]
        mean = sum(left) / len(left)
        scores.append(sum((m - mean) ** 2 for m in left) / len(left) ** 2)
    return scores


@given(st.lists(UTILISATION, min_size=20, max_size=120))
def test_mser5_minimises_its_score_over_the_first_half(values: list[float]) -> None:
    found = intervals.mser5(values)
    scores = direct_scores(values)
    half = len(scores) // 2
    assert found % 5 == 0
    if found // 5 <= half:
        assert scores[found // 5] == pytest.approx(min(scores[: half + 1]), rel=1e-6, abs=1e-9)
    else:
        assert scores[found // 5] < min(scores[: half + 1]) / 9.99
        assert len(scores) - found // 5 >= max(4, len(scores) // 4)


@pytest.mark.parametrize("level", [0.0, 15.0, 27.3, 33.333, 0.1 + 0.2, 100.0])
@pytest.mark.parametrize("count", [20, 99, 150, 157])
def test_a_constant_series_has_no_warm_up(level: float, count: int) -> None:
    assert intervals.mser5([level] * count) == 0


@pytest.mark.parametrize("count", [0, 1, 5, 19])
def test_too_few_values_have_no_warm_up(count: int) -> None:
    assert intervals.mser5([float(i) for i in range(count)]) == 0


@pytest.mark.parametrize("lead", [10, 30, 50, 75, 90, 105])
def test_a_start_up_is_cut_whether_shorter_or_longer_than_the_training(lead: int) -> None:
    rng = random.Random(lead)
    values = [0.0] * lead + ar1(rng, 150 - lead, rho=0.5, mean=30, sd=2)
    found = intervals.mser5(values)
    assert lead <= found <= lead + 40
    left = values[found:]
    assert sum(left) / len(left) == pytest.approx(30, abs=2)


def test_the_end_of_a_steady_series_is_not_taken_for_all_of_it() -> None:
    rng = random.Random(5)
    cut = [intervals.mser5(ar1(rng, 150, rho=0.7, mean=28, sd=11)) for _ in range(200)]
    assert sum(c > 75 for c in cut) <= 2
    assert sum(cut) / len(cut) < 20


@given(
    st.lists(
        st.tuples(UTILISATION, st.integers(1, 5)),
        min_size=1,
        max_size=40,
    )
)
def test_a_weighted_spread_is_that_of_the_values_repeated(pairs: list[tuple[float, int]]) -> None:
    found = intervals.spread([v for v, _ in pairs], [0.25 * w for _, w in pairs])
    repeated = sorted(v for v, w in pairs for _ in range(w))
    assert found.mean == pytest.approx(sum(repeated) / len(repeated), abs=1e-9)
    for share, value in ((0.05, found.p5), (0.5, found.p50), (0.95, found.p95)):
        rank = max(1, math.ceil(share * len(repeated) - 1e-9))
        assert value == repeated[rank - 1]
    assert found.p5 <= found.p50 <= found.p95


@pytest.mark.parametrize(
    ("rho", "tolerance"), [(-0.5, 0.35), (0.0, 0.2), (0.5, 0.25), (0.7, 0.25), (0.9, 0.35)]
)
def test_effective_size_of_an_autoregression(rho: float, tolerance: float) -> None:
    rng = random.Random(17)
    sizes = [intervals.effective_size(ar1(rng, 2000, rho=rho)) for _ in range(10)]
    expected = min(2000.0, 2000 * (1 - rho) / (1 + rho))
    assert sum(sizes) / len(sizes) == pytest.approx(expected, rel=tolerance)


@given(st.lists(UTILISATION, max_size=60))
def test_effective_size_lies_between_one_and_the_length(values: list[float]) -> None:
    size = intervals.effective_size(values)
    assert 1.0 <= size <= max(1.0, len(values))


def test_standard_error_is_that_of_the_mean() -> None:
    rng = random.Random(23)
    series = [ar1(rng, 500, rho=0.8, mean=40, sd=10) for _ in range(200)]
    means = [sum(s) / len(s) for s in series]
    centre = sum(means) / len(means)
    true = math.sqrt(sum((m - centre) ** 2 for m in means) / (len(means) - 1))
    errors = [intervals.standard_error(s) or 0.0 for s in series]
    assert sum(errors) / len(errors) == pytest.approx(true, rel=0.2)


def test_standard_error_of_a_long_series_is_the_same_and_quick() -> None:
    rng = random.Random(29)
    values = ar1(rng, 100_000, rho=0.99, mean=40, sd=10)
    began = time.process_time()
    error = intervals.standard_error(values)
    assert time.process_time() - began < 5
    assert error == pytest.approx(10 * math.sqrt(199 / 100_000), rel=0.25)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), ([1.0, 2.0, 3.0], None), ([15.0] * 4, 0.0), ([15.0] * 5000, 0.0)],
)
def test_standard_error_of_few_or_equal_values(values: list[float], expected: float | None) -> None:
    assert intervals.standard_error(values) == expected


# Student's t, 95th and 97.5th percentile, from the printed tables.
T_TABLE = [
    (1, 6.314, 12.706),
    (2, 2.920, 4.303),
    (3, 2.353, 3.182),
    (4, 2.132, 2.776),
    (5, 2.015, 2.571),
    (7, 1.895, 2.365),
    (10, 1.812, 2.228),
    (30, 1.697, 2.042),
    (100, 1.660, 1.984),
    (1_000_000, 1.645, 1.960),
]


@pytest.mark.parametrize(("df", "p95", "p975"), T_TABLE)
def test_t_quantile_agrees_with_the_tables(df: int, p95: float, p975: float) -> None:
    assert intervals.t_quantile(0.95, df) == pytest.approx(p95, abs=6e-4)
    assert intervals.t_quantile(0.975, df) == pytest.approx(p975, abs=6e-4)


def t_distribution(x: float, df: float) -> float:
    """Student's t distribution function at x > 0, by Simpson's rule."""
    constant = math.gamma((df + 1) / 2) / (math.sqrt(df * math.pi) * math.gamma(df / 2))
    n = 2000
    points = [(1 + (x * i / n) ** 2 / df) ** (-(df + 1) / 2) for i in range(n + 1)]
    inside = points[0] + points[-1] + 4 * sum(points[1:-1:2]) + 2 * sum(points[2:-1:2])
    return 0.5 + constant * inside * x / n / 3


@pytest.mark.parametrize("df", [2.5, 4.5, 6.2, 11.7, 50.5])
@pytest.mark.parametrize("p", [0.9, 0.95, 0.975, 0.995])
def test_t_quantile_inverts_the_distribution_for_broken_degrees_of_freedom(p: float, df: float) -> None:
    assert t_distribution(intervals.t_quantile(p, df), df) == pytest.approx(p, abs=2e-4)


@pytest.mark.parametrize(
    ("p", "x"), [(0.5, 0.0), (0.95, 1.6448536), (0.975, 1.9599640), (0.999, 3.0902323), (0.025, -1.9599640)]
)
def test_normal_quantile_agrees_with_the_tables(p: float, x: float) -> None:
    assert intervals.normal_quantile(p) == pytest.approx(x, abs=1e-6)


@given(st.lists(UTILISATION, min_size=1, max_size=8))
def test_a_mean_lies_in_its_interval_and_that_in_the_scale(values: list[float]) -> None:
    found = intervals.mean_interval(values)
    assert found.low is not None and found.high is not None
    assert 0 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 100


@given(RUNS, st.floats(0, 40))
def test_a_mean_is_never_surer_than_its_runs(values: list[float], within: float) -> None:
    alone = intervals.mean_interval(values, within=within)
    assert alone.low is not None
    assert alone.low == 0 or alone.value - alone.low >= 1.959 * within / math.sqrt(len(values)) * (1 - 1e-9)


@given(st.lists(RUNS, min_size=1, max_size=4))
def test_a_pooled_spread_lies_between_the_prior_and_the_runs_own(groups: list[list[float]]) -> None:
    sd, df = intervals.pooled(groups, intervals.Prior(sd=4.0, weight=4.0))
    runs = sum(len(g) - 1 for g in groups)
    assert df == 4.0 + runs
    squares = sum((v - sum(g) / len(g)) ** 2 for g in groups for v in g)
    own = math.sqrt(squares / runs) if runs else 4.0
    assert min(4.0, own) - 1e-9 <= sd <= max(4.0, own) + 1e-9
