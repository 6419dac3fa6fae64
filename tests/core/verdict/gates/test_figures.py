"""Which figures runs have, and whether they come from the same source."""

from __future__ import annotations

import pytest
from tests.support.powered import busy, powered, side
from tests.support.trials import gate, run, runs, verdict

from gpudebug.core.records import DeviceEvidence, Estimate, Evidence, ProbeEvidence, Spread
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates import figures
from gpudebug.core.verdict.gates.figures import (
    alike,
    estimate_text,
    judged_mean,
    judged_text,
    mean,
    on_devices,
    on_one_scale,
    rate_of,
    rates_of,
    sample_rates,
)
from gpudebug.core.verdict.work import WorkRates
from gpudebug.core.words import Result, Status

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


@pytest.mark.parametrize(
    ("estimate", "unit", "signed", "digits", "expected"),
    [
        (Estimate(value=33.61, low=31.2, high=36.04), "pp", True, 1, "+33.6pp (95% CI +31.2 to +36.0)"),
        (Estimate(value=-0.04, low=-4, high=3.92), "pp", True, 1, "+0.0pp (95% CI -4.0 to +3.9)"),
        (Estimate(value=2.197, low=2.0, high=2.4), "x", False, 2, "2.20x (95% CI 2.00 to 2.40)"),
        (Estimate(value=5), "pp", True, 1, "+5.0pp"),
    ],
)
def test_estimates_as_text(estimate: Estimate, unit: str, signed: bool, digits: int, expected: str) -> None:
    assert estimate_text(estimate, unit, signed=signed, digits=digits) == expected


def probed_run(rate: float | None, inside: float | None, **more: object) -> Evidence:
    """A run whose log counts `rate` steps a second, and whose probe `inside`."""
    return run(28, rate, probe=ProbeEvidence(pid=1, steps=100, steps_per_s=inside), **more)


def test_both_sides_in_the_unit_that_they_share() -> None:
    found = rates_of(runs(28, 29, rate=5.0), runs(61, rate=11.0))
    assert found == WorkRates("step", (5.0, 5.0), (11.0,))


def test_a_run_without_a_rate_is_left_out() -> None:
    assert rates_of([run(28, 5.0), run(28, None)], [run(61, 11.0)]).before == (5.0,)
    assert rates_of([run(28, None)], [run(61, None)]) == WorkRates()


def test_units_that_differ_are_not_compared() -> None:
    assert rates_of([run(28, 5.0)], [run(61, 1.0, unit="epoch")]) == WorkRates()


def test_other_units_than_steps_have_the_logs_own_rate_alone() -> None:
    assert rate_of(run(28, 0.5, unit="epoch")) == ("epoch", 0.5)
    assert rate_of(run(28, None, unit="epoch", steps_per_s=4.0)) is None
    assert rate_of(run(28, None, unit=None, steps_per_s=4.0)) == ("step", 4.0)
    assert rate_of(run(28, 0.0)) is None


def test_if_a_log_does_not_count_all_runs_are_counted_by_the_probe() -> None:
    counting = probed_run(5.0, 4.9)
    silent = probed_run(None, 9.8).model_copy(update={"steps_per_s": 9.8, "steps_by": "probe"})
    assert rates_of([counting], [silent]) == WorkRates("step", (4.9,), (9.8,))
    (again,) = alike([counting], [silent])
    assert (again.steps_by, again.progress_per_s) == ("probe", 4.9)


@pytest.mark.parametrize(
    ("of_log", "rates"),
    [
        ((None, None), WorkRates("step", (4.0,), (9.0,))),
        ((None, 0.03), WorkRates("step", (4.0,), (9.0,))),
        ((0.02, 0.03), WorkRates("epoch", (0.02,), (0.03,))),
    ],
)
def test_epochs_longer_than_the_window_leave_the_steps_of_the_probe(
    of_log: tuple[float | None, float | None], rates: WorkRates
) -> None:
    def one(optimizer: float, epochs: float | None) -> Evidence:
        probe = ProbeEvidence(pid=1, steps=99, steps_per_s=optimizer)
        coarse = {"step_unit": "epoch", "progress_per_s": epochs, "steps_per_s": optimizer}
        return run(28, None).model_copy(update={**coarse, "steps_by": "probe", "probe": probe})

    assert rates_of([one(4.0, of_log[0])], [one(9.0, of_log[1])]) == rates


def test_a_log_and_a_probe_are_never_mixed() -> None:
    counting = run(28, 5.0)
    silent = probed_run(None, 9.8).model_copy(update={"steps_per_s": 9.8, "steps_by": "probe"})
    assert alike([counting], [silent]) == (counting,)
    assert rates_of([counting], [silent]) == WorkRates()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("flags", 40.0), ("flags", 88.0), WorkRates("samples", (40.0,), (88.0,))),
        (("flags", 40.0), ("log", 88.0), WorkRates()),
        (("flags", 40.0), ("flags", None), WorkRates()),
    ],
    ids=["one source", "two sources", "unknown"],
)
def test_samples_need_one_source_in_all_runs(
    before: tuple[str, float], after: tuple[str, float | None], expected: WorkRates
) -> None:
    sides = [[run(samples_by=by, samples_per_s=rate)] for by, rate in (before, after)]
    assert sample_rates(*sides) == expected


def test_the_mean_of_nothing_is_unknown() -> None:
    assert mean([]) is None
    assert mean([1.0, 2.0]) == 1.5


def ranks(least: float, others: float, rate: float, mean_w: float = 300.0) -> Evidence:
    """GPU 0 is the least busy of four."""
    devices = [busy(u, mean_w, i) for i, u in enumerate((least, others, others, others))]
    return run((least + 3 * others) / 4, rate, devices=tuple(devices))


BEFORE = [ranks(30 + n / 4, 98, 5.0, 264.0) for n in range(4)]
AFTER = [ranks(92 + n / 4, 94, 15.0, 492.0) for n in range(2)]


def test_the_mean_misses_what_the_least_and_the_working_share_show() -> None:
    """The fix of a straggler: the others wait less, which makes them less busy."""
    mean = verdict(BEFORE, AFTER)
    assert gate(mean, "delta").result is not Result.PASS
    assert "utilisation is " not in " ".join(mean.notes)
    for devices in ("least", "working"):
        found = verdict(BEFORE, AFTER, devices=devices)
        assert found.status is Status.VALIDATED
        assert any(note.endswith("criteria.devices") for note in found.notes)


def test_figures_are_those_that_are_judged() -> None:
    least = verdict(BEFORE, AFTER, devices="least")
    assert (least.before, least.after) == (pytest.approx(30.4, abs=0.1), pytest.approx(92.125))
    working = verdict(BEFORE, AFTER, devices="working")
    assert (working.before, working.after) == (pytest.approx(30, abs=0.1), pytest.approx(90))


def test_without_power_work_is_unknown_and_the_reason_said() -> None:
    found = verdict(BEFORE, [run(95, 15.0)], devices="working")
    assert gate(found, "delta").result is Result.UNKNOWN
    assert "power does not show when it works" in str(gate(found, "delta").note)


def test_the_least_of_devices_one_of_which_is_unknown_is_unknown() -> None:
    blind = ranks(30, 98, 5.0).model_copy(update={"utilisation": None, "standard_error": None})
    (before,), _ = on_devices("least", [blind], [])
    assert before.utilisation is None


def test_gpus_that_no_run_of_either_side_uses_are_not_the_least() -> None:
    def with_unused(least: float) -> Evidence:
        e = ranks(least, 95, 5.0)
        idle = Spread(mean=0, p5=0, p50=0, p95=0)
        last = e.devices[3].model_copy(update={"gpu_util": idle, "mem_used_mb": 400.0})
        return e.model_copy(update={"devices": (*e.devices[:3], last)})

    (before,), (after,) = on_devices("least", [with_unused(30)], [with_unused(90)])
    assert (before.utilisation, after.utilisation) == (30, 90)
    (before,), (after,) = on_devices("least", [with_unused(30)], [ranks(90, 95, 5.0)])
    assert (before.utilisation, after.utilisation) == (0, 90)


def test_the_mean_is_as_it_was_measured() -> None:
    assert on_devices(None, BEFORE, AFTER) == (tuple(BEFORE), tuple(AFTER))


def test_what_a_baseline_says() -> None:
    assert judged_text(None, BEFORE) == []
    (least,) = judged_text("least", BEFORE)
    assert (
        least == "utilisation is judged by that of the least busy GPU of each run: 30.4% (criteria.devices)"
    )
    blind = DeviceEvidence(index=0, uuid="GPU-0", name="x", working_reason="no reading of power")
    (unknown,) = judged_text("working", [run(95, 15.0, devices=(blind,))])
    assert unknown.endswith("(criteria.devices), which is unknown: no reading of power")


def test_runs_are_read_on_the_widest_scale_of_their_device() -> None:
    """A run that hardly ever works shows 340 W at most: by itself it would seem to work half of the time."""
    hardly, often = side(90, 5.0, 245.0, scale=(150.0, 340.0)), side(90, 5.0, 435.0)
    assert on_one_scale([*hardly, *often]) == pytest.approx([0.25, 0.75])


def test_one_device_without_power_makes_the_run_unknown() -> None:
    assert on_one_scale([run(90, 5.0, devices=(powered(500.0), powered(None, None, index=1)))]) == [None]


def flat(power_error: float | None, *, low: float = 300.0, high: float = 300.0) -> Evidence:
    """Two GPUs that read 99.9 % without a break while their power varies."""
    power = Spread(mean=300.0, p5=low, p50=300.0, p95=high)
    devices = [busy(99.9, index=i, power_error=power_error, power_w=power) for i in range(2)]
    return run(99.9, 5.0, devices=tuple(devices), standard_error=0.01)


@pytest.mark.parametrize(
    ("run_", "expected"),
    [
        pytest.param(flat(19.0), 5.0, id="19 W of the 380 W between waiting and working"),
        pytest.param(flat(0.0), 0.01, id="never less than that of the utilisation"),
        pytest.param(flat(None, low=150.0, high=530.0), 100 * 0.5 / 40**0.5, id="from the spread of 40 s"),
    ],
)
def test_the_error_of_work_is_that_of_the_power(run_: Evidence, expected: float) -> None:
    (found,), _ = on_devices("working", [run_], [])
    assert found.standard_error == pytest.approx(expected)


def test_the_mean_of_what_is_judged() -> None:
    assert judged_mean(None, BEFORE) == pytest.approx(81.09375)
    assert judged_mean("least", BEFORE) == pytest.approx(30.375)
    assert judged_mean("working", [run(95, 15.0)]) is None
