"""One change, nothing locked, the same surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.trials import BASE, GOOD, gate, run, runs, verdict

from gpudebug.core.records import Conditions, DeviceEvidence, Evidence, Gate, LossEvidence, ProbeEvidence
from gpudebug.core.verdict.gates.conduct import ADVICE
from gpudebug.core.verdict.gates.setting import SideWork, TrialSetting
from gpudebug.core.verdict.took_effect import ChangeEffect
from gpudebug.core.words import Outcome, Result, Status, Trend


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


def on_gpu(procs: int | None, share: float = 0.0, cpu: float | None = None) -> Conditions:
    return Conditions(
        foreign_procs=procs, foreign_share=share if procs is not None else None, foreign_cpu=cpu
    )


def side(level: float, rate: float, *found: Conditions, uuid: str = "GPU-0") -> list[Evidence]:
    device = DeviceEvidence(index=0, uuid=uuid, name="x")
    return [run(level + i, rate, conditions=c, devices=(device,)) for i, c in enumerate(found)]


def device(before: Sequence[Conditions], after: Sequence[Conditions], uuid: str = "GPU-0") -> Gate:
    found = verdict(side(28, 5, *before, uuid=uuid), side(61, 11, *after, uuid=uuid))
    shown = gate(found, "device_to_itself")
    assert (found.status is Status.INVALID) is (shown.result is Result.FAIL)
    return shown


def test_a_device_to_itself_passes() -> None:
    found = device([on_gpu(0), on_gpu(0)], [on_gpu(0), on_gpu(0)])
    assert (found.result, found.value) == (Result.PASS, "alone")


def test_another_process_in_any_run_is_named() -> None:
    found = device([on_gpu(0), on_gpu(0)], [on_gpu(0), on_gpu(2, 0.25)])
    assert (found.result, found.note) == (Result.FAIL, None)
    assert found.value == "2 other processes on the device in trial run 0001-x, 25% of the time"


def test_a_baseline_that_shared_the_device_is_to_be_recorded_anew() -> None:
    found = device([on_gpu(1, 1.0), on_gpu(0)], [on_gpu(0), on_gpu(0)])
    assert found.result is Result.FAIL
    assert "baseline run 0001-x" in found.value
    assert found.note == "run `gpudebug baseline` to record the baseline again"


@pytest.mark.parametrize(("before", "after"), [(5.0, 90.0), (90.0, 5.0), (70.0, 80.0)])
@pytest.mark.parametrize("uuid", ["CPU", "GPU-0"])
def test_what_others_take_of_the_cores_makes_nothing_invalid(uuid: str, before: float, after: float) -> None:
    """It moves the level, and the level is what a change is compared with."""
    found = device([on_gpu(0, cpu=before)] * 2, [on_gpu(0, cpu=after)] * 2, uuid=uuid)
    assert (found.result, found.value) == (Result.PASS, "alone")


def test_what_others_kept_both_sides_from_is_said() -> None:
    def met(stolen: float) -> Conditions:
        return Conditions(foreign_procs=0, foreign_share=0.0, cpu_stolen=stolen, cpu_cores=1 - stolen / 100)

    found = device([met(10.0)] * 2, [met(40.0)] * 2)
    assert found.note == (
        "other processes kept the baseline from 10.0% of its CPU time, the trial from 40.0%"
    )


@pytest.mark.parametrize("part", ["baseline", "trial"])
def test_cores_of_which_nothing_is_known_are_not_checkable(part: str) -> None:
    told, blank = [on_gpu(None, cpu=3.0)] * 2, [on_gpu(None)] * 2
    sides = (blank, told) if part == "baseline" else (told, blank)
    found = device(*sides, uuid="CPU")
    assert found.result is Result.SKIPPED
    assert (found.note or "").startswith(f"not checkable in {part} run 0001-x: ")


def test_a_driver_that_does_not_tell_is_quoted() -> None:
    blank = side(28, 5, on_gpu(0), on_gpu(0))
    silent = [
        e.model_copy(update={"missing": {"foreign_procs": "No Permission"}})
        for e in side(61, 11, on_gpu(None), on_gpu(None))
    ]
    found = gate(verdict(blank, silent), "device_to_itself")
    assert found.result is Result.SKIPPED
    assert found.note == "not checkable in trial run 0001-x: No Permission"


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
