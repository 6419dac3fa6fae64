"""Whether the change reached the program."""

from __future__ import annotations

import pytest
from tests.support.trials import BASE, GOOD, gate, verdict

from gpudebug.core.verdict.gates.effect import ADVICE
from gpudebug.core.verdict.judge import TrialSetting
from gpudebug.core.verdict.took_effect import ChangeEffect
from gpudebug.core.words import Result, Status


def test_a_program_that_imports_another_checkout_is_invalid_with_its_paths() -> None:
    setting = TrialSetting(
        elsewhere=("pkg is imported from /old/pkg",), effect=ChangeEffect(Result.PASS, "lr: 0.2")
    )
    found = verdict(BASE, GOOD, setting)
    assert found.status is Status.INVALID
    assert found.why == f"the change was not in effect: pkg is imported from /old/pkg; {ADVICE}"


def test_a_program_that_shows_the_old_value_is_invalid() -> None:
    found = verdict(BASE, GOOD, TrialSetting(effect=ChangeEffect(Result.FAIL, "the program shows lr: 0.1")))
    assert (found.status, gate(found, "change_in_effect").result) == (Status.INVALID, Result.FAIL)


@pytest.mark.parametrize(
    ("effect", "result", "value", "note"),
    [
        (ChangeEffect(Result.PASS, "lr: 0.2"), Result.PASS, "lr: 0.2", None),
        (ChangeEffect(Result.SKIPPED, note="nothing tells"), Result.SKIPPED, "unknown", "nothing tells"),
        (None, Result.SKIPPED, "unknown", "nothing was changed"),
    ],
)
def test_what_the_program_shows_is_the_gates_value(
    effect: ChangeEffect | None, result: Result, value: str, note: str | None
) -> None:
    found = verdict(BASE, GOOD, TrialSetting(effect=effect))
    shown = gate(found, "change_in_effect")
    assert (shown.result, shown.value, shown.note) == (result, value, note)
    assert found.status is Status.VALIDATED
