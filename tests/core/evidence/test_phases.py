"""A run cut into phases: where each begins and ends, its own figures, and names that are no phases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.probe_lines import line, start
from tests.support.readings import phases as levels
from tests.support.readings import sampled, samples, steady_steps, steps_log

from gpudebug.core.evidence.build import build
from gpudebug.core.evidence.phases import PhaseSpan, by_optimizers, flips, stretches_of
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.inside.probe import read_probe
from gpudebug.core.records import Evidence
from gpudebug.core.trainlog.phase_lines import LoggedPhase
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.words import Outcome

SUPERVISED, PPO = LoggedPhase("supervised", 1.0, 1.0), LoggedPhase("ppo", 30.0, 30.0)


def log() -> LogSummary:
    """10 steps a second up to 30 s, and 40 from there to 60 s."""
    first = steady_steps(2, 30, 10)
    later = [(n + 280, t) for n, t in steady_steps(30, 60, 40)]
    return replace(steps_log([*first, *later]), phases=(SUPERVISED, PPO), steps_per_s=99.0)


def evidence(found: LogSummary, **more: Any) -> Evidence:
    rows = samples(sampled(levels((2, 0.0), (30, 20.0), (60, 80.0)), 60))
    told = more.pop("told", None)
    run = EndedRun(name="0001-x", role="h1", outcome=Outcome.COMPLETED, **more)
    return build(run, RunReadings(samples=rows, log=found, told=told))


def test_each_phase_has_the_figures_of_its_own_steady_part() -> None:
    found = evidence(log())
    assert [one.name for one in found.phases] == ["supervised", "ppo"]
    supervised, ppo = found.phases
    assert (supervised.utilisation, ppo.utilisation) == (pytest.approx(20), pytest.approx(80))
    assert (supervised.steps_per_s, ppo.steps_per_s) == (
        pytest.approx(10, rel=0.02),
        pytest.approx(40, rel=0.02),
    )
    assert supervised.window is not None and supervised.window.end_s <= 30
    assert ppo.window is not None and 30 < ppo.window.start_s < 32
    assert found.window is not None and found.window.end_s - found.window.start_s > 29
    assert found.phases_reason is None


def test_the_phase_that_is_judged_is_the_window_of_the_run() -> None:
    whole, found = evidence(log()), evidence(log(), phase="Supervised")
    assert found.window == whole.phases[0].window
    assert (found.utilisation, found.steps_per_s) == (pytest.approx(20), whole.phases[0].steps_per_s)


@pytest.mark.parametrize(
    ("phase", "declared", "reason"),
    [
        (
            "distill",
            {"distill": "distilling"},
            "phase distill never began: no line of the log matches 'distilling'; seen: supervised, ppo",
        ),
        ("distill", {}, "phase distill never began; seen: supervised, ppo"),
    ],
)
def test_a_phase_that_never_comes_is_one_line_with_what_was_seen(
    phase: str, declared: dict[str, str], reason: str
) -> None:
    found = evidence(log(), phase=phase, declared=declared)
    assert (found.window, found.window_reason, found.phases_reason) == (None, reason, reason)


def test_a_phase_that_is_too_short_is_unknown_and_said_so() -> None:
    found = evidence(replace(log(), phases=(SUPERVISED, LoggedPhase("ppo", 58.0, 58.0))), phase="ppo")
    assert found.window is None
    assert (found.window_reason or "").startswith("phase ppo: the window is too short")
    assert found.phases[1].utilisation is None and found.phases[1].steps_per_s is None


@pytest.mark.parametrize(
    ("lines", "first", "spans"),
    [
        ([SUPERVISED, PPO], 2.0, [("supervised", 2.0, 30.0), ("ppo", 30.0, 60.0)]),
        ([PPO], 2.0, [("before ppo", 2.0, 30.0), ("ppo", 30.0, 60.0)]),
        ([LoggedPhase("ppo", 4.0, 4.0)], 2.0, [("ppo", 4.0, 60.0)]),
        # A configuration is printed before the first step.
        ([LoggedPhase("ppo", 0.5, 0.5), replace(SUPERVISED, last_s=9.0)], 2.0, [("supervised", 2.0, 60.0)]),
        # A column: what is between its last line and the next name is of neither.
        ([LoggedPhase("a", 2.0, 26.0, 13), LoggedPhase("b", 28.0, 58.0, 15)], 2.0,
         [("a", 2.0, 26.001), ("b", 28.0, 60.0)]),
        ([LoggedPhase("a", None, None)], 2.0, []),
    ],
)  # fmt: skip
def test_phases_begin_with_a_line_and_end_with_the_next(
    lines: list[LoggedPhase], first: float, spans: list[tuple[str, float, float]]
) -> None:
    assert stretches_of(lines, first, 60.0) == [PhaseSpan(*span) for span in spans]


@pytest.mark.parametrize(
    ("stepped", "spans"),
    [
        ({"0": 2.0, "1": 31.0}, [("optimizer 1", 2.0, 31.0), ("optimizer 2", 31.0, 60.0)]),
        # Two of one training begin together; a third one later.
        ({"0": 2.0, "1": 2.5, "2": 31.0}, [("optimizer 1", 2.0, 31.0), ("optimizer 3", 31.0, 60.0)]),
        ({"0": 2.0, "1": 2.5}, []),
        # One is made anew for each task.
        ({str(n): 6.0 * n for n in range(6)}, []),
        ({}, []),
    ],
)
def test_an_optimizer_that_begins_late_begins_a_phase(
    stepped: dict[str, float], spans: list[tuple[str, float, float]]
) -> None:
    assert by_optimizers(stepped, 60.0) == [PhaseSpan(*span) for span in spans]


def test_without_a_word_in_the_log_the_probe_cuts_the_run() -> None:
    beats = (
        line("beat", 1, float(t), steps=t, counters={}, hist={}, opt={"0": t} | ({"1": 1} if t > 30 else {}))
        for t in range(3, 60)
    )
    told = read_probe(start() + "".join(beats))
    found = evidence(replace(log(), phases=()), told=told)
    assert [(one.name, one.by) for one in found.phases] == [
        ("optimizer 1", "optimizers"),
        ("optimizer 2", "optimizers"),
    ]


def test_a_run_that_flips_between_two_is_in_no_phase() -> None:
    spans = [PhaseSpan("rollout" if n % 2 else "update", float(n), n + 1.0) for n in range(40)]
    assert flips(spans) == (
        "the run changes between update and rollout 39 times, every 1.0 s: these are parts of steps and no "
        "phases; gpudebug.profile_section times them"
    )
    slow = [PhaseSpan(one.name, 10 * one.start_s, 10 * one.end_s) for one in spans]
    assert flips(slow) is None
    lines = [LoggedPhase(one.name, one.start_s, one.start_s) for one in spans]
    found = evidence(replace(log(), phases=tuple(lines)), phase="rollout")
    assert found.phases == () and found.window is None
    assert (found.window_reason or "").startswith("the run changes between")
