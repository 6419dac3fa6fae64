"""No failure rests on what the CPU stand-in counts as busy and is none of the model's work."""

from __future__ import annotations

import pytest
from tests.core.statistics.test_own_work import watched
from tests.support.trials import following, gate, verdict

from gpudebug.core.records import Conditions, Evidence
from gpudebug.core.verdict.turns import NextRun
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


BEFORE = [(98.0, 5.0), (97.8, 5.02), (98.1, 4.98), (98.0, 5.01)]


def test_batches_that_workers_make_now_are_no_failure_of_utilisation() -> None:
    before, after = made(DECODES, *BEFORE), made(WAITS, (60.0, 11.0), (60.4, 11.1))
    found = verdict(before, after)
    assert (found.status, gate(found, "delta").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert "the CPU stand-in counts that as busy; set metric: steps_per_s in gpudebug.yaml" in found.why
    assert following(before, after) is NextRun.DONE


@pytest.mark.parametrize(
    ("before", "rate"),
    [
        pytest.param(DECODES, 3.5, id="nothing more gets done"),
        pytest.param(WAITS, 11.0, id="the baseline waits, which utilisation shows"),
    ],
)
def test_otherwise_a_delta_that_is_too_small_rejects(before: Evidence, rate: float) -> None:
    found = verdict(made(before, *BEFORE), made(WAITS, (60.0, rate), (60.4, rate)))
    assert (found.status, gate(found, "delta").result) == (Status.REJECTED, Result.FAIL)


def test_while_it_is_open_what_gets_done_the_trial_goes_on() -> None:
    before, after = made(DECODES, *BEFORE), made(WAITS, (60.0, 4.4), (60.4, 6.0))
    assert verdict(before, after).status is Status.INCONCLUSIVE
    assert following(before, after) is NextRun.TRIAL
