"""One change, nothing locked, the same surroundings."""

from __future__ import annotations

import pytest
from tests.support.trials import BASE, GOOD, gate, verdict

from gpudebug.core.records import Conditions
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.words import Result


class TestSetting:
    def test_locked_knobs_are_named(self) -> None:
        found = gate(verdict(BASE, GOOD, TrialSetting(locked=("--batch_size", "--lr"))), "locked_knobs")
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
        setting = TrialSetting(changes=changes, compound=compound)
        assert gate(verdict(BASE, GOOD, setting), "one_variable").result is expected

    def test_differences_are_named(self) -> None:
        found = gate(
            verdict(BASE, GOOD, TrialSetting(differences=("driver", "host a and b"))), "environment_parity"
        )
        assert (found.result, found.value) == (Result.FAIL, "driver; host a and b")

    def test_who_measured_on_the_same_cores_is_marked_and_differs_in_nothing(self) -> None:
        setting = TrialSetting(shared=("campaign b beside 0003-h1",))
        found = gate(verdict(BASE, GOOD, setting), "environment_parity")
        assert (found.result, found.value) == (Result.PASS, "as in the baseline")
        assert found.note == "others measured on these cores too: campaign b beside 0003-h1"
        assert gate(verdict(BASE, GOOD), "environment_parity").note is None

    @pytest.mark.parametrize(
        ("before", "after", "said"),
        [
            (1410.0, 1405.0, None),
            (1410.0, 1000.0, "clocks of 1410 and 1000 MHz"),
        ],
    )
    def test_clocks_that_differ_are_another_environment(
        self, before: float, after: float, said: str | None
    ) -> None:
        sides = [
            [e.model_copy(update={"conditions": Conditions(sm_clock_mhz=clock, throttle={})}) for e in runs]
            for runs, clock in ((BASE, before), (GOOD, after))
        ]
        found = gate(verdict(*sides), "environment_parity")
        assert (found.result, found.value) == (
            (Result.FAIL, said) if said else (Result.PASS, "as in the baseline")
        )
