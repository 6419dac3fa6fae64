"""Learning by a reward: its course, and beside the baseline's at equal work."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import (
    Evidence,
    Gate,
    LearningSeries,
    LearningUnit,
    LossEvidence,
    Verdict,
    WorkRate,
    WorkUnit,
)
from gpudebug.core.statistics.loss_curve import curve
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.words import Result, Status, Trend

UNIT = LearningUnit(metric="reward", name="ep_rew_mean", source="the log")
WORK = WorkUnit(unit="environment steps", source="total_timesteps")


def rising(slope: float, until: int = 40, *, start: float = 20.0, finite: bool = True) -> LearningSeries:
    """A reward that rises by `slope` every 500 environment steps."""
    curve = tuple((500.0 * n, start + slope * n) for n in range(1, until + 1))
    return LearningSeries(
        metric="reward",
        name="ep_rew_mean",
        source="the log",
        points=until,
        first=curve[0][1],
        last=curve[-1][1],
        finite=finite,
        over="total_timesteps",
        curve=curve,
    )


def learner(series: LearningSeries | None, per_s: float = 500.0, envs: int = 1, **more: Any) -> Evidence:
    """PPO: its own loss is flat."""
    return run(
        30.0 if per_s < 600 else 60.0,
        20.0,
        learning=(series,) if series else (),
        work=(WorkRate(unit="environment steps", per_s=per_s, source="total_timesteps"),),
        loss=LossEvidence(name="loss", trend=Trend.PLATEAU, points=40),
        step_flags={"n_envs": str(envs)},
        **more,
    )


def judged(before: list[Evidence], after: list[Evidence], **more: Any) -> Verdict:
    return verdict(before, after, TrialSetting(work=WORK, learning=UNIT, **more))


def test_a_flat_loss_of_ppo_no_longer_stands_in_for_learning() -> None:
    before = [learner(rising(4.0 + n / 50)) for n in range(4)]
    after = [learner(rising(4.0 + n / 50), 1100.0) for n in range(3)]
    found = judged(before, after)
    assert (gate(found, "loss").result, gate(found, "loss_parity").result) == (Result.PASS, Result.PASS)
    assert (
        gate(found, "loss").note == "learning is judged by reward ep_rew_mean, from the log, higher is better"
    )
    assert (found.status, found.loss) == (Status.VALIDATED, Trend.CONVERGING)


def test_a_flat_reward_in_a_short_window_is_no_failure() -> None:
    before, after = [learner(rising(0.01))] * 4, [learner(rising(0.012), 1100.0)] * 3
    found = judged(before, after)
    assert [gate(found, name).result for name in ("loss", "loss_parity")] == [Result.PASS, Result.PASS]


def test_a_reward_that_is_no_number_fails() -> None:
    found = judged([learner(rising(4.0))] * 4, [learner(rising(4.0, finite=False), 1100.0)])
    assert (gate(found, "loss").result, gate(found, "loss").value) == (Result.FAIL, "ep_rew_mean NAN")
    assert found.status is Status.REJECTED


def test_a_reward_that_collapses_fails() -> None:
    found = judged([learner(rising(4.0))] * 4, [learner(rising(-1.0, start=50.0), 1100.0)] * 3)
    assert gate(found, "loss").result is Result.FAIL
    assert found.status is Status.REJECTED


def test_a_trial_that_learns_less_at_equal_work_fails() -> None:
    found = judged([learner(rising(4.0))] * 4, [learner(rising(2.0), 1100.0)] * 3)
    parity = gate(found, "loss_parity")
    assert parity.result is Result.FAIL
    assert parity.value.startswith("ep_rew_mean -")


def test_a_trial_without_the_reward_is_unknown() -> None:
    found = judged([learner(rising(4.0))] * 4, [learner(None, 1100.0, learning_notes=("x.csv is cut",))])
    loss = gate(found, "loss")
    assert loss.result is Result.UNKNOWN
    assert "shows fewer than 3 values of ep_rew_mean" in str(loss.note)
    assert "x.csv is cut" in str(loss.note)


@pytest.mark.parametrize(
    ("slope", "per_s", "expected"),
    [
        # Half as good by environment steps, as good by time: that is what more environments are.
        (2.2, 1000.0, Result.PASS),
        # Behind in both: nothing was gained.
        (0.4, 1000.0, Result.FAIL),
    ],
)
def test_more_environments_may_trade_work_for_speed(slope: float, per_s: float, expected: Result) -> None:
    before = [learner(rising(4.0)) for _ in range(4)]
    after = [learner(rising(slope, 80), per_s, envs=8) for _ in range(3)]
    parity = gate(judged(before, after, knob="n_envs"), "loss_parity")
    assert parity.result is expected
    if expected is Result.PASS:
        assert "at equal time" in str(parity.note)


def later(series: LearningSeries) -> LearningSeries:
    """The same with its values 50 times as far apart: the first is later than the last of 40."""
    return series.model_copy(update={"curve": tuple((50 * x, y) for x, y in series.curve)})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (4.0, 0.0, Result.UNKNOWN),
        # It shows by itself that it learns, or the baseline does not show that it does.
        (4.0, 4.0, Result.SKIPPED),
        (0.0, 0.0, Result.SKIPPED),
    ],
)
def test_a_flat_reward_without_work_in_common_is_unknown_where_the_baselines_rises(
    before: float, after: float, expected: Result
) -> None:
    found = judged([learner(rising(before))] * 4, [learner(later(rising(after)), 1100.0)] * 3)
    assert gate(found, "loss_parity").result is expected
    assert (found.status is Status.VALIDATED) is (expected is not Result.UNKNOWN)


def test_more_environments_without_work_in_common_are_judged_at_equal_time() -> None:
    # Its first values come late, as a rollout of all of its environments is long.
    long = later(rising(0.01, start=180.0))
    found = judged([learner(rising(4.0))] * 4, [learner(long, 26_000.0, envs=64)] * 3, knob="n_envs")
    parity = gate(found, "loss_parity")
    assert (parity.result, "at equal time" in str(parity.note)) == (Result.SKIPPED, True)


def test_with_loss_any_learning_is_not_judged() -> None:
    setting = TrialSetting(work=WORK, learning=UNIT)
    found = verdict([learner(rising(4.0))] * 4, [learner(rising(0.1), 1100.0)] * 3, setting, loss="any")
    assert {gate(found, name).result for name in ("loss", "loss_parity")} == {Result.SKIPPED}


def test_one_run_a_side_does_not_show_that_half_is_learnt() -> None:
    """Four runs show that it fails; one leaves it open, and passes nothing."""
    found = judged([learner(rising(4.0))], [learner(rising(2.8), 1100.0)])
    assert gate(found, "loss_parity").result is Result.UNKNOWN
    equal = judged([learner(rising(4.0))], [learner(rising(4.0), 1100.0)])
    assert gate(equal, "loss_parity").result is Result.PASS


@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize(("larger", "result"), [(1, Result.PASS), (8, Result.SKIPPED)])
def test_steps_of_a_file_are_compared_if_one_is_as_much_work_in_both(
    scale: float, larger: int, result: Result
) -> None:
    """rsl_rl writes the reward over iterations: one of eight times the environments is another thing."""

    def written(slope: float, per_s: float, envs: int, scale: float) -> Evidence:
        printed = rising(slope)
        curve = tuple((scale * x, y) for x, y in printed.curve)
        series = printed.model_copy(update={"source": "TensorBoard", "over": "its steps", "curve": curve})
        return learner(series, per_s, envs, duration_s=40.0)

    unit = UNIT.model_copy(update={"source": "TensorBoard"})
    setting = TrialSetting(work=WORK, learning=unit, knob="n_envs")
    before = [written(4.0, 500.0, 1, scale)] * 4
    after = [written(4.0, 600.0, 8, scale / larger)] * 3
    parity = gate(verdict(before, after, setting), "loss_parity")
    assert parity.result is result
    assert ("one step may do a different amount of work" in str(parity.note)) is (result is Result.SKIPPED)


def trained(level: float, rate: float, *, above: float = 0.0, name: str = "loss", **more: Any) -> Evidence:
    points = [(n, 0.5 + above + 1.5 * math.exp(-n / 80)) for n in range(0, 400, 2)]
    loss = LossEvidence(name=name, trend=Trend.CONVERGING, points=200, curve=curve(points))
    return run(level, rate, loss=loss, **more)


BASE = [trained(level, 5) for level in (28, 27, 29, 28)]


def parity(*after: Evidence, setting: TrialSetting | None = None, **changes: Any) -> Gate:
    return gate(verdict(BASE, after, setting, **changes), "loss_parity")


@pytest.mark.parametrize(
    ("above", "result"), [(0.0, Result.PASS), (-0.5, Result.PASS), (0.1, Result.PASS), (0.9, Result.FAIL)]
)
def test_only_a_loss_that_is_surely_higher_fails(above: float, result: Result) -> None:
    assert parity(trained(61, 11, above=above), trained(62, 11, above=above)).result is result


def test_a_loss_that_may_be_higher_is_unknown_and_says_so() -> None:
    found = parity(trained(61, 11, above=0.2))
    assert found.result is Result.UNKNOWN
    assert found.note is not None
    assert "not surely" in found.note


def test_a_change_that_learns_less_is_rejected_however_fast_it_is() -> None:
    found = verdict(BASE, [trained(61, 11, above=0.9), trained(62, 11, above=0.9)])
    assert found.status is Status.REJECTED
    assert found.why == "loss parity: +0.9, 81% of what the baseline's falls by"


@pytest.mark.parametrize(
    ("after", "setting", "changes", "why"),
    [
        (trained(61, 11, name="l1_loss"), None, {}, "the logs print l1_loss and loss"),
        (trained(61, 11, unit="samples"), None, {}, "the logs count samples and step"),
        (trained(61, 11), TrialSetting(other_steps="the trial changes --bs"), {}, "the trial changes --bs"),
        (trained(61, 11), None, {"loss": "any"}, "the criteria have loss: any"),
        (run(61, 11), None, {}, "prints no steps"),
    ],
)
def test_what_cannot_be_compared_is_skipped_with_the_reason(
    after: Evidence, setting: TrialSetting | None, changes: dict[str, Any], why: str
) -> None:
    found = parity(after, setting=setting, **changes)
    assert (found.result, found.value) == (Result.SKIPPED, "unknown")
    assert found.note is not None
    assert found.note.startswith("not comparable: ")
    assert why in found.note


def test_another_plan_of_steps_may_be_another_schedule() -> None:
    before = [trained(28, 5, total_steps=400) for _ in range(2)]
    found = gate(verdict(before, [trained(61, 11, total_steps=800, above=0.9)]), "loss_parity")
    assert found.result is Result.SKIPPED
    assert "the runs plan 400 and 800 steps" in (found.note or "")


@pytest.mark.parametrize(
    ("above", "result"), [(0.0, Result.PASS), (0.25, Result.UNKNOWN), (1.4, Result.UNKNOWN)]
)
def test_one_run_a_side_shows_no_loss_that_is_a_little_higher(above: float, result: Result) -> None:
    """17 % of the fall, where an interval of two runs reaches to twice that: not surely, and not harmless."""
    found = verdict(BASE[:1], [trained(61, 11, above=above)])
    assert gate(found, "loss_parity").result is result


def test_one_run_that_got_stuck_does_not_refuse_a_change_while_another_may_be_made() -> None:
    """Two runs of the baseline that happen to agree say nothing of a seed that learns nothing."""
    stuck = verdict(BASE, [trained(61, 11, above=0.9)])
    parity = gate(stuck, "loss_parity")
    assert (stuck.status, parity.result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert "another run tells" in (parity.note or "")
    only = verdict(BASE, [trained(61, 11, above=0.9)], max_runs=1)
    assert gate(only, "loss_parity").result is Result.FAIL
