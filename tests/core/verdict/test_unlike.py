"""Runs of one command that did other work."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import run

from gpudebug.core.records import LossEvidence
from gpudebug.core.verdict.unlike import unlike, unlike_notes
from gpudebug.core.words import Outcome, Trend

WHOLE: dict[str, Any] = {
    "first_count": 1,
    "last_count": 40,
    "step_unit": "epoch",
    "progress_per_s": 0.7,
    "duration_s": 60.0,
}
FEWER: dict[str, Any] = {"last_count": 5, "duration_s": 12.0}


@pytest.mark.parametrize(
    ("changes", "changed", "why"),
    [
        ({}, False, None),
        ({"resumed": "Loading snapshot"}, False, "it goes on where an earlier run ended (Loading snapshot)"),
        ({"resumed": "Loading snapshot"}, True, "it goes on where an earlier run ended (Loading snapshot)"),
        ({"first_count": 36}, False, "it begins at epoch 36, and 0001-x at epoch 1"),
        (FEWER, False, "it ended at epoch 5, and 0001-x at epoch 40"),
        ({**FEWER, "outcome": Outcome.ENDED_EARLY}, False, None),
        (FEWER, True, None),
        # A clock ended both: this one had less of its cores.
        ({"last_count": 5, "progress_per_s": 0.1, "duration_s": 59.0}, False, None),
        ({"last_count": 5, "progress_per_s": None, "duration_s": 59.0}, False, None),
        ({"last_count": 5, "progress_per_s": None, "duration_s": None}, False, None),
        ({**FEWER, "progress_per_s": None}, False, "it ended at epoch 5, and 0001-x at epoch 40"),
        ({"last_count": 30, "duration_s": 40.0}, False, None),
        ({"first_count": 2}, False, None),
        ({"first_count": None}, False, None),
        ({**FEWER, "step_unit": "step"}, False, None),
    ],
)
def test_what_makes_a_run_unlike_another(changes: dict[str, Any], changed: bool, why: str | None) -> None:
    first = run(unit="epoch").model_copy(update=WHOLE)
    other = first.model_copy(update={"run": "0002-x", **changes})
    found = unlike(other, [first], changed=changed)
    assert found == why if why is None else found is not None and found.startswith(why)
    # One that is like any of the others is like them.
    assert unlike(other, [first, other]) is None
    assert unlike(other, []) is None


def falling(start: float, end: float, points: int = 40, name: str = "loss") -> LossEvidence:
    curve = tuple((10.0 * n, start + (end - start) * n / 39) for n in range(40))
    return LossEvidence(name=name, trend=Trend.CONVERGING, points=points, curve=curve)


@pytest.mark.parametrize(
    ("loss", "like"),
    [
        (falling(4.1, 1.1), True),
        (falling(1.1, 0.6), False),
        (falling(2.4, 1.0), True),
        (falling(1.1, 0.6, points=4), True),
        (falling(1.1, 0.6, name="val_loss"), True),
    ],
)
def test_a_loss_that_begins_where_another_ended_tells_of_a_snapshot(loss: LossEvidence, like: bool) -> None:
    first, other = run(loss=falling(4.0, 1.0)), run(loss=loss)
    found = unlike(other, [first])
    assert (found is None) is like
    assert like or (found and found.startswith("its loss begins at 1.1, at that step 4 in "))
    # A change may well make it learn faster; a loss that hardly falls shows nothing.
    assert unlike(other, [first], changed=True) is None
    assert unlike(run(loss=falling(0.9, 0.9)), [run(loss=falling(1.0, 0.9))]) is None


def test_a_comparison_notes_what_it_compared() -> None:
    first = run(unit="epoch").model_copy(update=WHOLE)
    resumed = first.model_copy(update={"run": "0002-x", "resumed": "Loading snapshot"})
    assert unlike_notes([[first, first], [first]]) == []
    within, across = unlike_notes([[first, resumed], []]), unlike_notes([[first], [resumed]])
    assert within == across
    assert within[0].startswith("run 0002-x did other work: it goes on where an earlier run ended")


def test_what_all_runs_do_is_no_difference() -> None:
    both = [run(resumed="Resuming from epoch 3"), run(resumed="Resuming from epoch 3")]
    assert unlike(both[1], both[:1]) is None
