"""Trials under way: which run each needs next, and which run has told enough."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import BASE, GOOD, crashed, criteria, run, runs, verdict

from gpudebug.core.records import Conditions, Evidence, LearningSeries, LearningUnit, LossEvidence
from gpudebug.core.statistics.learning_units import BY_LOG
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.judge import judge
from gpudebug.core.verdict.protocol import NextRun, is_certain, next_step
from gpudebug.core.verdict.spending import most_of_trial
from gpudebug.core.words import Outcome, Status, Trend

NONE = runs(28, 29, 27, rate=5.0)
OOM = crashed("oom_gpu", "CUDA out of memory")
NAN = run(61, 11, trend=Trend.NAN)
TRIAL, BASELINE, DONE = NextRun.TRIAL, NextRun.BASELINE, NextRun.DONE


def step(
    before: Sequence[Evidence], after: Sequence[Evidence], fresh: Sequence[Evidence] = (), **changes: Any
) -> NextRun:
    every, setting = [*before, *fresh], TrialSetting(fresh=len(fresh))
    found = verdict(every, after, setting, **changes)
    return next_step(found, criteria(**changes), every, after, setting)


class TestNextStep:
    @pytest.mark.parametrize(
        ("after", "changes", "expected"),
        [
            pytest.param(runs(44, rate=8.0), {}, TRIAL, id="between the thresholds"),
            pytest.param(runs(44, rate=8.0), {"max_runs": 1}, DONE, id="one run is all there may be"),
            pytest.param(runs(47, 48, 47, 48, rate=8.0), {}, BASELINE, id="the baseline is less sure"),
            pytest.param(runs(*[47] * 6, rate=8.0), {}, BASELINE, id="the trial's runs are used up"),
            pytest.param(runs(*[43] * 4, rate=8.0), {}, DONE, id="no run that is left would decide"),
            pytest.param(GOOD, {}, BASELINE, id="a gain that no fresh run has confirmed"),
            pytest.param(GOOD, {"max_runs": 1}, DONE, id="a gain that none may confirm"),
            pytest.param(NONE, {}, DONE, id="no effect"),
            pytest.param([OOM], {}, DONE, id="out of memory"),
            pytest.param([NAN], {}, DONE, id="NaN"),
            pytest.param(runs(61, rate=11.0, window=9.0), {}, TRIAL, id="windows that sum up too slowly"),
            pytest.param(runs(61, rate=11.0, window=5.0), {}, TRIAL, id="windows that just suffice"),
            pytest.param(runs(61, rate=11.0, window=5.0), {"min_window": 31}, DONE, id="windows too short"),
            pytest.param(runs(61, 62, rate=5.2), {}, DONE, id="hollow"),
            pytest.param(runs(61, 62, rate=None), {}, DONE, id="no step rate"),
            pytest.param(runs(61, 62, rate=None), {"throughput": "any"}, DONE, id="work cannot be known"),
            pytest.param(runs(44, rate=None), {}, TRIAL, id="no step rate, and delta may still reject"),
            pytest.param(runs(44, rate=8.0, trend=Trend.UNKNOWN), {}, TRIAL, id="as with the loss"),
            pytest.param(runs(61, 62, rate=8.0, trend=Trend.UNKNOWN), {}, DONE, id="more runs tell no loss"),
            pytest.param([run(None)], {}, DONE, id="no utilisation"),
            pytest.param([run(44, 8), run(window=None)], {}, DONE, id="one run without its window"),
        ],
    )
    def test_what_could_decide_is_run(
        self, after: list[Evidence], changes: dict[str, Any], expected: NextRun
    ) -> None:
        assert step(BASE, after, **changes) is expected

    def test_a_confirmed_gain_is_done(self) -> None:
        assert step(BASE, GOOD, runs(29)) is DONE

    def test_a_fresh_run_that_contradicts_the_baseline_asks_for_more(self) -> None:
        """The machine became busier since the baseline: the gain was none of the change's."""
        assert step(BASE, runs(52, rate=9.5)) is BASELINE
        assert step(BASE, runs(52, rate=9.5), runs(47, rate=8.5)) is not DONE

    def test_one_outlying_fresh_run_makes_no_gain(self) -> None:
        before, after = runs(50, 49, 51, 50, rate=9.0), runs(62, 63, 62, rate=18.0)
        found = step(before, after, runs(25, rate=4.5))
        fresh = [*before, *runs(25, rate=4.5)]
        former = judge(1, criteria(), fresh, after, TrialSetting(fresh=1), "4")
        assert former.status is Status.VALIDATED
        assert verdict(fresh, after, TrialSetting(fresh=1)).status is Status.INCONCLUSIVE
        assert found is BASELINE
        two = runs(25, 50, rate=4.5)
        assert verdict([*before, *two], after, TrialSetting(fresh=2)).status is not Status.VALIDATED

    def test_where_the_throughput_is_not_decided(self) -> None:
        before, after = runs(70, 71, 69, 70), runs(92, 91, rate=5.2)
        assert verdict(before, after).why.startswith("throughput is unknown (1.04x")
        assert step(before, after) is TRIAL

    def test_where_the_loss_at_equal_steps_is_not_decided(self) -> None:
        def trained(level: float, rate: float, above: float = 0.0) -> Evidence:
            curve = tuple((float(n), 2.0 + above - n / 100) for n in range(0, 100, 2))
            loss = LossEvidence(name="loss", trend=Trend.CONVERGING, points=50, curve=curve)
            return run(level, rate, loss=loss)

        before, after = [trained(level, 5) for level in (28, 27, 29, 28)], [trained(61, 11, 0.15)]
        assert verdict(before, after).why.startswith("loss_parity is unknown (+0.15")
        assert step(before, after) is TRIAL

    def test_not_where_the_baseline_is_too_short(self) -> None:
        assert step(runs(28, 29, window=9.0), runs(44, rate=8.0)) is DONE

    @given(
        st.lists(st.floats(5, 95), min_size=6, max_size=8),
        st.lists(st.floats(5, 95), max_size=22),
        st.floats(1, 20),
    )
    def test_every_trial_ends(self, levels: list[float], fresh: list[float], rate: float) -> None:
        found = step(BASE, runs(*levels, rate=rate), runs(*fresh))
        assert found is not TRIAL
        if len(fresh) >= 20:
            assert found is DONE


class TestCertain:
    @pytest.mark.parametrize(
        ("seen", "expected"),
        [
            pytest.param(run(28, 5, window=32.0), True, id="no effect"),
            pytest.param(run(61, 11, window=32.0), True, id="a gain"),
            pytest.param(run(44, 8, window=32.0), False, id="between"),
            pytest.param(run(28, 5, window=12.0), False, id="too little seen"),
            pytest.param(run(28, 5, window=None), False, id="nothing seen"),
            pytest.param(run(28, 5, window=32.0, standard_error=9.0), False, id="too noisy"),
            pytest.param(run(61, 11, window=32.0, trend=Trend.UNKNOWN), False, id="the loss may yet be told"),
            pytest.param(run(61, 11, window=8.0, trend=Trend.NAN), True, id="NaN stays"),
            pytest.param(run(61, None, window=32.0), False, id="the rate may yet be told"),
        ],
    )
    def test_the_first_run_may_end_once_its_answer_cannot_change(
        self, seen: Evidence, expected: bool
    ) -> None:
        early = seen.model_copy(update={"outcome": Outcome.ENDED_EARLY})
        assert is_certain(1, criteria(), BASE, [early], TrialSetting()) is expected

    def test_a_run_that_no_further_one_would_decide_may_end(self) -> None:
        after = runs(43, 43, 43, 43, 43, rate=8.0)
        assert is_certain(1, criteria(), BASE, [*after, run(43, 8, window=32.0)], TrialSetting())

    def test_a_loss_that_rises_in_the_beginning_does_not_end_a_run(self) -> None:
        seen = run(61, 11, window=32.0, trend=Trend.DIVERGING, outcome=Outcome.ENDED_EARLY)
        assert verdict(BASE, [seen]).status is Status.REJECTED
        assert not is_certain(1, criteria(), BASE, [seen], TrialSetting())

    def test_a_run_needs_a_window_of_its_own_however_long_the_others_were(self) -> None:
        seen = run(28, 5, window=6.0, outcome=Outcome.ENDED_EARLY)
        assert not is_certain(1, criteria(), BASE, [*runs(29, 27, rate=5.0), seen], TrialSetting())

    def test_a_run_that_ended_early_passes_for_no_completed_one(self) -> None:
        after = [e.model_copy(update={"outcome": Outcome.ENDED_EARLY}) for e in GOOD]
        found = verdict(BASE, after)
        gate = found.gates[0]
        assert (gate.name, str(gate.result)) == ("outcome", "skipped")
        assert gate.note == (
            "early_stop ended run 0001-x at its answer: whether training completes was not tested"
        )
        assert found.training == "ENDED_EARLY - not run to its end"


def simulated_trial(rng: random.Random, delta: float, sd: float) -> Status:
    """A trial as the engine runs it, on a workload at 28 % whose runs differ by `sd` pp."""

    def measured(level: float) -> Evidence:
        utilisation = max(1.0, rng.gauss(level, sd))
        return run(utilisation, 5 * utilisation / 28, standard_error=1.5)

    before, fresh, after = [measured(28) for _ in range(4)], list[Evidence](), list[Evidence]()
    todo = TRIAL
    while todo is not DONE:
        if todo is TRIAL:
            after.append(measured(28 + delta))
        else:
            fresh.append(measured(28))
        todo = step(before, after, fresh)
    return verdict([*before, *fresh], after, TrialSetting(fresh=len(fresh))).status


@pytest.mark.parametrize(
    ("delta", "validated", "rejected"),
    [(0, (0, 0), (0.97, 1)), (10, (0, 0.05), (0, 1)), (20, (0.5, 1), (0, 0.05)), (25, (0.93, 1), (0, 0.02))],
)
def test_verdicts_are_right_as_often_as_they_should_be(
    delta: float, validated: tuple[float, float], rejected: tuple[float, float]
) -> None:
    """Runs that differ by 5 pp, the most that the prior expects; repeated looks included."""
    rng = random.Random(delta)
    found = [simulated_trial(rng, delta, 5.0) for _ in range(250)]
    shares = [found.count(s) / len(found) for s in (Status.VALIDATED, Status.REJECTED)]
    assert validated[0] <= shares[0] <= validated[1]
    assert rejected[0] <= shares[1] <= rejected[1]


def loaded(demand: float, stolen: float, level: float = 28.0, rate: float = 5.0, **more: Any) -> Evidence:
    """A run beside others who wanted `demand` percent of its cores and kept it from `stolen` cores."""
    conditions = Conditions(
        foreign_cpu=min(demand, 95.0), foreign_demand=demand, cpu_stolen=100 * stolen, cpu_cores=1.0
    )
    return run(level, rate, conditions=conditions, **more)


QUIET, BUSY = (3.0, 0.0), (100.0, 0.5)


def side(level: float, *loads: tuple[float, float]) -> list[Evidence]:
    return [loaded(*load, level=level + n, rate=level / 5) for n, load in enumerate(loads)]


class TestBesideStrangers:
    @pytest.mark.parametrize(
        ("recorded", "after", "fresh", "expected"),
        [
            pytest.param(side(28, *[QUIET] * 4), side(62, QUIET), [], BASELINE, id="quiet"),
            pytest.param(side(28, *[QUIET] * 4), side(62, QUIET), side(29, QUIET), DONE, id="confirmed"),
            pytest.param(side(28, *[QUIET] * 4), side(62, BUSY), [], BASELINE, id="a stranger came"),
            pytest.param(
                side(28, *[QUIET] * 4), side(62, BUSY), side(20, BUSY), TRIAL, id="the stranger stays"
            ),
            pytest.param(
                side(28, *[QUIET] * 4), side(62, BUSY), side(28, QUIET), TRIAL, id="the stranger left"
            ),
            pytest.param(
                side(28, *[QUIET] * 4), side(62, BUSY, BUSY), side(28, QUIET), BASELINE, id="it is back"
            ),
            pytest.param(
                side(28, *[QUIET] * 4), side(62, BUSY, BUSY), side(28, QUIET, QUIET), DONE, id="enough"
            ),
            pytest.param(side(28, *[QUIET] * 4), side(29, QUIET, QUIET), [], DONE, id="no gain, quiet"),
            pytest.param(side(28, *[BUSY] * 4), side(29, BUSY, BUSY), [], BASELINE, id="no gain, noisy"),
            pytest.param(
                side(28, *[BUSY] * 4), side(29, BUSY, BUSY), side(28, BUSY), DONE, id="no gain, confirmed"
            ),
            pytest.param(
                side(28, *[(3.0, 0.0)] * 4),
                side(29, (60.0, 0.01), (60.0, 0.01)),
                [],
                BASELINE,
                id="no gain, others on idle cores",
            ),
            pytest.param(side(28, *[BUSY] * 4), [OOM], [], DONE, id="a crash"),
        ],
    )
    def test_what_is_run(
        self, recorded: list[Evidence], after: list[Evidence], fresh: list[Evidence], expected: NextRun
    ) -> None:
        assert step(recorded, after, fresh) is expected

    def test_a_trial_of_one_run_is_not_made_longer(self) -> None:
        assert step(side(28, QUIET), side(62, BUSY), max_runs=1) is DONE
        assert step(side(28, BUSY), side(28, BUSY), max_runs=1) is DONE

    def test_what_the_diagnosis_calls_likely_is_rejected_only_beside_a_fresh_run(self) -> None:
        before, after = side(28, *[QUIET] * 4), side(29, QUIET, QUIET)
        for likely, expected in ((False, DONE), (True, BASELINE)):
            setting = TrialSetting(likely=likely)
            found = verdict(before, after, setting)
            assert found.status is Status.REJECTED
            assert next_step(found, criteria(), before, after, setting) is expected

    def test_recorded_runs_that_are_left_out_take_their_windows_with_them(self) -> None:
        before = [loaded(*QUIET, window=12.0)] * 4
        fresh = [loaded(*BUSY, level=20.0, window=12.0)]
        after = [loaded(*BUSY, level=62.0, rate=15.5, window=12.0)] * 3
        assert step(before, after, fresh) is BASELINE
        assert step(before, after, fresh * 3) is DONE

    def test_a_loss_is_rejected_whatever_the_load(self) -> None:
        diverging = [loaded(*BUSY, trend=Trend.DIVERGING)]
        assert step(side(28, *[BUSY] * 4), diverging) is DONE

    def test_a_load_that_a_baseline_does_not_tell_is_met_again(self) -> None:
        imported = runs(28, 29, 27, 28)
        assert step(imported, side(29, BUSY)) is BASELINE
        assert step(imported, side(29, BUSY, BUSY), side(28, *[BUSY] * 4)) is DONE
        assert step(imported, side(29, QUIET)) is BASELINE
        assert step(imported, side(29, QUIET), side(28, QUIET)) is DONE

    @pytest.mark.parametrize("late", [Outcome.TIMED_OUT, Outcome.STALLED])
    def test_what_came_too_late_beside_others_costs_a_fresh_run(self, late: Outcome) -> None:
        for level, expected in ((BUSY, BASELINE), (QUIET, DONE)):
            before, after = side(28, *[level] * 4), [loaded(*level, outcome=late)]
            assert step(before, after) is expected
            assert step(before, after, side(28, level)) is DONE

    def test_learning_that_is_behind_at_equal_time_costs_a_fresh_run(self) -> None:
        """More environments, and the neighbour slows the program down: it learns less in the same time."""
        unit = LearningUnit(metric="reward", name="r", source=BY_LOG, direction="higher")

        def learnt(rate: float, slope: float) -> Evidence:
            curve = tuple((float(n), n * slope) for n in range(0, 1000, 20))
            one = LearningSeries(
                metric="reward", name="r", source=BY_LOG, points=50, first=0.0, last=1.0, curve=curve
            )
            return loaded(*BUSY, level=61.0, rate=rate, learning=(one,))

        before, after = [learnt(5, 1.0)] * 4, [learnt(11, 0.2)] * 2
        for knob, expected in (("--n_envs", BASELINE), (None, DONE)):
            setting = TrialSetting(learning=unit, knob=knob)
            found = verdict(before, after, setting)
            assert found.why.startswith("loss parity"), found.why
            assert next_step(found, criteria(), before, after, setting) is expected

    def test_a_stranger_on_the_gpu_is_not_waited_out(self) -> None:
        shared = loaded(*BUSY, level=62).conditions.model_copy(update={"foreign_procs": 1})
        after = [run(62, 11, conditions=shared)]
        assert step(side(28, *[QUIET] * 4), after) is DONE

    def test_a_gain_over_a_baseline_that_drifted_needs_two_runs_of_the_trial(self) -> None:
        """The runs of either side were made at one moment each."""
        before, fresh = runs(50, 49, 51, 50, rate=9.0), runs(38, 37, 39, 38, rate=8.8)
        setting = TrialSetting(fresh=4)
        for after, expected in ((runs(99, rate=45.0), TRIAL), (runs(99, 99, rate=45.0), DONE)):
            found = verdict([*before, *fresh], after, setting)
            assert found.status is Status.VALIDATED
            assert next_step(found, criteria(), [*before, *fresh], after, setting) is expected

    @pytest.mark.parametrize("window", [40.0, 12.0])
    def test_a_load_that_changes_with_every_run_is_met_by_both_sides_and_not_for_ever(
        self, window: float
    ) -> None:
        """What one side meets alone is left out: its runs would follow one another without an end."""
        most = criteria().max_runs
        for seed in range(40):
            rng = random.Random(seed)

            def met(level: float, rng: random.Random = rng) -> Evidence:
                wanted = rng.choice((30.0, 80.0, 150.0, 250.0, 340.0))
                slowed = level / (1 + wanted / 200) + rng.gauss(0, 3)
                return loaded(wanted, wanted / 150, slowed, slowed / 5, window=window)

            before, fresh, after = [met(28), met(28)], list[Evidence](), list[Evidence]()
            todo = TRIAL
            while todo is not DONE:
                (after if todo is TRIAL else fresh).append(met(46 if todo is TRIAL else 28))
                todo = step(before, after, fresh)
                assert len(after) <= 2 * most
                assert len(after) - len(fresh) <= max(2, most // 2)
                assert len(fresh) <= 4 * most
                assert len(after) + len(fresh) <= most_of_trial(most)
