"""How rare a proposal makes what happens beside the training."""

from __future__ import annotations

import pytest

from gpudebug.core.command.cadence import CHECKPOINT, EVALUATION, LOG, PlannedLength, rarer


@pytest.mark.parametrize(
    ("name", "every", "kind", "factor", "plan", "expected"),
    [
        ("eval_interval", 20, EVALUATION, 5, PlannedLength(200), 100),
        ("eval_interval", 20, EVALUATION, 5, PlannedLength(50), 25),
        ("eval-freq", 500, EVALUATION, 5, PlannedLength(40000), 2500),
        ("eval_interval", 100, EVALUATION, 5, PlannedLength(200), None),
        ("eval_interval", 150, EVALUATION, 5, PlannedLength(200), None),
        ("eval_interval", 20, EVALUATION, 5, PlannedLength(), 100),
        ("save_steps", 2, CHECKPOINT, 10, PlannedLength(60), 20),
        ("check_val_every_n_epoch", 1, EVALUATION, 5, PlannedLength(1000, 6), 3),
        ("save_every", 1, CHECKPOINT, 10, PlannedLength(1000, 6), 3),
        ("save_every", 50, CHECKPOINT, 10, PlannedLength(1000, 6), 500),
        ("log_interval", 1, LOG, 50, PlannedLength(200), 20),
        ("val_check_interval", 0.1, EVALUATION, 5, PlannedLength(200), 0.5),
    ],
)
def test_two_are_left_in_the_run(
    name: str, every: float, kind: str, factor: float, plan: PlannedLength, expected: float | None
) -> None:
    assert rarer(name, every, kind, factor, plan) == expected
