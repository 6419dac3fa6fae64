"""One change, nothing locked, the same surroundings."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.support.trials import crashed, criteria, gate, run, runs, verdict

from gpudebug.core.gates import (
    Setting,
    estimate_text,
    is_infrastructure,
    short_window,
    training_text,
    window_total,
    worst_trend,
)
from gpudebug.core.models import Estimate, Evidence, LossEvidence
from gpudebug.core.words import Outcome, Result, Trend

BASE = runs(28, 27, 29, 28)
GOOD = runs(61, 62, rate=11.0)


def result(name: str, before: list[Evidence], after: list[Evidence], **changes: Any) -> Result:
    return gate(verdict(before, after, **changes), name).result


class TestSetting:
    def test_locked_knobs_are_named(self) -> None:
        found = gate(verdict(BASE, GOOD, Setting(locked=("--batch_size", "--lr"))), "locked_knobs")
        assert (found.result, found.value) == (Result.FAIL, "--batch_size, --lr")

    @pytest.mark.parametrize(
        ("changes", "compound", "expected"),
        [
            (0, False, Result.PASS),
            (1, False, Result.PASS),
            (2, False, Result.FAIL),
            (2, True, Result.SKIPPED),
            (1, True, Result.PASS),
        ],
    )
    def test_one_variable(self, changes: int, compound: bool, expected: Result) -> None:
        setting = Setting(changes=changes, compound=compound)
        assert gate(verdict(BASE, GOOD, setting), "one_variable").result is expected

    def test_differences_are_named(self) -> None:
        found = gate(
            verdict(BASE, GOOD, Setting(differences=("driver", "host a and b"))), "environment_parity"
