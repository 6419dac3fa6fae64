"""How long start-up, first steps and the steady loop took, and what of a plan each costs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import stacks
from tests.support.trials import run

from gpudebug.core.diagnosis.run_phases import phases_of
from gpudebug.core.records import StacksEvidence, Window
from gpudebug.core.words import Outcome

SAVES = StacksEvidence(
    training=stacks(
        ("other", "train.py:main torch/serialization.py:save", 9, 2.0, 1.0),
        ("forward", "train.py:main net.py:forward", 5, 8.0, 8.0),
    )
)
STEPS = {"first_step_s": 20.0, "window": Window(start_s=24.0, end_s=54.0, samples=150, rule="steps")}


@pytest.mark.parametrize(
    ("total", "most"),
    [(None, (None, None)), (50, ("start-up", 20 / 45)), (1000, ("evaluation", 0.3 * 500 / 520))],
)
def test_what_costs_most_depends_on_how_long_it_trains(
    total: int | None, most: tuple[str | None, float | None]
) -> None:
    ended = {"outcome": Outcome.ENDED_BY_PLAN, "total_steps": total, "stacks": SAVES}
    evidence = run(50.0, rate=2.0).model_copy(update={**STEPS, **ended})
    found = phases_of(evidence, {"eval_share": 0.3, "loader_restart_share": 0.004})
    assert found is not None
    assert (found.start_up_s, found.first_steps_s, found.steady_s) == (20.0, 4.0, 30.0)
    assert found.within == {"evaluation": 0.3, "saving": 0.2}
    assert (found.most, found.most_share) == (most[0], most[1] and pytest.approx(most[1]))


def test_a_run_that_ended_by_itself_is_its_own_plan() -> None:
    ended = {"outcome": Outcome.COMPLETED, "total_steps": None, "duration_s": 25.0}
    found = phases_of(run(50.0, rate=2.0).model_copy(update={**STEPS, **ended}), {})
    assert found is not None
    assert (found.most, found.most_share) == ("start-up", pytest.approx(20 / 25))


def test_start_up_is_named_by_its_place_and_by_what_of_another_file_called_it() -> None:
    code = {"job/train.py:Calls.read:9": "image.decode()"}
    seen = stacks(
        ("other", "job/train.py:main lib/sampler.py:Grouped.__init__ job/train.py:Calls.read", 9, 8.0, 8.0),
        ("other", "job/train.py:main lib/other.py:load", 5, 2.0, 2.0),
        code=code,
    )
    flat = stacks(*(("other", f"job/train.py:f{n}", n, 1.0, 1.0) for n in range(9)), code={})
    named = {"supervised": seen, "ppo": flat}
    found = phases_of(run(50.0, rate=2.0).model_copy(update=STEPS), {}, seen, named)
    assert found is not None and found.start_up_place is not None
    # Nothing is named for a phase whose time is in many places.
    assert found.named_places == {"supervised": found.start_up_place}
    place = found.start_up_place
    assert (place.site, place.function, place.share) == ("train.py:9", "Calls.read", 0.8)
    assert found.start_up_caller == "lib/sampler.py:Grouped.__init__"


def test_start_up_that_no_place_stands_out_of_is_not_named() -> None:
    many = stacks(*(("other", f"job/train.py:part{n}", n, 1.0, 1.0) for n in range(8)))
    found = phases_of(run(50.0, rate=2.0).model_copy(update=STEPS), {}, many)
    assert found is not None and (found.start_up_place, found.start_up_caller) == (None, None)


@pytest.mark.parametrize("missing", [{"first_step_s": None}, {"window": None}])
def test_without_a_step_or_a_window_there_are_no_phases(missing: dict[str, Any]) -> None:
    assert phases_of(run(50.0).model_copy(update={**STEPS, **missing}), {}) is None
