"""No failure rests on what the CPU stand-in counts as busy and is none of the model's work."""

from __future__ import annotations

import pytest
from tests.core.statistics.test_own_work import watched
from tests.support.trials import criteria, gate

from gpudebug.core.records import Conditions, Evidence, Verdict
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.judge import judge
from gpudebug.core.verdict.protocol import NextRun, next_step
from gpudebug.core.words import Result, Status

QUIET = Conditions(foreign_procs=0, foreign_share=0.0, foreign_cpu=1.0, cpu_stolen=0.0, cpu_cores=0.9)
DECODES = watched(("data", 6.0, 6.0))
WAITS = watched(("data", 6.0, 0.2))


def made(like: Evidence, *levels: tuple[float, float]) -> list[Evidence]:
    """Runs of so much utilisation and so many steps a second, with the stacks of `like`."""
    changes = [
        {"utilisation": u, "progress_per_s": r, "steps_per_s": r, "conditions": QUIET} for u, r in levels
    ]
    return [like.model_copy(update={**c, "run": f"000{i}-x"}) for i, c in enumerate(changes, 1)]


def judged(before: list[Evidence], after: list[Evidence], rule: str = "5") -> tuple[Verdict, NextRun]:
    setting = TrialSetting(fresh=1, rule=int(rule))
    found = judge(3, criteria(), before, after, setting, rule)
    return found, next_step(found, criteria(), before, after, setting)


BEFORE = [(98.0, 5.0), (97.8, 5.02), (98.1, 4.98), (98.0, 5.01)]


def test_batches_that_workers_make_now_are_no_failure_of_utilisation() -> None:
    found, step = judged(made(DECODES, *BEFORE), made(WAITS, (60.0, 11.0), (60.4, 11.1)))
    assert (found.status, gate(found, "delta").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert "the CPU stand-in counts that as busy; set metric: steps_per_s in gpudebug.yaml" in found.why
    assert step is NextRun.DONE


@pytest.mark.parametrize(
    ("before", "rate", "rule"),
    [
        pytest.param(DECODES, 5.0, "5", id="nothing more gets done"),
        pytest.param(WAITS, 11.0, "5", id="the baseline waits, which utilisation shows"),
        pytest.param(DECODES, 11.0, "4", id="by a rule that did not ask"),
    ],
)
def test_otherwise_a_delta_that_is_too_small_rejects(before: Evidence, rate: float, rule: str) -> None:
    found, _ = judged(made(before, *BEFORE), made(WAITS, (60.0, rate), (60.4, rate)), rule)
    assert (found.status, gate(found, "delta").result) == (Status.REJECTED, Result.FAIL)


def test_while_it_is_open_what_gets_done_the_trial_goes_on() -> None:
    found, step = judged(made(DECODES, *BEFORE), made(WAITS, (60.0, 3.0), (60.4, 9.0)))
    assert found.status is Status.INCONCLUSIVE
    assert step is NextRun.TRIAL
