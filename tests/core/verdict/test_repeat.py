from __future__ import annotations

import pytest
from tests.support.trials import run

from gpudebug.core.records import Conditions, Estimate, Evidence, Window
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.repeat import contradict, otherwise, unchanged, worse

RATE, UTIL = Metric("steps_per_s"), Metric()


def ratio(value: float, spread: float) -> Estimate:
    return Estimate(value=value, low=value / spread, high=value * spread)


def points(value: float, half: float) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (ratio(2.11, 1.1), ratio(5.93, 1.2), True),
        (ratio(2.11, 1.3), ratio(2.73, 1.3), False),
        # Intervals that touch contradict all the same: both truths at their ends are unlikely at once.
        (ratio(2.0, 1.2), ratio(2.7, 1.2), True),
        (ratio(2.0, 1.2), Estimate(value=9.0), False),
        (ratio(2.0, 1.2), Estimate(value=9.0, low=0.0, high=20.0), False),
    ],
)
def test_ratios_contradict_beyond_what_both_intervals_leave_open(
    one: Estimate, other: Estimate, expected: bool
) -> None:
    assert contradict(RATE, one, other) is contradict(RATE, other, one) is expected


def test_points_are_compared_as_they_are() -> None:
    assert contradict(UTIL, points(50.0, 3.0), points(40.0, 3.0))
    assert not contradict(UTIL, points(50.0, 8.0), points(40.0, 8.0))


def test_only_a_smaller_gain_is_worse() -> None:
    assert worse(RATE, ratio(1.5, 1.1), ratio(2.5, 1.1))
    assert not worse(RATE, ratio(2.5, 1.1), ratio(1.5, 1.1))
    assert not worse(RATE, ratio(2.3, 1.1), ratio(2.5, 1.1))


def test_an_interval_that_holds_no_difference_is_unchanged() -> None:
    assert unchanged(RATE, ratio(1.1, 1.2)) and not unchanged(RATE, ratio(0.5, 1.2))
    assert unchanged(UTIL, points(1.0, 2.0)) and not unchanged(UTIL, points(-9.0, 2.0))
    assert unchanged(RATE, Estimate(value=3.0))


def met(**conditions: float | int) -> Evidence:
    return run().model_copy(update={"conditions": Conditions(**conditions)})


def test_nothing_is_named_where_nothing_was_otherwise() -> None:
    quiet = met(foreign_cpu=3.0, foreign_demand=3.0, cpu_stolen=1.0, cpu_cores=1.0, sm_clock_mhz=1410.0)
    assert otherwise([quiet], [quiet, quiet]) == []


def test_the_load_is_named_with_what_it_took() -> None:
    quiet = met(foreign_demand=3.0, cpu_stolen=1.0, cpu_cores=1.0)
    busy = met(foreign_demand=180.0, cpu_stolen=80.0, cpu_cores=1.0)
    wanted, kept = otherwise([quiet], [busy])
    assert wanted == "others wanted 3% of the cores then, 180% now"
    assert kept.startswith("others kept the runs from 1.0% of their CPU time then, 44.4%")
    (unknown,) = otherwise([quiet], [met()])
    assert unknown == "what others did on the cores is known of one of them alone"


def test_company_a_quota_the_clock_and_another_length_are_named() -> None:
    assert otherwise([met(foreign_procs=2)], [met()]) == ["another process computed on the device then"]
    held = otherwise([met(cpu_throttled=0.0)], [met(cpu_throttled=60.0)])
    assert held == ["a CPU quota held back 0% of a core then, 60% now"]
    (clock,) = otherwise([met(sm_clock_mhz=1410.0)], [met(sm_clock_mhz=900.0)])
    assert "1410" in clock and "900" in clock
    long, short = (
        run().model_copy(update={"window": Window(start_s=0.0, end_s=end, samples=9, rule="steps")})
        for end in (60.0, 12.0)
    )
    assert otherwise([long], [short]) == ["windows of 60 s then, 12 s now"]
