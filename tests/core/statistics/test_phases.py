"""The phases of several runs: their mean figures, by name, and a run as it was in one of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import run

from gpudebug.core.records import PhaseEvidence
from gpudebug.core.statistics.phases import figures, in_phase, phases_in, text


def phase(name: str, util: float | None = 20.0, rate: float | None = 10.0, **more: Any) -> PhaseEvidence:
    known = {"by": "log", "start_s": 2.0, "end_s": 32.0, "seconds": 30.0, "standard_error": 0.5}
    return PhaseEvidence(
        name=name, utilisation=util, steps_per_s=rate, progress_per_s=rate, **{**known, **more}
    )


def test_figures_are_means_over_the_runs_that_came_to_a_phase() -> None:
    runs = [[phase("supervised"), phase("ppo", 60.0, 40.0)], [phase("supervised", 30.0, 40.0)]]
    supervised, ppo = figures(runs, "step")
    assert (supervised.name, supervised.runs, supervised.gpu_util) == ("supervised", 2, 25.0)
    assert supervised.rate == pytest.approx(20.0)
    assert (ppo.runs, ppo.gpu_util, ppo.rate) == (1, 60.0, pytest.approx(40.0))
    assert figures([[phase("ppo")]], "step") == ()


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (phase("ppo"), "ppo: 30.0 s from 2.0 s on, gpu_util 20.0%, 10 steps/s"),
        (phase("ppo", None), "ppo: 30.0 s from 2.0 s on, gpu_util unknown, 10 steps/s"),
        (phase("eval", stretches=3), "eval: 30.0 s in 3 stretches from 2.0 s on, gpu_util 20.0%, 10 steps/s"),
        (
            phase("ppo", None, None, window_reason="the window is too short"),
            "ppo: 30.0 s from 2.0 s on, unknown: the window is too short",
        ),
    ],
)
def test_a_phase_in_words(one: PhaseEvidence, shown: str) -> None:
    assert text(figures([[one, phase("other")]], "step")[0]) == shown


def test_a_run_in_one_phase_has_that_phases_figures_and_no_others() -> None:
    whole = run(50.0, 30.0, phases=(phase("supervised"), phase("ppo", 60.0, 40.0)))
    found = in_phase(whole, "PPO")
    assert found is not None
    assert (found.utilisation, found.steps_per_s, found.standard_error) == (60.0, 40.0, 0.5)
    assert in_phase(whole, "distill") is None


def test_evidence_of_an_earlier_version_has_no_phases() -> None:
    assert phases_in({}) == ()
    assert phases_in({"phases": [phase("ppo").model_dump(mode="json")]}) == (phase("ppo"),)
