"""What both sides got done a second: in one unit, and counted in the same way."""

from __future__ import annotations

import pytest
from tests.support.trials import run, runs

from gpudebug.core.records import Evidence, ProbeEvidence
from gpudebug.core.verdict.gates.rates import ProgressRates, alike, mean, rate_of, rates_of, sample_rates


def probed_run(rate: float | None, inside: float | None, **more: object) -> Evidence:
    """A run whose log counts `rate` steps a second, and whose probe `inside`."""
    return run(28, rate, probe=ProbeEvidence(pid=1, steps=100, steps_per_s=inside), **more)


def test_both_sides_in_the_unit_that_they_share() -> None:
    found = rates_of(runs(28, 29, rate=5.0), runs(61, rate=11.0))
    assert found == ProgressRates("step", (5.0, 5.0), (11.0,))


def test_a_run_without_a_rate_is_left_out() -> None:
    assert rates_of([run(28, 5.0), run(28, None)], [run(61, 11.0)]).before == (5.0,)
    assert rates_of([run(28, None)], [run(61, None)]) == ProgressRates()


def test_units_that_differ_are_not_compared() -> None:
    assert rates_of([run(28, 5.0)], [run(61, 1.0, unit="epoch")]) == ProgressRates()


def test_other_units_than_steps_have_the_logs_own_rate_alone() -> None:
    assert rate_of(run(28, 0.5, unit="epoch")) == ("epoch", 0.5)
    assert rate_of(run(28, None, unit="epoch", steps_per_s=4.0)) is None
    assert rate_of(run(28, None, unit=None, steps_per_s=4.0)) == ("step", 4.0)
    assert rate_of(run(28, 0.0)) is None


def test_if_a_log_does_not_count_all_runs_are_counted_by_the_probe() -> None:
    counting = probed_run(5.0, 4.9)
    silent = probed_run(None, 9.8).model_copy(update={"steps_per_s": 9.8, "steps_by": "probe"})
    assert rates_of([counting], [silent]) == ProgressRates("step", (4.9,), (9.8,))
    (again,) = alike([counting], [silent])
    assert (again.steps_by, again.progress_per_s) == ("probe", 4.9)


def test_a_log_and_a_probe_are_never_mixed() -> None:
    counting = run(28, 5.0)
    silent = probed_run(None, 9.8).model_copy(update={"steps_per_s": 9.8, "steps_by": "probe"})
    assert alike([counting], [silent]) == (counting,)
    assert rates_of([counting], [silent]) == ProgressRates()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("flags", 40.0), ("flags", 88.0), ProgressRates("samples", (40.0,), (88.0,))),
        (("flags", 40.0), ("log", 88.0), ProgressRates()),
        (("flags", 40.0), ("flags", None), ProgressRates()),
    ],
    ids=["one source", "two sources", "unknown"],
)
def test_samples_need_one_source_in_all_runs(
    before: tuple[str, float], after: tuple[str, float | None], expected: ProgressRates
) -> None:
    sides = [[run(samples_by=by, samples_per_s=rate)] for by, rate in (before, after)]
    assert sample_rates(*sides) == expected


def test_the_mean_of_nothing_is_unknown() -> None:
    assert mean([]) is None
    assert mean([1.0, 2.0]) == 1.5
