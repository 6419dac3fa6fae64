"""Trials under way: which run each needs next, and which run has told enough."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.trials import BASE, GOOD, crashed, following, in_turns, measured, run, runs, verdict

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, LossEvidence
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.setting import Order, TrialSetting
from gpudebug.core.verdict.judge import judge_case
from gpudebug.core.verdict.protocol import first_run, forecast, next_step
from gpudebug.core.verdict.turns import NextRun, planned
from gpudebug.core.verdict.turns import following as turn_after
from gpudebug.core.words import Result, Status, Trend

TRIAL, BASELINE, DONE = NextRun.TRIAL, NextRun.BASELINE, NextRun.DONE
VALIDATED, REJECTED, OPEN = Status.VALIDATED, Status.REJECTED, Status.INCONCLUSIVE


def decided(case: TrialCase) -> tuple[Status, NextRun]:
    found = judge_case(case)
    return found.status, next_step(found, case)


def turns(most: int) -> str:
    return "".join("T" if step is TRIAL else "A" for step in planned(most))


@pytest.mark.parametrize(
    ("levels", "ahead"),
    [
        # A gain that is plain already, one that needs a few runs, and one in the middle of both bars.
        ([20.0, 20.0, 80.0], "TA"),
        ([20.0, 20.0, 40.5], "TATA"),
        ([20.0, 20.0, 35.0], ""),
    ],
)
def test_how_many_runs_likely_decide(levels: list[float], ahead: str) -> None:
    case = in_turns("AAT", *levels)
    assert "".join("T" if step is TRIAL else "A" for step in forecast(case, TRIAL)) == ahead


class TestOrder:
    @pytest.mark.parametrize(
        ("most", "order"),
        [(1, "TA"), (2, "TTA"), (3, "TTATA"), (4, "TTATATA"), (6, "TTATATTATA"), (8, "TTATATTATATTA")],
    )
    def test_runs_come_in_this_order(self, most: int, order: str) -> None:
        assert turns(most) == order

    @given(st.integers(1, 40))
    def test_it_ends_with_the_baseline_and_no_side_is_made_alone(self, most: int) -> None:
        order = turns(most)
        assert order.count("T") == most
        assert order.endswith("A")
        assert "TTT" not in order
        assert "AA" not in order

    def test_nothing_that_comes_and_goes_with_every_other_run_meets_one_side_alone(self) -> None:
        order = turns(8)
        assert all(set(order[start::2]) == {"T", "A"} for start in (0, 1))

    @pytest.mark.parametrize(
        ("before", "now", "first"),
        [
            ((), 0, BASELINE),
            ((0,), 1, BASELINE),
            ((0, 1), 2, TRIAL),
            ((0, 1), 4, TRIAL),
            ((0, 1), 5, BASELINE),
            ((0, 1, 9), 10, TRIAL),
        ],
    )
    def test_the_baseline_is_first_if_it_is_long_ago_or_too_small(
        self, before: tuple[int, ...], now: int, first: NextRun
    ) -> None:
        assert first_run(Order(before, (), now)) is first

    def test_a_pause_makes_the_baseline_due_but_never_between_two_runs_of_the_change(self) -> None:
        assert turn_after(2, 8, closed=True, since=3) is TRIAL
        assert turn_after(2, 8, closed=True, since=4) is BASELINE
        assert [turn_after(trials, 8, closed=False, since=9) for trials in (1, 4, 7)] == [TRIAL] * 3

    def test_a_trial_that_stays_open_is_made_in_this_order(self) -> None:
        order = "AA"
        while len(order) < 50:
            levels = [28 if turn == "A" else 47 for turn in order]
            status, step = decided(in_turns(order, *levels)) if "T" in order else (OPEN, TRIAL)
            assert status is OPEN
            if step is DONE:
                break
            order += "T" if step is TRIAL else "A"
        assert order == "AA" + turns(6)

    def test_a_run_that_does_not_count_is_made_again_in_its_place(self) -> None:
        """The closing run of the baseline was disturbed: its place is empty, and one is still due."""
        setting = TrialSetting(order=Order((0, 1), (2, 3), 5))
        assert following(runs(28, 29), GOOD, setting) is BASELINE
        closed = TrialSetting(order=Order((0, 1, 5), (2, 3), 6))
        assert verdict(runs(28, 29, 28), GOOD, closed).status is VALIDATED


class TestDecisions:
    @pytest.mark.parametrize(
        ("order", "levels", "status", "step"),
        [
            pytest.param("AAT", (28, 29, 28), REJECTED, DONE, id="nothing, after one run"),
            pytest.param("AAT", (28, 29, 12), REJECTED, DONE, id="worse"),
            pytest.param("AAT", (28, 29, 61), OPEN, TRIAL, id="a gain that one run shows"),
            pytest.param("AATA", (28, 29, 61, 28), OPEN, TRIAL, id="one run of a gain, closed"),
            pytest.param("AATT", (28, 29, 61, 62), OPEN, BASELINE, id="a gain over an earlier level"),
            pytest.param("AATTA", (28, 29, 61, 62, 28), VALIDATED, DONE, id="a gain before and after"),
            pytest.param("AATTA", (28, 29, 61, 62, 60), OPEN, TRIAL, id="a gain that the level made, too"),
            pytest.param("AAT", (28, 29, 43), OPEN, TRIAL, id="nothing, and a run that lies far out"),
            pytest.param("AATT", (28, 29, 43, 28), OPEN, BASELINE, id="it goes on"),
            pytest.param("AATTATA", (28, 29, 43, 28, 28, 28, 28), REJECTED, DONE, id="until it is sure"),
            pytest.param("AATTA", (28, 13, 28, 28, 28), OPEN, TRIAL, id="nothing, beside a baseline far out"),
            pytest.param("AATTA", (28, 28, 53, 53, 38), OPEN, TRIAL, id="a gain, closed by one far out"),
            pytest.param("AATTA", (28, 31, 34, 37, 40), REJECTED, DONE, id="a level that rises"),
            pytest.param("AATTA", (28, 34, 70, 76, 52), VALIDATED, DONE, id="a gain on top of one"),
            pytest.param("AATTA", (28, 28, 43, 43, 28), OPEN, DONE, id="hopeless"),
            pytest.param("AATTA", (28, 28, 47, 47, 28), OPEN, TRIAL, id="not hopeless"),
            pytest.param("AATT", (28, 28, 43, 43), OPEN, BASELINE, id="never before the baseline"),
        ],
    )
    def test_what_each_run_decides(
        self, order: str, levels: tuple[float, ...], status: Status, step: NextRun
    ) -> None:
        assert decided(in_turns(order, *levels)) == (status, step)

    @given(
        st.lists(st.sampled_from("AT"), min_size=1, max_size=8).map("".join),
        st.lists(st.floats(0, 100), min_size=10, max_size=10),
    )
    def test_validated_only_behind_the_baseline_and_two_runs_of_the_change(
        self, order: str, levels: list[float]
    ) -> None:
        order = f"AA{order}" if "T" in order else f"AAT{order[1:]}"
        found = judge_case(in_turns(order, *levels[: len(order)]))
        if found.status is VALIDATED:
            assert order.endswith("A")
            assert order.count("T") >= 2

    @given(st.lists(st.floats(5, 95), min_size=20, max_size=20))
    def test_every_trial_ends(self, levels: list[float]) -> None:
        order = "AAT"
        while (step := decided(in_turns(order, *levels[: len(order)]))[1]) is not DONE:
            order += "T" if step is TRIAL else "A"
            assert len(order) <= 2 + len(turns(6))

    @pytest.mark.parametrize(
        ("more", "window", "step"),
        [(0, 40.0, DONE), (1, 40.0, TRIAL), (0, 20.0, TRIAL)],
        ids=["as many as max_runs", "continued", "short runs"],
    )
    def test_when_all_runs_are_made_it_stays_open(self, more: int, window: float, step: NextRun) -> None:
        case = in_turns(
            "AATTATA", *_levels("AATTATA", 19), setting=TrialSetting(more=more), window=window, max_runs=3
        )
        assert decided(case) == (OPEN, step)

    @pytest.mark.parametrize(("more", "window", "most"), [(0, 40.0, 3), (2, 40.0, 9), (1, 20.0, 12)])
    def test_how_many_runs_there_may_be(self, more: int, window: float, most: int) -> None:
        setting = TrialSetting(more=more)
        case = in_turns("AATTA", *_levels("AATTA", 19), setting=setting, window=window, max_runs=3)
        assert case.most == most

    def test_an_open_answer_says_what_is_likely(self) -> None:
        found = judge_case(in_turns("AATTATATTA", *_levels("AATTATATTA", 15)))
        assert found.status is OPEN
        assert found.why == (
            "delta is unknown (+15.0pp (95% CI +9.6 to +20.4)): a gain of 9.6 to 20.4 pp is likely; "
            "success asks for 20pp and surely more than 10pp"
        )

    def test_a_trial_cannot_make_its_own_baseline_worse_and_win_by_it(self) -> None:
        """10 pp of its own, and 20 pp less of all that comes after it."""
        order = "AATTATATTATATTA"
        levels = [48, 48, *(58 if turn == "T" else 28 for turn in order[2:])]
        case = in_turns(order, *levels)
        effect = case.effect
        assert effect is not None
        assert effect.value >= 20
        assert effect.bounds()[0] > 10
        assert judge_case(case).status is OPEN
        same = in_turns(order, *(level if level > 48 else 28 for level in levels))
        assert judge_case(same).status is VALIDATED

    def test_a_host_without_room_is_not_asked_again_and_again(self) -> None:
        """Others take 60 % of what the runs want: 20 points more cannot be reached, whatever is run."""
        taken = Conditions(foreign_procs=0, cpu_stolen=60.0, cpu_cores=0.4)
        cpu = (DeviceEvidence(index=0, uuid="CPU", name="x"),)
        case = in_turns("AATTA", 30, 31, 30, 31, 30, conditions=taken, devices=cpu)
        assert decided(case) == (OPEN, DONE)


def _levels(order: str, gain: float) -> list[float]:
    return [28 + gain * (turn == "T") for turn in order]


class TestOtherGates:
    @pytest.mark.parametrize(
        ("after", "changes", "expected"),
        [
            pytest.param([crashed("oom_gpu", "CUDA out of memory")], {}, DONE, id="out of memory"),
            pytest.param([run(61, 11, trend=Trend.NAN)], {}, DONE, id="NaN"),
            pytest.param(runs(61, 62, rate=3.0), {}, DONE, id="hollow"),
            pytest.param(runs(61, 62, rate=None), {}, DONE, id="no step rate"),
            pytest.param(runs(61, 62, rate=None), {"throughput": "any"}, DONE, id="work cannot be known"),
            pytest.param(runs(46, rate=None), {}, TRIAL, id="no step rate, and delta may still reject"),
            pytest.param(runs(46, rate=8.0, trend=Trend.UNKNOWN), {}, TRIAL, id="as with the loss"),
            pytest.param(runs(61, 62, rate=8.0, trend=Trend.UNKNOWN), {}, DONE, id="more runs tell no loss"),
            pytest.param([run(None)], {}, DONE, id="no utilisation"),
            pytest.param([run(44, 8), run(window=None)], {}, DONE, id="one run without its window"),
        ],
    )
    def test_what_no_run_would_decide_ends_the_trial(
        self, after: list[Evidence], changes: dict[str, Any], expected: NextRun
    ) -> None:
        assert following(BASE, after, **changes) is expected

    def test_where_the_throughput_is_not_decided(self) -> None:
        before, after = runs(70, 71, 69, 70), runs(92, 91, rate=5.2)
        assert verdict(before, after).why.startswith("throughput is unknown (1.04x")
        assert following(before, after) is TRIAL

    def test_where_the_loss_at_equal_steps_is_not_decided(self) -> None:
        def trained(level: float, rate: float, above: float = 0.0) -> Evidence:
            curve = tuple((float(n), 2.0 + above - n / 100) for n in range(0, 100, 2))
            loss = LossEvidence(name="loss", trend=Trend.CONVERGING, points=50, curve=curve)
            return run(level, rate, loss=loss)

        before, after = [trained(level, 5) for level in (28, 27, 29, 28)], [trained(61, 11, 0.13)] * 2
        assert verdict(before, after).why.startswith("loss_parity is unknown (+0.13")
        assert following(before, after) is TRIAL

    def test_a_stranger_on_the_gpu_is_not_waited_out(self) -> None:
        after = [run(62, 11, conditions=Conditions(foreign_procs=1, foreign_share=0.5))]
        assert verdict(BASE, after).status is Status.INVALID
        assert following(BASE, after) is DONE

    def test_a_side_metric_counts_only_where_the_metric_is_sure(self) -> None:
        """Half the speed of a change that may yet be rejected for its utilisation."""
        found = verdict(BASE, runs(43, 44, rate=2.5))
        assert next(g.result for g in found.gates if g.name == "throughput") is Result.FAIL
        assert found.status is OPEN


def simulated(rng: random.Random, gain: float, noise: float) -> tuple[Status, int]:
    """A trial as it is made on a workload at 28 % whose runs differ by `noise` points, and its runs."""
    order, made = "", []
    step = first_run(Order((), (), 0))
    while step is not DONE:
        order += "T" if step is TRIAL else "A"
        level = max(1.0, rng.gauss(28 + gain * (step is TRIAL), noise))
        made.append(run(level, level / 5.6))
        befores = tuple(i for i, turn in enumerate(order) if turn == "A")
        afters = tuple(i for i, turn in enumerate(order) if turn == "T")
        placed = Order(befores, afters, len(order))
        if not afters:
            step = first_run(placed)
            continue
        sides = ([made[i] for i in side] for side in (befores, afters))
        status, step = decided(measured(*sides, TrialSetting(order=placed)))
    return status, order.count("T")


@pytest.mark.parametrize(
    ("gain", "validated", "rejected"),
    [(0, (0, 0), (0.97, 1)), (10, (0, 0.05), (0, 1)), (20, (0.4, 1), (0, 0.05)), (25, (0.93, 1), (0, 0.02))],
)
def test_verdicts_are_right_as_often_as_they_should_be(
    gain: float, validated: tuple[float, float], rejected: tuple[float, float]
) -> None:
    rng = random.Random(gain)
    found = [simulated(rng, gain, 3.5) for _ in range(60)]
    statuses = [status for status, _ in found]
    shares = [statuses.count(status) / len(found) for status in (VALIDATED, REJECTED)]
    assert validated[0] <= shares[0] <= validated[1]
    assert rejected[0] <= shares[1] <= rejected[1]
    if gain == 0:  # Of many, 67 %.
        assert sum(trials == 1 for _, trials in found) >= 0.55 * len(found)
