"""Whether the trial learns as the baseline does."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import Evidence, Gate, LossEvidence
from gpudebug.core.statistics.loss_curve import curve
from gpudebug.core.verdict.judge import TrialSetting
from gpudebug.core.words import Result, Status, Trend


def trained(level: float, rate: float, *, above: float = 0.0, name: str = "loss", **more: Any) -> Evidence:
    points = [(n, 0.5 + above + 1.5 * math.exp(-n / 80)) for n in range(0, 400, 2)]
    loss = LossEvidence(name=name, trend=Trend.CONVERGING, points=200, curve=curve(points))
    return run(level, rate, loss=loss, **more)


BASE = [trained(level, 5) for level in (28, 27, 29, 28)]


def parity(*after: Evidence, setting: TrialSetting | None = None, **changes: Any) -> Gate:
    return gate(verdict(BASE, after, setting, **changes), "loss_parity")


@pytest.mark.parametrize(
    ("above", "result"), [(0.0, Result.PASS), (-0.5, Result.PASS), (0.1, Result.PASS), (0.9, Result.FAIL)]
)
def test_only_a_loss_that_is_surely_higher_fails(above: float, result: Result) -> None:
    assert parity(trained(61, 11, above=above), trained(62, 11, above=above)).result is result


def test_a_loss_that_may_be_higher_is_unknown_and_says_so() -> None:
    found = parity(trained(61, 11, above=0.28))
    assert found.result is Result.UNKNOWN
    assert found.note is not None
    assert "not surely" in found.note


def test_a_change_that_learns_less_is_rejected_however_fast_it_is() -> None:
    found = verdict(BASE, [trained(61, 11, above=0.9), trained(62, 11, above=0.9)])
    assert found.status is Status.REJECTED
    assert found.why == "loss parity: +0.9, 81% of what the baseline's falls by"


@pytest.mark.parametrize(
    ("after", "setting", "changes", "why"),
    [
        (trained(61, 11, name="l1_loss"), None, {}, "the logs print l1_loss and loss"),
        (trained(61, 11, unit="samples"), None, {}, "the logs count samples and step"),
        (trained(61, 11), TrialSetting(other_steps="the trial changes --bs"), {}, "the trial changes --bs"),
        (trained(61, 11), None, {"loss": "any"}, "the criteria have loss: any"),
        (run(61, 11), None, {}, "prints no steps"),
    ],
)
def test_what_cannot_be_compared_is_skipped_with_the_reason(
    after: Evidence, setting: TrialSetting | None, changes: dict[str, Any], why: str
) -> None:
    found = parity(after, setting=setting, **changes)
    assert (found.result, found.value) == (Result.SKIPPED, "unknown")
    assert found.note is not None
    assert found.note.startswith("not comparable: ")
    assert why in found.note


def test_another_plan_of_steps_may_be_another_schedule() -> None:
    before = [trained(28, 5, total_steps=400) for _ in range(2)]
    found = gate(verdict(before, [trained(61, 11, total_steps=800, above=0.9)]), "loss_parity")
    assert found.result is Result.SKIPPED
    assert "the runs plan 400 and 800 steps" in (found.note or "")


@pytest.mark.parametrize(
    ("above", "result"), [(0.0, Result.PASS), (0.25, Result.UNKNOWN), (1.4, Result.FAIL)]
)
def test_one_run_a_side_shows_no_loss_that_is_a_little_higher(above: float, result: Result) -> None:
    """17 % of the fall, where an interval of two runs reaches to twice that: not surely, and not harmless."""
    found = verdict(BASE[:1], [trained(61, 11, above=above)])
    assert gate(found, "loss_parity").result is result
