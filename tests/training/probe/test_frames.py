"""An environment's step is known by the class that has it, not by its name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from tests.support.probed import PROBE


@pytest.fixture
def gym(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """The base class of environments, in the module that has it."""
    core = ModuleType("gymnasium.core")

    class Env:
        def step(self, action: int) -> int:
            return action

    core.Env = Env  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gymnasium.core", core)
    yield Env


def steps_one(method: Any) -> bool:
    sys.path.append(str(PROBE))
    try:
        module = importlib.import_module("gpudebug_probe.frames")
    finally:
        sys.path.remove(str(PROBE))
    return bool(module.steps_one(method.__code__))


def test_the_step_of_an_environment_is_one_whatever_it_derives_from_in_between(gym: type) -> None:
    class Wrapper(gym):  # type: ignore[misc, valid-type]
        def observe(self) -> int:
            return 1

    class Maze(Wrapper):
        def step(self, action: int) -> int:
            return self.observe() + action

    assert steps_one(gym.step)  # type: ignore[attr-defined]
    assert steps_one(Maze.step)
    assert not steps_one(Wrapper.observe)


def test_a_step_of_anything_else_is_none(gym: type) -> None:
    class Scheduler:
        def step(self) -> None:
            """Do nothing."""

    def step() -> None:
        """Do nothing."""

    assert not steps_one(Scheduler.step)
    assert not steps_one(step)


def test_what_steps_many_environments_at_once_steps_none_alone(gym: type) -> None:
    class Fields(gym):  # type: ignore[misc, valid-type]
        num_envs = 64

        def step(self, action: int) -> int:
            return action

    class VectorEnv(gym):  # type: ignore[misc, valid-type]
        def step(self, action: int) -> int:
            return action

    assert not steps_one(Fields.step)
    assert not steps_one(VectorEnv.step)


def test_without_a_library_of_environments_nothing_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gymnasium.core", raising=False)

    class Env:
        def step(self) -> None:
            """Do nothing."""

    assert not steps_one(Env.step)


def test_a_step_that_is_wrapped_is_still_the_environments(gym: type) -> None:
    def step(self: Any, action: int) -> int:
        return action

    def around(self: Any, action: int) -> int:
        return step(self, action)

    around.__wrapped__ = step  # type: ignore[attr-defined]
    kind = type("Timed", (gym,), {"step": around})
    assert kind.__name__ == "Timed"
    assert steps_one(step)
