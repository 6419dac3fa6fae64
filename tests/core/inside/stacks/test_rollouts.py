"""What rollouts take is known by what is called from where."""

from __future__ import annotations

import pytest
from tests.support.diagnoses import stacks

from gpudebug.core.inside.stacks.rollouts import rollout_shares

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
