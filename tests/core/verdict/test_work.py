"""The unit of work of a campaign: chosen once, kept for every run, and what the gates make of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import (
    Evidence,
    LearningSeries,
    LearningUnit,
    LossEvidence,
    ProbeEvidence,
    Terms,
    Verdict,
    WorkRate,
    WorkUnit,
)
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.verdict.work import (
    choose,
    choose_learning,
    learning_text,
    rates,
    terms_by,
    text,
    trend,
    worst,
)
from gpudebug.core.words import Result, Status, Trend

ENV = WorkUnit(unit="environment steps", source="total_timesteps")


def counting(per_s: float | None, updates: float, util: float = 30.0, **more: Any) -> Evidence:
    """A run of a reinforcement learner: environment steps and updates a second."""
    work = [WorkRate(unit="environment steps", per_s=per_s, source="total_timesteps")] if per_s else []
    steps = WorkRate(unit="optimizer steps", per_s=updates, source="the probe")
    return run(util, updates, work=(*work, steps), **more)


def judged(
    before: list[Evidence], after: list[Evidence], unit: WorkUnit | None = ENV, **more: Any
) -> Verdict:
    setting = TrialSetting(work=unit, **more)
    return verdict(
        before, after, setting, metric="steps_per_s", success=1.2, failure=1.1, throughput="better"
    )


def envs(n: int) -> dict[str, Any]:
    return {"step_flags": {"n_envs": str(n)}}


def test_it_is_chosen_from_what_all_runs_count() -> None:
    chosen = choose([counting(500, 20), counting(510, 20)])
    assert chosen == ENV
    assert text(ENV) == "environment steps, from total_timesteps"
    assert choose([counting(500, 20), counting(None, 20)]) == WorkUnit(
        unit="optimizer steps", source="the probe"
    )
    assert choose([run()]) is None
    assert choose([]) is None


def test_one_that_is_set_is_marked_and_never_replaced() -> None:
    chosen = choose([counting(500, 20)], "optimizer steps")
    assert chosen is not None
    assert text(chosen) == "optimizer steps, from the probe (set)"
    missing = choose([counting(500, 20)], "tokens")
    assert missing is not None
    assert text(missing) == "tokens, which not all runs count (set)"
    found = judged([counting(500, 20)] * 4, [counting(1100, 44)] * 3, missing)
    assert gate(found, "throughput").note == "work: tokens is set, and not all runs count it"
    assert choose([run()], "tokens") == missing


TOKENS_SET = WorkUnit(unit="tokens", source="", chosen=False)


@pytest.mark.parametrize("work", [None, TOKENS_SET], ids=["auto", "set"])
@pytest.mark.parametrize("learning", [None, {"metric": "log:success", "direction": "higher"}])
@pytest.mark.parametrize("counted", [[], [counting(500, 20)], [counting(500, 20), run()]], ids=len)
def test_terms_that_are_stored_come_out_again(
    work: WorkUnit | None, learning: dict[str, str] | None, counted: list[Evidence]
) -> None:
    terms = terms_by(Terms(criteria={"learning": learning}, protocol={}, work=work), counted)
    assert terms.work == choose(counted, "tokens" if work else "auto")
    assert terms.learning == choose_learning(counted, learning)
    assert terms_by(terms, counted) == terms


def test_more_environments_are_faster_though_updates_are_fewer() -> None:
    """The measured failure: 2.2 times the environment steps, a quarter of the updates a second."""
    before = [counting(500, 20, **envs(1)) for _ in range(4)]
    after = [counting(1100, 5.5, **envs(8)) for _ in range(3)]
    found = judged(before, after, knob="n_envs")
    assert gate(found, "throughput").value.startswith("2.20x")
    assert (gate(found, "delta").result, found.status) == (Result.PASS, Status.VALIDATED)
    assert (found.throughput_before, found.throughput_after) == (pytest.approx(500), pytest.approx(1100))
    assert found.throughput_unit == "environment steps"


@pytest.mark.parametrize(
    ("optimizer", "status"),
    [
        # As much work to a step of the optimizer as before: only SB3's n_updates has become a larger thing.
        (87.5, Status.VALIDATED),
        # The program says four times the work, for no more steps of the optimizer: its word alone.
        (22.0, Status.REJECTED),
    ],
)
def test_larger_steps_of_the_log_are_work_if_the_optimizer_confirms_it(
    optimizer: float, status: Status
) -> None:
    """Measured with n_envs in a file that no flag names: 24 to 12 updates, 1600 to 5600 environment steps."""
    before = [counting(1600, 24, probe=ProbeEvidence(pid=1, steps=500, steps_per_s=25.0)) for _ in range(4)]
    inside = ProbeEvidence(pid=1, steps=500, steps_per_s=optimizer)
    after = [counting(5600, 12, probe=inside) for _ in range(3)]
    found = judged(before, after)
    assert found.status is status, found.why
    assert (gate(found, "throughput").result is Result.UNKNOWN) == (status is Status.REJECTED)


def test_device_time_is_of_the_unit_of_work() -> None:
    """Twice as busy, for more than twice the work: conserved; by updates seven times as much."""
    before = [counting(500, 20, 30.0, **envs(1)) for _ in range(4)]
    after = [counting(1100, 5.5, 60.0, **envs(8)) for _ in range(3)]
    found = verdict(before, after, TrialSetting(work=ENV, knob="n_envs"))
    assert gate(found, "work_conserved").value.startswith("0.91x")
    assert gate(found, "work_conserved").threshold == "busy time an environment step at most 1.15x"


def test_a_trial_that_does_not_count_it_is_unknown() -> None:
    after = [counting(None, 80, work_notes=("total_timesteps began again at 9 after 90: it is not used",))]
    found = judged([counting(500, 20)] * 4, after)
    throughput = gate(found, "throughput")
    assert throughput.result is Result.UNKNOWN
    assert throughput.note is not None
    assert "of the trial does not count environment steps by total_timesteps" in throughput.note
    assert "began again" in throughput.note
    assert found.status is not Status.VALIDATED


def test_another_source_of_the_same_unit_is_taken_if_all_runs_have_it() -> None:
    printed = WorkRate(unit="environment steps", per_s=480, source="printed fps")
    both = counting(500, 20)
    both = both.model_copy(update={"work": (*both.work, printed)})
    found = rates(ENV, [both], [run(work=(printed,))])
    assert (found.source, found.before, found.after) == ("printed fps", (480,), (480,))


def test_a_printed_rate_takes_no_place_of_a_counter_that_is_wrong() -> None:
    printed = WorkRate(unit="environment steps", per_s=9000, source="printed fps")
    both = counting(500, 20)
    both = both.model_copy(update={"work": (*both.work, printed)})
    wrong = run(work=(printed,), work_notes=("total_timesteps began again at 9 after 90: it is not used",))
    found = rates(ENV, [both], [wrong])
    assert (found.source, found.after) == (None, ())
    assert "began again at 9" in (found.why or "")


def test_without_a_unit_steps_are_compared_as_before() -> None:
    found = judged([counting(500, 20)] * 4, [counting(1100, 5.5)] * 3, None)
    assert found.throughput_unit == "step"
    assert gate(found, "throughput").value.startswith("0.2")


def test_steps_of_another_rollout_length_are_not_compared() -> None:
    """Nothing but steps is counted, and the command sets another number of environments."""
    steps = WorkUnit(unit="optimizer steps", source="the probe")
    found = judged([counting(None, 20, **envs(1))] * 4, [counting(None, 40, **envs(8))] * 3, steps)
    throughput = gate(found, "throughput")
    assert (throughput.result, throughput.note) == (
        Result.UNKNOWN,
        "n_envs differs: a step is not the work of one in the baseline",
    )


def test_samples_of_another_length_are_not_compared() -> None:
    unit = WorkUnit(unit="samples", source="the probe")
    rate = WorkRate(unit="samples", per_s=64, source="the probe")
    before = [run(work=(rate,), step_flags={"block_size": "256"})] * 4
    after = [run(work=(rate,), step_flags={"block_size": "128"})] * 3
    assert "a sample is not the work of one" in str(gate(judged(before, after, unit), "throughput").note)


def test_the_log_alone_is_the_programs_own_word() -> None:
    """More environments: no step of the optimizer confirms the log's count of them."""
    probe = ProbeEvidence(pid=1, steps=500, steps_per_s=20.0)
    before = [counting(500, 20, probe=probe, **envs(1)) for _ in range(4)]
    after = [counting(1100, 20, probe=probe, **envs(8)) for _ in range(3)]
    assert gate(judged(before, after, knob="n_envs"), "throughput").source == "log"


def test_a_change_of_code_that_prints_more_work_has_to_be_explained() -> None:
    probe = ProbeEvidence(pid=1, steps=500, steps_per_s=20.0)

    def printing(per_s: float) -> Evidence:
        found = counting(per_s, 20, probe=probe)
        return found.model_copy(update={"step_unit": "timesteps", "progress_per_s": per_s})

    before, after = [printing(500)] * 4, [printing(1100)] * 3
    throughput = gate(judged(before, after, code=True), "throughput")
    assert throughput.result is Result.UNKNOWN
    assert "timesteps of the log for each step of the optimizer" in str(throughput.note)


def test_steps_that_take_more_work_are_judged_by_work() -> None:
    """`metric: steps_per_s` and eight environments: fewer and larger updates are no loss of speed."""
    before = [counting(500, 20, **envs(1)) for _ in range(4)]
    found = judged(before, [counting(1100, 5.5, **envs(8)) for _ in range(3)], knob="n_envs")
    assert (found.metric, gate(found, "delta").result) == ("work_per_s", Result.PASS)
    assert (found.metric_before, found.metric_after) == (pytest.approx(500), pytest.approx(1100))
    assert found.status is Status.VALIDATED
    # Smaller steps that come faster stay steps, and throughput says what they are.
    smaller = judged(before, [counting(400, 60, **envs(2)) for _ in range(4)], knob="n_envs")
    assert (smaller.metric, smaller.status, smaller.hollow) == ("steps_per_s", Status.REJECTED, True)


def test_work_as_the_metric_of_a_campaign() -> None:
    ratios = {"metric": "work_per_s", "success": 1.2, "failure": 1.1}
    sides = [counting(500, 20)] * 4, [counting(1100, 44)] * 3
    found = verdict(*sides, TrialSetting(work=ENV), **ratios)
    assert (found.metric, found.status) == ("work_per_s", Status.VALIDATED)
    assert gate(found, "throughput").note == "the metric is the throughput: delta has judged it"
    missing = verdict(sides[0], [counting(None, 44)], TrialSetting(work=ENV), **ratios)
    assert gate(missing, "delta").result is Result.UNKNOWN


def test_a_trial_without_a_loader_to_count_is_compared_by_steps() -> None:
    """Data that is moved into memory: nothing counts samples any more, and the batch is what it was."""
    unit = WorkUnit(unit="samples", source="the probe")
    before = [run(rate=8.0, work=(WorkRate(unit="samples", per_s=64, source="the probe"),))] * 4
    after = [run(rate=16.0, work=(WorkRate(unit="optimizer steps", per_s=16, source="the probe"),))] * 3
    found = judged(before, after, unit)
    assert gate(found, "throughput").value.startswith("2.00x")
    assert found.throughput_unit == "step"
    other = judged(before, [e.model_copy(update={"batch_flags": {"batch": "4"}}) for e in after], unit)
    assert gate(other, "throughput").result is Result.UNKNOWN


STEPS = WorkUnit(unit="optimizer steps", source="the probe")


@pytest.mark.parametrize("unit", [ENV, STEPS, None], ids=["work that the trial lacks", "steps", "no unit"])
@pytest.mark.parametrize("metric", ["steps_per_s", "gpu_util"])
@pytest.mark.parametrize("knob", ["n_envs", "rollout_batches_per_step"])
def test_fewer_steps_of_unknown_work_are_no_loss(unit: WorkUnit | None, metric: str, knob: str) -> None:
    """A quarter of the steps a second, each of them perhaps eight times as much: slower by nothing."""
    before = [counting(500 if unit is ENV else None, 20, 30.0)] * 4
    after = [counting(None, 5.5, 60.0)] * 3
    how = {"metric": metric, "throughput": "better"}
    criterion = {"success": 1.2, "failure": 1.1} if metric == "steps_per_s" else {}
    found = verdict(before, after, TrialSetting(work=unit, knob=knob), **how, **criterion)
    assert found.status is Status.INCONCLUSIVE, found.why
    # Steps of a known size that come as seldom are a loss.
    plain = verdict([counting(None, 20, 30.0)] * 4, after, TrialSetting(work=STEPS), **how, **criterion)
    assert plain.status is Status.REJECTED


def test_a_setting_beside_the_command_that_makes_steps_smaller_is_no_gain() -> None:
    """`N_ENVS=1` in the environment: three times the steps, a third of the work or less."""
    found = judged([counting(None, 20)] * 4, [counting(None, 60)] * 3, STEPS, knob="N_ENVS")
    assert found.status is Status.INCONCLUSIVE
    assert gate(found, "throughput").note == "N_ENVS differs: a step is not the work of one in the baseline"


REWARD = LearningUnit(metric="reward", name="ep_rew_mean", source="the log")


def rewards(*values: float, metric: str = "reward", finite: bool = True, step: float = 100) -> LearningSeries:
    return LearningSeries(
        metric=metric,
        name="ep_rew_mean" if metric == "reward" else metric,
        source="the log",
        points=len(values),
        first=values[0],
        last=values[-1],
        finite=finite,
        over="total_timesteps",
        curve=tuple((step * (n + 1), v) for n, v in enumerate(values)),
    )


def learning(*series: LearningSeries, printed: int = 20) -> Evidence:
    return run(learning=series, loss=LossEvidence(name="loss", trend=Trend.PLATEAU, points=printed))


def test_a_reward_stands_before_the_loss() -> None:
    assert choose_learning([learning(rewards(1, 2, 3))] * 2) == REWARD
    assert learning_text(REWARD) == "reward ep_rew_mean, from the log, higher is better"
    assert learning_text(None) == "the loss that the log prints"


def test_without_a_reward_in_all_runs_it_is_the_printed_loss() -> None:
    assert choose_learning([learning(rewards(1, 2, 3)), learning()]) is None
    assert choose_learning([]) is None


def test_a_loss_that_only_files_hold_is_taken_if_none_is_printed() -> None:
    loss = rewards(3, 2, 1, metric="loss")
    assert choose_learning([learning(loss)]) is None
    found = choose_learning([learning(loss, printed=0)])
    assert found is not None
    assert (found.metric, found.direction) == ("loss", "lower")


def test_one_that_is_set_is_never_replaced() -> None:
    found = choose_learning([learning(rewards(1, 2, 3))], {"metric": "log:success", "direction": "higher"})
    assert found is not None
    assert (found.source, found.chosen) == ("", False)
    assert worst([learning(rewards(1, 2, 3))], found) is Trend.UNKNOWN
    assert choose_learning([learning(rewards(1, 2, 3))], {"metric": "loss", "direction": "lower"}) is None


@pytest.mark.parametrize(
    ("series", "direction", "expected"),
    [
        (rewards(1, 5, 9, 20), "higher", Trend.CONVERGING),
        (rewards(-1300, -1290, -1310), "higher", Trend.PLATEAU),
        (rewards(-1300, -700, -200), "higher", Trend.CONVERGING),
        (rewards(20, 9, 5, 1), "higher", Trend.DIVERGING),
        (rewards(20, 9, 5, 1), "lower", Trend.CONVERGING),
        (rewards(1, 2, 3, finite=False), "higher", Trend.NAN),
        (rewards(1, 2), "higher", Trend.UNKNOWN),
        (None, "higher", Trend.UNKNOWN),
    ],
)
def test_the_course(series: LearningSeries | None, direction: str, expected: Trend) -> None:
    assert trend(series, direction) is expected
