"""Which of several devices utilisation is judged by."""

from __future__ import annotations

import pytest
from tests.support.powered import busy, powered, side
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import DeviceEvidence, Evidence, Spread
from gpudebug.core.verdict.gates.devices import judged_mean, judged_text, on_devices, on_one_scale
from gpudebug.core.words import Result, Status


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
