"""What others took of a run's time, and what that leaves to reach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import gate, in_turns, run

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence
from gpudebug.core.verdict import others
from gpudebug.core.verdict.judge import judge_case
from gpudebug.core.words import Result, Status

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
        assert others.share(run(conditions=conditions)) == share

    @given(st.floats(0, 1600), st.floats(0.01, 64))
    def test_it_is_between_0_and_100(self, stolen: float, cores: float) -> None:
        found = others.share(run(conditions=kept(stolen, cores)))
        assert found is not None
        assert 0 <= found <= 100

    def test_the_mean_is_of_the_runs_that_tell(self) -> None:
        blank = run(conditions=kept(None))
        assert others.mean_share([beside(20), blank, beside(40)]) == pytest.approx(30)
        assert others.mean_share([blank]) is None
        assert others.mean_share([]) is None


class TestRoom:
    def test_others_leave_room_on_the_cores_alone(self) -> None:
        assert others.reachable([beside(40), beside(60)]) == pytest.approx(50)
        assert others.reachable([beside(40, GPU)]) is None
        assert others.reachable([beside(40), beside(40, GPU)]) is None

    def test_what_is_not_known_leaves_nothing_known(self) -> None:
        assert others.reachable([run(conditions=kept(None), devices=CPU)]) is None

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
        said = others.no_room([beside(taken)], level, success)
        assert (said is None) is room

    def test_it_says_how_much_can_be_reached(self) -> None:
        assert others.no_room([beside(89)], 8.6, 20) == (
            "other processes take 89% of the time that these runs want of the cores: at most 11% can be "
            "reached beside them, the baseline is at 8.6%, and criteria.success asks for 20 points more"
        )
        assert others.no_room([beside(89, GPU)], 8.6, 20) is None


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

    from gpudebug.core.verdict.gates import Order, TrialSetting

    made = [
        run(level, level / 5, conditions=kept(t, None if t is None else 1 - t / 100), devices=CPU)
        for level, t in zip(levels, taken, strict=True)
    ]
    return measured([made[0], made[1], made[4]], made[2:4], TrialSetting(order=Order((0, 1, 4), (2, 3), 5)))
