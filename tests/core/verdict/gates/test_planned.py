"""Trials whose runs gpudebug ended: alive, and learning as the baseline does at equal steps."""

from __future__ import annotations

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import Evidence, LossEvidence
from gpudebug.core.verdict.judge import TrialSetting
from gpudebug.core.words import Outcome, Result, Status, Trend

PLANNED = Outcome.ENDED_BY_PLAN


def ended(
    utilisation: float, rate: float, losses: tuple[float, float], trend: Trend = Trend.PLATEAU, **more: object
) -> Evidence:
    """A run whose loss goes from the first of `losses` to the second, evenly."""
    first, last = losses
    curve = tuple((float(step), first + (last - first) * step / 40) for step in range(41))
    known = LossEvidence(name="loss", trend=trend, points=41, curve=curve)
    return run(utilisation, rate, loss=known, **{"outcome": PLANNED, **more})


def before(first: float, last: float, trend: Trend = Trend.PLATEAU) -> list[Evidence]:
    return [ended(u, 5.0, (first, last), trend) for u in (28, 27, 29, 28)]


def after(first: float, last: float, trend: Trend = Trend.PLATEAU, **more: object) -> list[Evidence]:
    return [ended(u, 11.0, (first, last), trend, **more) for u in (61, 62)]


def test_a_run_that_was_ended_passes_as_alive() -> None:
    found = verdict(before(2.0, 1.0, Trend.CONVERGING), after(2.0, 1.0, Trend.CONVERGING))
    assert found.status is Status.VALIDATED
    assert found.training == "ENDED_BY_PLAN - alive at the end of its planned window"
    outcome = gate(found, "outcome")
    assert (outcome.result, outcome.value) == (Result.PASS, "alive at the end of its planned window")


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        # The baseline's loss falls a little, or not at all; the trial's is as low, lower or higher.
        ((2.0, 1.9), (2.0, 1.9), Result.PASS),
        ((2.0, 1.9), (2.0, 1.895), Result.PASS),
        ((2.0, 1.9), (2.0, 2.05), Result.UNKNOWN),
        ((2.0, 2.0), (2.0, 2.0), Result.PASS),
        ((2.0, 2.0), (1.9, 1.9), Result.PASS),
        ((2.0, 2.0), (2.2, 2.2), Result.UNKNOWN),
        ((2.0, 2.0), (2.9, 2.9), Result.FAIL),
    ],
)
def test_a_flat_loss_is_judged_at_equal_steps(
    old: tuple[float, float], new: tuple[float, float], result: Result
) -> None:
    found = gate(verdict(before(*old), after(*new)), "loss")
    assert (found.value, found.result) == ("PLATEAU", result)


def test_a_flat_loss_of_runs_that_ended_by_themselves_stays_unknown() -> None:
    found = verdict(before(2.0, 2.0), after(2.0, 2.0, outcome=Outcome.COMPLETED))
    assert gate(found, "loss").result is Result.UNKNOWN


@pytest.mark.parametrize(
    ("old", "new", "trend", "result"),
    [
        ((2.0, 1.9), (2.0, 1.9), Trend.PLATEAU, Result.PASS),
        # It does not fall, or not where the baseline's does.
        ((2.0, 1.9), (2.0, 1.99), Trend.PLATEAU, Result.UNKNOWN),
        ((2.0, 2.0), (2.0, 1.9), Trend.PLATEAU, Result.UNKNOWN),
        ((2.0, 1.0), (2.0, 1.0), Trend.CONVERGING, Result.UNKNOWN),
    ],
)
def test_of_whole_runs_a_flat_loss_falls_as_the_baselines_flat_loss_does(
    old: tuple[float, float], new: tuple[float, float], trend: Trend, result: Result
) -> None:
    whole = Outcome.COMPLETED
    runs = [e.model_copy(update={"outcome": whole}) for e in before(*old, trend)]
    found = gate(verdict(runs, after(*new, outcome=whole)), "loss")
    assert (found.value, found.result) == ("PLATEAU", result)


def test_steps_that_are_another_thing_leave_it_unknown() -> None:
    setting = TrialSetting(other_steps="the trial changes batch_size")
    found = verdict(before(2.0, 2.0), after(2.0, 2.0), setting)
    assert gate(found, "loss").result is Result.UNKNOWN


@pytest.mark.parametrize("trend", [Trend.NAN, Trend.DIVERGING])
def test_a_loss_that_breaks_is_rejected_all_the_same(trend: Trend) -> None:
    found = verdict(before(2.0, 2.0), after(2.0, 2.0, trend))
    assert (found.status, gate(found, "loss").result) == (Status.REJECTED, Result.FAIL)


def test_no_loss_at_all_stays_unknown() -> None:
    nothing = LossEvidence()
    sides = [[e.model_copy(update={"loss": nothing}) for e in side] for side in (before(2, 2), after(2, 2))]
    assert gate(verdict(*sides), "loss").result is Result.UNKNOWN
