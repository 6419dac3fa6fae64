"""What is to happen beside the training must not vanish."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import BASE, gate, run, runs, verdict

from gpudebug.core.records import Evidence, LossEvidence, ProbeEvidence
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.planned_work import SideWork
from gpudebug.core.words import Outcome, Result, Status, Trend

PASS, FAIL, UNKNOWN, SKIPPED = Result.PASS, Result.FAIL, Result.UNKNOWN, Result.SKIPPED


def told(evaluations: int, checkpoints: int = 3, lines: int = 50) -> dict[str, int]:
    return {"evaluation": evaluations, "checkpoint": checkpoints, "log line": lines}


def better(occasions: dict[str, int] | None, **more: Any) -> list[Evidence]:
    return runs(61, 62, rate=11.0, occasions=occasions, **more)


BEFORE = [e.model_copy(update={"occasions": told(11)}) for e in BASE]
CUT = {"outcome": Outcome.ENDED_BY_PLAN}
# What the trial's log shows, how its runs end, by its settings, what the change is about -> the gate
TABLE: list[tuple[dict[str, int] | None, dict[str, Any], dict[str, int], set[str], Result, str]] = [
    (told(3), {}, {}, set(), PASS, "evaluations 11, then 3; checkpoints 3, then 3; log lines 50, then 50"),
    (told(0), {}, {}, set(), FAIL, "evaluations 11, then none"),
    (told(0, 0), {}, {}, set(), FAIL, "evaluations 11, then none; checkpoints 3, then none"),
    (told(2, 3, 0), {}, {}, set(), FAIL, "log lines 50, then none"),
    # an evaluation that the settings plan, in a program that showed each before
    (told(0), {}, {"evaluation": 2}, set(), FAIL, "evaluations 11, then none"),
    # a window that was planned short: by the settings, else unknown if the change is about them
    (told(0), CUT, {"evaluation": 2}, {"evaluation"}, PASS, "evaluations 11, then 2"),
    (told(0), CUT, {"evaluation": 0}, {"evaluation"}, FAIL, "evaluations 11, then none"),
    (told(0), CUT, {}, {"evaluation"}, UNKNOWN, "evaluations 11, then unknown"),
    (told(0), CUT, {}, {"checkpoint"}, PASS, "checkpoints 3, then 3; log lines 50, then 50"),
    (told(1), CUT, {"evaluation": 0}, {"evaluation"}, PASS, "evaluations 11, then 1"),
    (None, {}, {}, set(), SKIPPED, "unknown"),
]


@pytest.mark.parametrize(("occasions", "more", "plan", "about", "result", "value"), TABLE)
def test_what_falls_from_some_to_none_is_hollow(
    occasions: dict[str, int] | None,
    more: dict[str, Any],
    plan: dict[str, int],
    about: set[str],
    result: Result,
    value: str,
) -> None:
    setting = TrialSetting(side_work=SideWork(({},) * len(BEFORE), (plan, plan), frozenset(about)))
    found = verdict(BEFORE, better(occasions, **more), setting)
    shown = gate(found, "side_work")
    assert (shown.result, value in shown.value) == (result, True), shown
    if result is FAIL:
        assert (found.status, found.hollow) == (Status.REJECTED, True)
        assert found.why.startswith(f"hollow: {value}")


@pytest.mark.parametrize(
    ("plan", "about", "result"),
    [
        # `--eval_interval=null`: no program says what that is, and nothing shows it.
        ({}, {"evaluation"}, UNKNOWN),
        ({}, {"checkpoint"}, PASS),
        ({"evaluation": 2}, {"evaluation"}, PASS),
        ({"evaluation": 0}, {"evaluation"}, FAIL),
    ],
)
@pytest.mark.parametrize("more", [{}, CUT])
def test_a_cadence_that_says_nothing_is_unknown_where_nothing_is_shown(
    plan: dict[str, int], about: set[str], result: Result, more: dict[str, Any]
) -> None:
    before = [e.model_copy(update={"occasions": {"log line": 50}}) for e in BASE]
    setting = TrialSetting(side_work=SideWork(({"evaluation": 8},) * 4, (plan, plan), frozenset(about)))
    shown = gate(verdict(before, better({"log line": 50}, **more), setting), "side_work")
    assert shown.result is result
    assert (result is UNKNOWN) is ("cannot tell how often this still happens" in str(shown.note))


@pytest.mark.parametrize(
    ("steps", "plan", "result"),
    [
        (400, {}, UNKNOWN),
        (110, {}, UNKNOWN),
        (90, {}, PASS),
        (400, {"evaluation": 20}, UNKNOWN),
        (400, {"evaluation": 2}, PASS),
    ],
)
def test_a_window_that_was_planned_short_has_some_if_enough_were_due(
    steps: int, plan: dict[str, int], result: Result
) -> None:
    """11 in 1000 steps of the baseline, whatever the change is about."""
    before = [e.model_copy(update={"first_count": 0, "last_count": 1000}) for e in BEFORE]
    after = better(told(0), **CUT, first_count=0, last_count=steps)
    setting = TrialSetting(side_work=SideWork(({"evaluation": 20},) * len(before), (plan, plan)))
    assert gate(verdict(before, after, setting), "side_work").result is result


def test_batches_of_an_evaluation_that_is_not_printed_count() -> None:
    def probed(fetched: int) -> dict[str, Any]:
        facts = {"loaders": [{"training": False, "fetched": fetched}]}
        return {"probe": ProbeEvidence(pid=1, steps=9, facts=facts)}

    before = [run(28.0, occasions=told(0), **probed(40))] * 4
    for fetched, result in ((8, PASS), (0, FAIL)):
        found = verdict(before, [run(61.0, 11.0, occasions=told(0), **probed(fetched))] * 2)
        assert gate(found, "side_work").result is result


def ended(count: int, utilisation: float = 28.0, **more: Any) -> Evidence:
    """A run that gpudebug ended, after a thousand steps."""
    return run(utilisation, **{"first_count": 0, "last_count": 1000, "occasions": told(count), **CUT, **more})


@pytest.mark.parametrize(
    ("usual", "counts", "about", "code", "plan", "result"),
    [
        # what a patch took out the settings still plan
        (2, (0, 0), set(), {"evaluation"}, 20, UNKNOWN),
        (2, (0, 0), {"evaluation"}, set(), 5, PASS),
        (2, (0, 0), {"evaluation"}, set(), 15, UNKNOWN),
        # one run of it shows one: the others are of the same command and code
        (3, (0, 1), set(), {"evaluation"}, 20, PASS),
        # one in a window may lie at its end
        (1, (0, 0), set(), set(), 20, PASS),
        (2, (0, 0), set(), set(), 20, UNKNOWN),
    ],
)
def test_what_was_due_in_short_windows_is_not_there(
    usual: int, counts: tuple[int, int], about: set[str], code: set[str], plan: int, result: Result
) -> None:
    work = SideWork(({"evaluation": 20},) * 4, ({"evaluation": plan},) * 2, frozenset(about), frozenset(code))
    after = [ended(count, utilisation=61.0, rate=11.0) for count in counts]
    found = verdict([ended(usual)] * 4, after, TrialSetting(side_work=work))
    assert gate(found, "side_work").result is result


def test_what_is_done_by_the_clock_is_due_by_the_clock() -> None:
    """A trial that is five times as fast makes five times the steps between two checkpoints."""
    after = [ended(0, utilisation=61.0, last_count=5000, duration_s=20.0)] * 2
    found = verdict([ended(2, duration_s=60.0)] * 4, after, TrialSetting())
    assert gate(found, "side_work").result is PASS


def test_settings_that_plan_none_where_the_baseline_shows_some_prove_nothing() -> None:
    """`save_period=-1`, and each best one is saved."""
    work = SideWork(({"evaluation": 0},) * 4, ({"evaluation": 0},) * 2)
    for usual, result in ((1, PASS), (4, UNKNOWN)):
        found = verdict([ended(usual)] * 4, [ended(0, rate=11.0)] * 2, TrialSetting(side_work=work))
        assert gate(found, "side_work").result is result


@pytest.mark.parametrize(("more", "due", "result"), [(CUT, 1000, UNKNOWN), (CUT, 40, PASS), ({}, 0, UNKNOWN)])
def test_silent_evaluations_that_a_patch_is_about_are_unknown(
    more: dict[str, Any], due: int, result: Result
) -> None:
    """The settings plan one every 50 steps, before and after; no line shows one."""
    silent = {"occasions": told(0), "first_count": 0, "last_count": due, "total_steps": 2000}
    work = SideWork(({"evaluation": 40},) * 4, ({"evaluation": 40},) * 2, in_code=frozenset({"evaluation"}))
    before, after = [run(28.0, **silent, **more)] * 4, [run(61.0, 11.0, **silent, **more)] * 2
    shown = gate(verdict(before, after, TrialSetting(side_work=work)), "side_work")
    assert shown.result is result
    assert (result is UNKNOWN) is ("no run shows one" in str(shown.note))


def test_an_evaluation_that_is_printed_and_has_no_batches_is_unknown() -> None:
    def probed(fetched: int) -> dict[str, Any]:
        facts = {"loaders": [{"training": False, "fetched": fetched}]}
        return {"probe": ProbeEvidence(pid=1, steps=9, facts=facts), "occasions": told(5)}

    before = [run(28.0, **probed(40))] * 4
    for fetched, result in ((8, PASS), (0, UNKNOWN)):
        found = verdict(before, [run(61.0, 11.0, **probed(fetched))] * 2)
        assert gate(found, "side_work").result is result


def test_steps_without_losses_are_no_log_lines_where_losses_were_printed() -> None:
    def logged(points: int) -> dict[str, Any]:
        return {"occasions": told(0, 0), "loss": LossEvidence(trend=Trend.CONVERGING, points=points)}

    before = [run(28.0, **logged(50))] * 4
    for points, result in ((2, PASS), (0, FAIL)):
        found = verdict(before, [run(61.0, 11.0, **logged(points))] * 2)
        assert gate(found, "side_work").result is result
