"""Evaluation is known by what a thread does, not by names of functions."""

from __future__ import annotations

import pytest
from tests.support.diagnoses import stacks
from tests.support.stack_lines import FRAMES, evidence, told

from gpudebug.core.inside.stacks.evaluation import Hot, evaluation, host_share, hottest, rollout_shares
from gpudebug.core.records import Stacks

STEP = (
    ("forward", "t.py:main m.py:Net.forward", 1, 2.0, 2.0),
    ("backward", "t.py:main torch/_tensor.py:backward", 1, 3.0, 3.0),
)


def test_all_that_a_function_does_to_evaluate_counts_its_loading_too() -> None:
    found = evaluation(
        stacks(
            *STEP,
            ("eval", "t.py:main t.py:quality m.py:Net.forward", 2, 2.0, 2.0),
            ("data", "t.py:main t.py:quality data/dataloader.py:__next__", 2, 1.5, 0.1),
            ("other", "t.py:main t.py:quality", 3, 0.5, 0.1),
            ("other", "t.py:main t.py:save", 4, 1.0, 0.0),
        )
    )
    assert found.value == pytest.approx(4.0 / 10.0)
    assert found.place is not None and found.place.frame == "t.py:quality"


def test_without_a_forward_of_an_evaluation_no_name_makes_one() -> None:
    rows = (
        *STEP,
        ("other", "t.py:main t.py:_maybe_log_save_evaluate torch/serialization.py:save", 4, 5.0, 1.0),
    )
    assert evaluation(stacks(*rows)).value == 0.0


def test_a_function_that_saves_more_than_it_evaluates_is_none() -> None:
    found = evaluation(
        stacks(
            *STEP,
            ("eval", "t.py:main t.py:housekeeping t.py:check", 2, 1.0, 1.0),
            ("other", "t.py:main t.py:housekeeping torch/serialization.py:save", 4, 4.0, 1.0),
        )
    )
    assert found.value == pytest.approx(0.1)
    assert found.place is not None and found.place.frame == "t.py:check"


def test_a_loop_that_trains_too_is_none_and_its_forwards_count_alone() -> None:
    found = evaluation(stacks(*STEP, ("eval", "t.py:main", 2, 5.0, 5.0)))
    assert found.value == pytest.approx(0.5)


def test_only_functions_of_a_name_if_one_is_asked_for() -> None:
    rows = stacks(
        *STEP,
        ("eval", "t.py:main t.py:collect_rollouts m.py:Policy.forward", 2, 3.0, 3.0),
        ("eval", "t.py:main t.py:evaluate_policy m.py:Policy.forward", 2, 2.0, 2.0),
    )
    assert evaluation(rows, "evaluate").value == pytest.approx(0.2)
    assert evaluation(rows, "nothing").value == 0.0
    assert evaluation(rows).value == pytest.approx(0.5)


def test_a_loop_of_a_trainer_counts_with_its_metrics_and_callbacks() -> None:
    """Lightning's validation of a small network: forwards are a tenth of what it takes."""
    loop = "run.py:main loops/training.py:run loops/evaluation_loop.py:run"
    found = evaluation(
        stacks(
            *STEP,
            ("eval", f"{loop} loops/evaluation_loop.py:_step m.py:Net.forward", 1, 0.5, 0.5),
            ("data", f"{loop} loops/fetchers.py:__next__ data/dataloader.py:__next__", 1, 1.0, 1.0),
            ("other", f"{loop} loops/evaluation_loop.py:_step core/module.py:log", 1, 2.0, 2.0),
            ("other", f"{loop} loggers/tensorboard.py:save", 1, 1.5, 0.1),
            ("other", "run.py:main loops/training.py:run torch/serialization.py:save", 1, 1.0, 0.1),
        )
    )
    assert found.value == pytest.approx(5.0 / 11.0)


def test_a_function_that_evaluates_in_a_loop_and_mostly_saves_is_none() -> None:
    found = evaluation(
        stacks(
            *STEP,
            ("eval", "t.py:main t.py:epoch_end m.py:Net.forward", 2, 0.5, 0.5),
            ("data", "t.py:main t.py:epoch_end data/dataloader.py:__next__", 2, 0.5, 0.1),
            ("other", "t.py:main t.py:epoch_end torch/serialization.py:save", 4, 6.0, 1.0),
        )
    )
    assert found.value < 0.1


NAMED = "evaluate"
COLLECT, UPDATE = (
    "t.py:main sb3/a.py:PPO.learn sb3/a.py:collect",
    "t.py:main sb3/a.py:PPO.learn sb3/a.py:train",
)
LEARNS = (
    ("forward", f"{UPDATE} sb3/p.py:Policy.forward", 10, 1.0, 1.0),
    ("backward", f"{UPDATE} torch/_tensor.py:backward", 11, 1.0, 1.0),
    ("optimizer", f"{UPDATE} optim/adam.py:Adam.step", 13, 0.25, 0.25),
    ("other", UPDATE, 12, 0.25, 0.25),
)
CODE = {
    "sb3/a.py:train:12": "loss = a + b",
    "sb3/b.py:Buffer.get:20": "yield self.data[i]",
    "t.py:reward:30": "for one in past:",
    "sb3/c.py:Callbacks.on_step:40": "self.n += 1",
}


def test_acting_and_stepping_environments_are_what_is_done_and_not_the_update() -> None:
    rows = stacks(
        *LEARNS,
        ("eval", f"{COLLECT} sb3/p.py:Policy.forward", 1, 4.0, 4.0),
        ("env", f"{COLLECT} sb3/m.py:Monitor.step envs/pole.py:Pole.step", 2, 2.5, 2.5),
        ("other", f"{COLLECT} sb3/c.py:Callbacks.on_step", 40, 1.0, 1.0),
        code=CODE,
    )
    packaged = (rows.frames.index("sb3/c.py:Callbacks.on_step"),)
    found = rollout_shares(rows.model_copy(update={"packaged": packaged}), NAMED)
    assert (found.act, found.env) == (pytest.approx(0.4), pytest.approx(0.25))
    assert (found.collect, found.batches) == (pytest.approx(0.5), None)


def test_a_function_of_the_users_between_forwards_is_beside_them_unless_it_waits() -> None:
    def beside(cpu_s: float) -> float | None:
        rows = (*LEARNS, ("act", f"{COLLECT} p.py:Policy.forward", 1, 1.0, 1.0))
        return rollout_shares(
            stacks(*rows, ("other", f"{COLLECT} t.py:reward", 30, 6.5, cpu_s), code=CODE), NAMED
        ).beside

    assert beside(6.5) == pytest.approx(0.65)
    assert beside(4.0) is None


def test_batches_are_made_where_an_update_calls_for_them_and_its_loss_is_none() -> None:
    found = rollout_shares(
        stacks(
            *LEARNS,
            ("act", f"{COLLECT} p.py:Policy.forward", 1, 2.0, 2.0),
            ("other", f"{UPDATE} sb3/b.py:Buffer.get", 20, 5.5, 5.5),
            code=CODE,
        ),
        NAMED,
    )
    assert found.batches == pytest.approx(0.55)
    assert found.beside is None


def test_a_network_that_an_update_asks_for_targets_leaves_it_an_update() -> None:
    found = rollout_shares(
        stacks(
            *LEARNS,
            ("act", f"{COLLECT} p.py:Policy.forward", 1, 2.0, 2.0),
            ("act", f"{UPDATE} p.py:Target.forward", 1, 0.5, 0.5),
            ("other", f"{UPDATE} sb3/b.py:Buffer.get", 20, 5.0, 5.0),
            code=CODE,
        ),
        NAMED,
    )
    assert found.batches == pytest.approx(0.5)


def test_what_evaluates_takes_no_time_of_rollouts() -> None:
    rows = (
        *LEARNS,
        ("eval", f"{COLLECT} p.py:Policy.forward", 1, 1.0, 1.0),
        ("eval", f"{COLLECT} e.py:evaluate_policy p.py:Policy.forward", 1, 2.0, 2.0),
        ("env", f"{COLLECT} e.py:evaluate_policy envs/pole.py:Pole.step", 2, 4.5, 4.5),
    )
    found = rollout_shares(stacks(*rows), NAMED)
    assert (found.act, found.env) == (pytest.approx(0.1), None)


def test_a_supervised_step_shows_none_of_it() -> None:
    assert set(rollout_shares(stacks(*LEARNS, code=CODE), NAMED)) == {None}


def test_what_a_function_does_around_a_forward_that_acts_is_acting_as_far_as_no_update_calls_it() -> None:
    choose = "t.py:main t.py:Agent.get_action"
    rows = (
        ("act", f"{choose} nn/linear.py:Linear.forward", 50, 3.0, 3.0),
        ("forward", f"{choose} nn/linear.py:Linear.forward", 50, 1.0, 1.0),
        ("other", f"{choose} distributions/categorical.py:sample", 51, 4.0, 4.0),
        ("backward", "t.py:main torch/_tensor.py:backward", 60, 1.0, 1.0),
        ("optimizer", "t.py:main optim/adam.py:Adam.step", 61, 0.5, 0.5),
        ("env", "t.py:main envs/pole.py:Pole.step", 62, 0.5, 0.5),
    )
    code = {"t.py:Agent.get_action:51": "action = probs.sample()"}
    found = rollout_shares(stacks(*rows, code=code), NAMED)
    assert found.act == pytest.approx((3.0 + 0.75 * 4.0) / 10.0)
    assert (found.beside, found.batches) == (None, None)


STEP_of_host_work = ("other", "job/train.py:<module> job/train.py:main", 51, 2.0, 0.4)
READS = ("other", "job/train.py:<module> job/train.py:main _src/array.py:ArrayImpl.__float__", 53, 1.0, 0.0)
CODE_of_host_work = {
    "job/train.py:main:51": "params, state, loss = train_step(params, state, x, y)",
    "job/train.py:main:53": "print(float(loss))",
    "job/train.py:prepare:16": "out = sum(shift(x, i) for i in range(9))",
}


def prepared(seconds: float, cpu_s: float) -> tuple[str, str, int, float, float]:
    frames = "job/train.py:<module> job/train.py:main job/train.py:prepare _core/numeric.py:roll"
    return ("other", frames, 16, seconds, cpu_s)


def test_what_runs_below_the_loop_counts_whatever_it_is_called() -> None:
    assert host_share(
        stacks(STEP_of_host_work, READS, prepared(7.0, 6.0), code=CODE_of_host_work)
    ) == pytest.approx(0.6)


def test_what_waits_and_what_the_compiler_does_is_no_work_of_the_programs_own() -> None:
    compiles = (
        "other",
        "job/train.py:<module> job/train.py:main _src/compiler.py:backend_compile",
        51,
        9.0,
        9.0,
    )
    assert (
        host_share(stacks(STEP_of_host_work, READS, prepared(7.0, 0.0), compiles, code=CODE_of_host_work))
        == 0.0
    )


def test_without_a_compiler_or_with_pytorch_it_is_unknown() -> None:
    assert host_share(stacks(STEP_of_host_work, prepared(7.0, 6.0), code=CODE_of_host_work)) is None
    forward = ("forward", "job/train.py:main m.py:Net.forward", 1, 1.0, 1.0)
    assert host_share(stacks(READS, forward, code=CODE_of_host_work)) is None


def stacks_of_hottest(*entries: list[object], code: dict[str, str]) -> Stacks:
    found = evidence(told(s=2.0, stacks=[list(entry) for entry in entries], code=code)).training
    assert found is not None
    return found


def test_lines_come_by_the_time_that_they_took_with_all_that_they_call() -> None:
    found = stacks_of_hottest(
        ["data", [0, 1, 2], 7, 0.5, 0.4, 1],
        ["forward", [0, 1], 7, 0.25, 0.0, 1],
        ["other", [0], 30, 0.9, 0.1, 1],
        ["other", [2], 0, 0.2, 0.2, 1],
        code={"1:7": "image.resize(size)", "0:30": ""},
    )
    first, second, third = hottest(found)
    assert first == Hot("train.py:30", "<module>", pytest.approx(0.45), pytest.approx(0.05), "other", "")
    assert second[:3] == ("train.py:7", "main", pytest.approx(0.375))
    assert (second.phase, second.code, second.state) == ("data", "image.resize(size)", "runs")
    assert (third.site, third.function, third.state) == ("Image.py", "Image.resize", "runs")
    assert (first.state, FRAMES[2]) == ("waits", "PIL/Image.py:Image.resize")


def test_nothing_that_was_watched_has_no_lines() -> None:
    assert hottest(Stacks(seconds=0.0, cpu_s=0.0, samples=0)) == []


def test_lines_of_a_function_beside_the_training_are_one() -> None:
    loop = "job/train.py:<module> job/train.py:main"
    code = {"job/train.py:pair:7": "c = cost(a, b)", "job/train.py:pair:8": "assign(c)"}
    code |= {"job/train.py:main:20": "y = x.view(-1)", "job/train.py:main:21": "loss.backward()"}
    found = stacks(
        ("other", f"{loop} job/train.py:pair", 7, 2.0, 2.0),
        ("other", f"{loop} job/train.py:pair", 8, 1.5, 1.5),
        ("other", loop, 20, 1.0, 1.0),
        ("backward", f"{loop} torch/_tensor.py:Tensor.backward", 21, 4.0, 4.0),
        code=code,
    )
    assert [(one.site, one.share) for one in hottest(found)] == [
        ("train.py:21", pytest.approx(4.0 / 8.5)),
        ("train.py:7", pytest.approx(3.5 / 8.5)),
        ("train.py:20", pytest.approx(1.0 / 8.5)),
    ]
