"""Which figures runs have, and whether they come from the same source."""

from __future__ import annotations

from tests.support.trials import run, runs

from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates import figures

STEPS = Metric("steps_per_s")


def test_what_has_no_window_has_no_utilisation() -> None:
    one = run(window=None)
    assert not figures.has_figure(one)
    assert not figures.has_metric(Metric(), one)
    assert figures.has_metric(STEPS, one)
    assert figures.utilisations([one, *runs(20, 40)]) == [20, 40]


def test_a_run_without_the_metric_has_no_value() -> None:
    assert figures.values_of(STEPS, [*runs(30, rate=5.0), *runs(30, rate=None)]) == [5.0]


def test_steps_of_the_log_are_not_compared_with_those_of_the_probe() -> None:
    logged, probed = run(steps_by="log"), run(steps_by="probe")
    assert figures.comparable(STEPS, [logged, run(steps_by=None)])
    assert not figures.comparable(STEPS, [logged, probed])
    assert figures.comparable(Metric(), [logged, probed])


def test_a_device_below_its_resolution_is_idle() -> None:
    assert figures.idle(runs(30, 0.9))
    assert not figures.idle(runs(30, 1.0))
