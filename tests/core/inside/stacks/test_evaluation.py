"""Evaluation is known by what a thread does, not by names of functions."""

from __future__ import annotations

import pytest
from tests.support.diagnoses import stacks

from gpudebug.core.inside.stacks.evaluation import evaluation

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
