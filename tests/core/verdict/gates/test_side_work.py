"""What is to happen beside the training must not vanish."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import BASE, CRITERIA, gate, run, runs, verdict

from gpudebug.core.records import Evidence, ProbeEvidence
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.judge import judge
from gpudebug.core.verdict.planned_work import SideWork
from gpudebug.core.words import Outcome, Result, Status

PASS, FAIL, UNKNOWN, SKIPPED = Result.PASS, Result.FAIL, Result.UNKNOWN, Result.SKIPPED


def told(evaluations: int, checkpoints: int = 3, lines: int = 50) -> dict[str, int]:
    return {"evaluation": evaluations, "checkpoint": checkpoints, "log line": lines}


def better(occasions: dict[str, int] | None, **more: Any) -> list[Evidence]:
    return runs(61, 62, rate=11.0, occasions=occasions, **more)


BEFORE = [e.model_copy(update={"occasions": told(11)}) for e in BASE]
CUT = {"outcome": Outcome.ENDED_EARLY}
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
    assert (result is UNKNOWN) is ("its value says nothing" in str(shown.note))


@pytest.mark.parametrize(
    ("steps", "plan", "result"),
    [(400, {}, UNKNOWN), (100, {}, PASS), (400, {"evaluation": 20}, UNKNOWN), (400, {"evaluation": 2}, PASS)],
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


def test_earlier_rules_do_not_ask() -> None:
    found = judge(1, CRITERIA, BEFORE, better(told(0)), TrialSetting(), rule="4")
    assert "side_work" not in {g.name for g in found.gates}
    assert not found.hollow
