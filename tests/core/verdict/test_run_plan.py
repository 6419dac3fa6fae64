"""When a run has told enough: tables of what was seen so far."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import stacks
from tests.support.trials import run

from gpudebug.core.records import (
    Evidence,
    LatencyEvidence,
    LearningSeries,
    LossEvidence,
    PhaseEvidence,
    ProbeEvidence,
    StacksEvidence,
    Window,
)
from gpudebug.core.verdict.run_plan import RunPlan, as_recorded, losses_awaited, next_look, time_left
from gpudebug.core.words import FLIPS, Outcome, Trend

PLAN = RunPlan(30.0)
SHORT = RunPlan(30.0, may_complete=True)
QUIET = RunPlan(30.0, learns=False)


def loss(points: int = 40, trend: Trend = Trend.CONVERGING) -> LossEvidence:
    return LossEvidence(name="loss", trend=trend, points=points)


def rewards(points: int) -> tuple[LearningSeries, ...]:
    return (LearningSeries(metric="reward", name="reward", source="log", points=points),)


FLAT, NONE = loss(trend=Trend.PLATEAU), loss(0, Trend.UNKNOWN)


@pytest.mark.parametrize(
    ("plan", "window", "more", "left", "seconds"),
    [
        (PLAN, None, {}, None, 30.0),
        (PLAN, 12.0, {}, None, 18.0),
        (PLAN, 29.9, {}, None, 1.0),
        (PLAN, 30.0, {}, None, 0.0),
        # A run that ends soon is left to, but not one that should have ended long ago.
        (SHORT, 31.0, {}, 20.0, 20.0),
        (SHORT, 31.0, {}, 0.0, 1.0),
        (SHORT, 31.0, {}, 31.0, 0.0),
        (SHORT, 31.0, {}, None, 0.0),
        (SHORT, 90.0, {}, 5.0, 0.0),
        (PLAN, 31.0, {}, 5.0, 0.0),
        # A loss that has not fallen yet is waited for, not for ever.
        (PLAN, 30.0, {"loss": FLAT}, None, 15.0),
        (PLAN, 80.0, {"loss": FLAT}, None, 10.0),
        (PLAN, 90.0, {"loss": FLAT}, None, 0.0),
        (QUIET, 30.0, {"loss": FLAT}, None, 0.0),
        (PLAN, 90.0, {"loss": NONE}, None, 0.0),
        # One that is printed rarely, longer.
        (PLAN, 90.0, {"loss": loss(6)}, None, 90.0),
        (PLAN, 300.0, {"loss": loss(6)}, None, 0.0),
        (PLAN, 30.0, {"loss": loss(1, Trend.NAN)}, None, 0.0),
        # Rewards are judged by their height, whatever the loss of a value network does.
        (PLAN, 30.0, {"loss": FLAT, "learning": rewards(40)}, None, 0.0),
        (PLAN, 90.0, {"loss": FLAT, "learning": rewards(6)}, None, 90.0),
        # Slow steps.
        (QUIET, 30.0, {"rate": 0.2}, None, 20.0),
        (QUIET, 90.0, {"rate": 0.01}, None, 0.0),
    ],
)
def test_a_run_is_looked_at_again_until_it_has_told_enough(
    plan: RunPlan, window: float | None, more: dict[str, Any], left: float | None, seconds: float
) -> None:
    figures = {"loss": loss(), **more}
    assert next_look(plan, run(window=window, **figures), left).seconds == pytest.approx(seconds)


def in_phases(*windows: float | None, reason: str | None = None, window: float | None = 90.0) -> Evidence:
    """Phases a, b, c in their order, each with so many seconds of window."""
    found = tuple(
        PhaseEvidence(
            name=name,
            by="log",
            start_s=0.0,
            end_s=99.0,
            seconds=99.0,
            window=Window(start_s=0, end_s=seconds, samples=9, rule="steps") if seconds else None,
        )
        for name, seconds in zip("abc", windows, strict=False)
    )
    return run(window=window, phases=found, phases_reason=reason)


@pytest.mark.parametrize(("window", "foreseen"), [(None, False), (2.0, False), (16.0, False), (28.0, True)])
def test_only_a_look_at_the_end_of_the_window_says_when_it_is_full(
    window: float | None, foreseen: bool
) -> None:
    look = next_look(LOOK, stepped(window), None, None)
    assert (look.waits_for, look.foreseen) == ("30 s of steady training", foreseen)


@pytest.mark.parametrize(
    ("seen", "seconds", "awaited"),
    [
        (in_phases(40.0), 30.0, "30 s of phase b"),
        (in_phases(40.0, None), 30.0, "30 s of phase b"),
        (in_phases(40.0, 12.0, window=None), 18.0, "30 s of phase b"),
        (in_phases(40.0, 30.0), 0.0, ""),
        # What is over brings no more, unless nothing of it is known yet.
        (in_phases(40.0, 12.0, 8.0), 0.0, ""),
        (in_phases(40.0, None, 8.0), 30.0, "30 s of phase b"),
        (in_phases(reason=f"{FLIPS}a and b 39 times"), 0.0, ""),
    ],
)
def test_a_run_waits_for_its_phase(seen: Evidence, seconds: float, awaited: str) -> None:
    look = next_look(RunPlan(30.0, learns=False, phase="B"), seen, None)
    assert (look.seconds, look.waits_for.casefold()) == (pytest.approx(seconds), awaited)


@pytest.mark.parametrize(
    ("wanted", "phase", "plan"),
    [
        ("phase ppo", None, ("ppo", 30.0)),
        ("phase stage 2", "ppo", ("stage 2", 30.0)),
        ("phase stage 2 1m", None, ("stage 2", 60.0)),
        (45.0, "ppo", ("ppo", 45.0)),
        (None, "ppo", ("ppo", 30.0)),
    ],
)
def test_the_phase_of_a_plan(wanted: float | str | None, phase: str | None, plan: tuple[str, float]) -> None:
    found = as_recorded(wanted, [], learns=True, phase=phase)
    assert found is not None and (found.phase, found.window_s) == plan


LOOK = RunPlan(30.0, learns=False, soon_s=12.0)


def stepped(
    window: float | None, *, data: float | None = 0.4, steps: int = 200, stalls: float = 0.0
) -> Evidence:
    probe = ProbeEvidence(
        pid=1, steps=steps, span_steps=steps, data_wait_share=data, forward_share=0.2, stall_share=stalls
    )
    return run(window=window).model_copy(update={"probe": probe})


@pytest.mark.parametrize(
    ("window", "before", "seen", "seconds"),
    [
        (None, None, {}, 6.0),
        (4.0, None, {}, 2.0),
        (6.0, None, {}, 6.0),
        (12.0, stepped(6.0), {}, 0.0),
        (18.0, stepped(12.0), {}, 0.0),
        (12.0, stepped(6.0, stalls=0.3), {"stalls": 0.32}, 0.0),
        # Half and all of the window differ; steps are few, some are long, parts are unknown.
        (12.0, stepped(6.0, data=0.35), {}, 6.0),
        (12.0, stepped(6.0), {"steps": 19}, 6.0),
        (12.0, stepped(6.0), {"stalls": 0.2}, 6.0),
        (12.0, stepped(6.0), {"data": None}, 6.0),
        # It was no half, or nothing was seen before, or without a probe.
        (12.0, stepped(11.0), {}, 6.0),
        (12.0, None, {}, 6.0),
        (12.0, run(window=6.0), {}, 6.0),
        (18.0, None, {}, 9.0),
        (27.0, None, {}, 3.0),
        (30.0, None, {}, 0.0),
    ],
)
def test_a_look_ends_soon_where_its_halves_are_alike(
    window: float | None, before: Evidence | None, seen: dict[str, Any], seconds: float
) -> None:
    assert next_look(LOOK, stepped(window, **seen), None, before).seconds == pytest.approx(seconds)


def placed(window: float, *, loads: float, rate: float | None = 10.0) -> Evidence:
    """Without the probe: what its log counts, and where the time goes."""
    watched = stacks(
        ("other", "train.py:load", 3, loads, 0.0), ("other", "train.py:fit", 9, 1.0 - loads, 1.0)
    )
    seen = run(window=window, rate=None).model_copy(update={"stacks": StacksEvidence(training=watched)})
    return seen.model_copy(update={"progress_per_s": rate, "step_unit": "step"})


@pytest.mark.parametrize(
    ("before", "seen", "seconds"),
    [
        (placed(6.0, loads=0.4), placed(12.0, loads=0.42), 0.0),
        (placed(6.0, loads=0.4), placed(12.0, loads=0.45), 6.0),
        (placed(6.0, loads=0.4), placed(12.0, loads=0.4, rate=1.0), 6.0),
        (placed(6.0, loads=0.4), placed(12.0, loads=0.4, rate=None), 6.0),
    ],
    ids=["alike", "apart", "few steps", "no steps"],
)
def test_without_the_probe_functions_are_the_parts(before: Evidence, seen: Evidence, seconds: float) -> None:
    assert next_look(LOOK, seen, None, before).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("plan", "window", "more", "seconds"),
    [
        # A model is loaded: the device is busy, or the stand-in for it, and no step is seen yet.
        (PLAN, 30.0, {}, 30.0),
        (QUIET, 200.0, {}, 30.0),
        (QUIET, 300.0, {}, 0.0),
        (RunPlan(5.0, learns=False), 50.0, {}, 0.0),
        (RunPlan(600.0, learns=False), 600.0, {}, 0.0),
        # The runs beside it never showed one, or it prints latencies.
        (RunPlan(30.0, learns=False, silent=True), 30.0, {}, 0.0),
        (QUIET, 30.0, {"latency": LatencyEvidence(count=400)}, 0.0),
    ],
)
def test_a_run_that_shows_no_step_yet_is_starting(
    plan: RunPlan, window: float, more: dict[str, Any], seconds: float
) -> None:
    settled = Window(start_s=5.0, end_s=5.0 + window, samples=200, rule="mser5")
    seen = run(rate=None, loss=NONE, **more).model_copy(update={"window": settled})
    found = next_look(plan, seen, None)
    assert found.seconds == pytest.approx(seconds)
    # Nothing says when a first step comes: the next look is no estimate of it.
    assert not (found.waits_for == "its first step" and found.foreseen)
    begun = seen.model_copy(update={"probe": ProbeEvidence(pid=1, steps=3)})
    assert next_look(plan, begun, None).waits_for == found.waits_for.replace(
        "its first step", "steps at a steady pace"
    )


def by_epoch(per_s: float | None, optimizer: float | None = None) -> Evidence:
    """A log with a line an epoch, and what the probe counts beside it."""
    own = {"probe": ProbeEvidence(pid=1, steps=9, steps_per_s=optimizer)} if optimizer else {}
    figures = {"step_unit": "epoch", "steps_per_s": optimizer, "progress_per_s": per_s, **own}
    return run(window=30.0, loss=loss(), rate=None).model_copy(update=figures)


@pytest.mark.parametrize(
    ("seen", "seconds", "waits_for"),
    [
        (by_epoch(0.05, 4.0), 0.0, ""),
        (by_epoch(None, 0.2), 20.0, "10 steps"),
        (by_epoch(0.05), 30.0, "3 epochs of its log"),
        (by_epoch(None), 0.0, ""),
        # Of several counts of steps the finest one: gradients are accumulated, or a line is a round of many.
        (run(window=30.0, rate=0.2, loss=loss()), 20.0, "10 steps"),
        (
            run(window=30.0, rate=0.2, loss=loss()).model_copy(update={"probe": by_epoch(1, 2.0).probe}),
            0.0,
            "",
        ),
    ],
)
def test_a_run_is_as_long_as_its_finest_count_of_steps_asks(
    seen: Evidence, seconds: float, waits_for: str
) -> None:
    found = next_look(PLAN, seen, None)
    assert (pytest.approx(found.seconds), found.waits_for if found.seconds else "") == (seconds, waits_for)


def of_backward(end: float, points: int = 60) -> dict[str, Any]:
    curve = tuple((float(step), 1.0 + (end - 1.0) * step / 39) for step in range(40))
    one = LearningSeries(
        metric="loss", name="training loss", source="backward()", points=points, curve=curve, over="steps"
    )
    return {"learning": (one,)}


@pytest.mark.parametrize(
    ("printed", "own", "seconds", "learns"),
    [
        (loss(2), of_backward(0.5), 0.0, True),
        (loss(2), of_backward(1.0), 15.0, False),
        # A log that prints enough of it is believed.
        (FLAT, of_backward(0.5), 15.0, False),
        (loss(), of_backward(1.0), 0.0, True),
        (loss(3), {}, 90.0, True),
    ],
)
def test_the_loss_of_backward_is_taken_where_the_log_is_too_coarse(
    printed: LossEvidence, own: dict[str, Any], seconds: float, learns: bool
) -> None:
    seen = run(window=30.0, loss=printed, outcome=Outcome.ENDED_BY_PLAN, **own)
    assert next_look(PLAN, seen, None).seconds == pytest.approx(seconds)
    assert as_recorded(None, [seen.model_dump(mode="json")], learns=True) == RunPlan(30.0, learns=learns)


@pytest.mark.parametrize(
    ("total", "done", "rate", "seconds"),
    [
        (100, 40, 3.0, 20.0),
        (100, 100, 3.0, 0.0),
        (100, 101, 3.0, None),
        (None, 40, 3.0, None),
        (100, None, 3.0, None),
        (100, 40, None, None),
    ],
)
def test_the_time_that_is_left_is_known_by_steps(
    total: int | None, done: int | None, rate: float | None, seconds: float | None
) -> None:
    assert time_left(total, done, rate) == seconds


def ended(outcome: str, trend: str = "CONVERGING", points: int = 40) -> dict[str, Any]:
    return {"outcome": outcome, "loss": {"trend": trend, "points": points}}


@pytest.mark.parametrize(
    ("wanted", "recorded", "plan"),
    [
        ("end", [], None),
        ("end", [ended("ENDED_BY_PLAN")], None),
        (90.0, [], RunPlan(90.0)),
        (90.0, [ended("COMPLETED")], RunPlan(90.0)),
        (None, [], RunPlan(30.0, may_complete=True)),
        (None, [ended("COMPLETED")], None),
        (None, [ended("ENDED_BY_PLAN")], RunPlan(30.0)),
        (None, [ended("ENDED_BY_PLAN", "PLATEAU")], RunPlan(30.0, learns=False)),
        (None, [ended("ENDED_BY_PLAN", "PLATEAU", 6)], RunPlan(30.0)),
        (None, [{**ended("ENDED_BY_PLAN", "PLATEAU"), "learning": rewards(40)}], RunPlan(30.0)),
        (None, [{"outcome": "ENDED_BY_PLAN", "loss": None}], RunPlan(30.0, learns=False)),
        (None, [{**ended("ENDED_BY_PLAN"), "window": {"rule": "steps"}}], RunPlan(30.0)),
        (None, [{**ended("ENDED_BY_PLAN"), "window": {"rule": "mser5"}}], RunPlan(30.0, silent=True)),
        (90.0, [{**ended("ENDED_BY_PLAN"), "window": {"rule": "mser5"}}], RunPlan(90.0, silent=True)),
    ],
)
def test_a_run_is_ended_as_those_of_the_baseline_were(
    wanted: float | str | None, recorded: list[dict[str, Any]], plan: RunPlan | None
) -> None:
    assert as_recorded(wanted, recorded, learns=True) == plan


@pytest.mark.parametrize(
    ("printed", "more", "said"),
    [
        (loss(2), {}, "0001-x shows 2: a run takes about 3.0 min for them"),
        (loss(12), {}, None),
        (loss(0), {}, None),
        (loss(2), of_backward(0.5), None),
        (loss(2), {"learning": rewards(40)}, None),
        # It ended by itself: no longer wait shows more.
        (loss(2), {"outcome": Outcome.COMPLETED}, None),
    ],
)
def test_what_runs_will_wait_for_is_known_from_one_that_showed_few_losses(
    printed: LossEvidence, more: dict[str, Any], said: str | None
) -> None:
    found = losses_awaited(run(window=30.0, loss=printed, **{"outcome": Outcome.ENDED_BY_PLAN, **more}))
    assert (found is None) if said is None else (said in str(found))
