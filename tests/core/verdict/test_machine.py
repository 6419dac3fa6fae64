"""What the machine did otherwise on two sides: each device against itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import BASE, GOOD, gate, in_turns, run, verdict

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, Spread
from gpudebug.core.verdict import machine
from gpudebug.core.verdict.judge import judge_case
from gpudebug.core.verdict.machine import devices_apart, machine_apart
from gpudebug.core.words import Result, Status


def gpu(index: int, clock: float | None = 1410.0, **throttle: float) -> DeviceEvidence:
    spread = Spread(mean=clock, p5=clock, p50=clock, p95=clock) if clock else None
    return DeviceEvidence(
        index=index, uuid=f"GPU-{index}", name="x", sm_clock_mhz=spread, throttle=dict(throttle)
    )


def side(
    *devices: DeviceEvidence, runs: int = 2, utilisation: float = 30.0, rate: float = 5.0
) -> list[Evidence]:
    return [run(utilisation, rate, devices=devices) for _ in range(runs)]


EIGHT = side(*map(gpu, range(8)))


def eight(which: int, other: DeviceEvidence) -> list[Evidence]:
    return side(*(other if i == which else gpu(i) for i in range(8)), utilisation=61.0, rate=11.0)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (gpu(3), ()),
        (gpu(3, 1280), ()),
        (gpu(3, 1200), ("clocks of GPU 3 1410 and 1200 MHz",)),
        (gpu(3, 1200, gpu_idle=0.3), ()),
        (gpu(3, 1200, sw_power_cap=0.3), ()),
        (gpu(3, 1410, sw_thermal=0.4), ("GPU 3 throttled by sw_thermal 0% and 40% of the time",)),
        (gpu(3, 1410, sw_thermal=0.2), ()),
        (gpu(3, None), ()),
    ],
)
def test_one_slow_card_of_eight_is_named(other: DeviceEvidence, said: tuple[str, ...]) -> None:
    assert machine_apart(EIGHT, eight(3, other)) == said


def test_a_card_that_is_slow_on_both_sides_is_as_it_was() -> None:
    slow = eight(3, gpu(3, 900, hw_thermal=0.9))
    assert machine_apart(slow, slow) == ()


def test_another_card_that_idles_does_not_excuse_the_slow_one() -> None:
    """The worst of all devices would: the idle one's reason stood for the slow one's clock."""
    devices = [gpu(0, 1000), gpu(1, 1410, gpu_idle=0.9)]
    assert machine_apart(side(gpu(0), gpu(1)), side(*devices)) == ("clocks of GPU 0 1410 and 1000 MHz",)


def test_one_device_needs_no_name() -> None:
    assert machine_apart(side(gpu(0)), side(gpu(0, 1000))) == ("clocks of 1410 and 1000 MHz",)


def test_runs_of_earlier_versions_are_compared_by_their_worst_device() -> None:
    met = [
        [run(conditions=Conditions(sm_clock_mhz=clock, throttle={})) for _ in range(2)]
        for clock in (1410.0, 1000.0)
    ]
    assert machine_apart(*met) == ("clocks of 1410 and 1000 MHz",)
    new = [e.model_copy(update={"devices": (gpu(0, 1000),)}) for e in met[1]]
    assert machine_apart(met[0], new) == ("clocks of 1410 and 1000 MHz",)


def test_one_slow_card_in_one_arm_is_no_verdict() -> None:
    found = verdict(EIGHT, eight(5, gpu(5, 900, gpu_idle=0.0)))
    assert (found.status, gate(found, "environment_parity").result) == (Status.INVALID, Result.FAIL)
    assert found.why == "environment differs: clocks of GPU 5 1410 and 900 MHz"


def test_without_figures_of_clocks_nothing_differs() -> None:
    assert machine_apart(BASE, GOOD) == ()


def test_a_neighbour_on_one_of_several_devices_is_named_by_it() -> None:
    met: dict[str, Any] = {"foreign_procs": 1, "foreign_share": 0.5, "foreign_on": 6}
    shared = [e.model_copy(update={"conditions": Conditions(**met)}) for e in eight(0, gpu(0))]
    value = gate(verdict(EIGHT, shared), "device_to_itself").value
    assert value.startswith("1 other process on GPU 6 in trial run ")


def test_a_neighbour_on_a_part_of_a_gpu_is_named_by_that_part() -> None:
    met: dict[str, Any] = {"foreign_procs": 1, "foreign_share": 0.5, "foreign_on": 0, "foreign_uuid": "MIG-b"}
    shared = [e.model_copy(update={"conditions": Conditions(**met)}) for e in eight(0, gpu(0))]
    value = gate(verdict(EIGHT, shared), "device_to_itself").value
    assert value.startswith("1 other process on GPU 0 (MIG-b) in trial run ")


def test_what_differs_has_its_device_and_both_values_apart() -> None:
    other = eight(3, gpu(3, 1200, sw_thermal=0.4))
    assert devices_apart(EIGHT, other) == (
        ("clocks of GPU 3", "1410", "1200", " MHz"),
        ("GPU 3 throttled by sw_thermal", "0%", "40%", " of the time"),
    )
    assert devices_apart(EIGHT, EIGHT) == ()
    assert devices_apart(BASE, GOOD) is None


CPU = (DeviceEvidence(index=0, uuid="CPU", name="x"),)
GPU = (DeviceEvidence(index=0, uuid="GPU-0", name="x"),)
COMPUTE = {"metric": "steps_per_s", "success": 1.2, "failure": 1.05}


def kept(percent: float | None, cores: float | None = 1.0) -> Conditions:
    """From so much of one core's time, beside the cores that it had."""
    return Conditions(foreign_procs=0, cpu_stolen=percent, cpu_cores=cores)


def beside(taken: float, devices: tuple[DeviceEvidence, ...] = CPU) -> Evidence:
    """A run that wanted one core, of which others took so many percent."""
    return run(conditions=kept(taken, 1 - taken / 100), devices=devices)


class TestShare:
    @pytest.mark.parametrize(
        ("conditions", "share"),
        [
            (kept(0), 0),
            (kept(100, 1.0), 50),
            (kept(300, 1.0), 75),
            (kept(50, 7.5), 6.25),
            (kept(0, 0.0), 0),
            (kept(None), None),
            (kept(40, None), None),
        ],
    )
    def test_it_is_of_the_time_that_the_run_wanted(self, conditions: Conditions, share: float | None) -> None:
        assert machine.share(run(conditions=conditions)) == share

    @given(st.floats(0, 1600), st.floats(0.01, 64))
    def test_it_is_between_0_and_100(self, stolen: float, cores: float) -> None:
        found = machine.share(run(conditions=kept(stolen, cores)))
        assert found is not None
        assert 0 <= found <= 100

    def test_the_mean_is_of_the_runs_that_tell(self) -> None:
        blank = run(conditions=kept(None))
        assert machine.mean_share([beside(20), blank, beside(40)]) == pytest.approx(30)
        assert machine.mean_share([blank]) is None
        assert machine.mean_share([]) is None


class TestRoom:
    def test_others_leave_room_on_the_cores_alone(self) -> None:
        assert machine.reachable([beside(40), beside(60)]) == pytest.approx(50)
        assert machine.reachable([beside(40, GPU)]) is None
        assert machine.reachable([beside(40), beside(40, GPU)]) is None

    def test_what_is_not_known_leaves_nothing_known(self) -> None:
        assert machine.reachable([run(conditions=kept(None), devices=CPU)]) is None

    @pytest.mark.parametrize(
        ("taken", "level", "success", "room"),
        [
            (60, 30, 20, False),
            (60, 19, 20, True),
            (60, 20, 20, True),
            (60, None, 20, True),
            (0, 95, 20, True),
            (0.5, 95, 20, True),
            (89, 9, 20, False),
        ],
    )
    def test_a_success_has_to_fit_below_what_is_left(
        self, taken: float, level: float | None, success: float, room: bool
    ) -> None:
        said = machine.no_room([beside(taken)], level, success)
        assert (said is None) is room

    def test_it_says_how_much_can_be_reached(self) -> None:
        assert machine.no_room([beside(89)], 8.6, 20) == (
            "other processes take 89% of the time that these runs want of the cores: at most 11% can be "
            "reached beside them, the baseline is at 8.6%, and criteria.success asks for 20 points more"
        )
        assert machine.no_room([beside(89, GPU)], 8.6, 20) is None


class TestVerdict:
    """On a host without room no change could have shown 20 points more."""

    @pytest.mark.parametrize(
        ("taken", "devices", "status"),
        [
            (60, CPU, Status.INCONCLUSIVE),
            (60, GPU, Status.REJECTED),
            (20, CPU, Status.REJECTED),
        ],
    )
    def test_nothing_is_rejected_by_its_utilisation(
        self, taken: float, devices: tuple[DeviceEvidence, ...], status: Status
    ) -> None:
        found = judge_case(_trial((30, 31, 32), taken, devices))
        assert found.status is status
        assert gate(found, "delta").result is (Result.FAIL if status is Status.REJECTED else Result.UNKNOWN)
        if status is Status.INCONCLUSIVE:
            assert "at most 40% can be reached beside them" in found.why

    @pytest.mark.parametrize(
        ("rate", "status"), [(0.8, Status.REJECTED), (1.9, Status.VALIDATED)], ids=["slower", "faster"]
    )
    def test_throughput_still_decides(self, rate: float, status: Status) -> None:
        case = in_turns(
            "AATTA", 30, 31, 30 * rate, 31 * rate, 30, conditions=kept(60, 0.4), devices=CPU, **COMPUTE
        )
        assert judge_case(case).status is status

    def test_a_share_that_explains_a_run_takes_it_out_of_the_effect(self) -> None:
        """Others came beside the trial's second run and the closing one, and each lost half of its level."""
        with_share = _shared((40, 40, 64, 44, 20), (0, 0, 0, 20, 20))
        without = _shared((40, 40, 64, 44, 20), (None,) * 5)
        assert with_share.effect is not None
        assert without.effect is not None
        assert with_share.effect.spread < 2 * without.effect.spread
        assert with_share.effect.noise < without.effect.noise


def _trial(levels: tuple[float, ...], taken: float, devices: tuple[DeviceEvidence, ...]):  # type: ignore[no-untyped-def]
    return in_turns("AAT", *levels, conditions=kept(taken, 1 - taken / 100), devices=devices)


def _shared(levels, taken):  # type: ignore[no-untyped-def]
    from tests.support.trials import measured

    from gpudebug.core.verdict.gates.setting import Order, TrialSetting

    made = [
        run(level, level / 5, conditions=kept(t, None if t is None else 1 - t / 100), devices=CPU)
        for level, t in zip(levels, taken, strict=True)
    ]
    return measured([made[0], made[1], made[4]], made[2:4], TrialSetting(order=Order((0, 1, 4), (2, 3), 5)))
