"""Time in code that a change decides on, and what that makes of the order of tests."""

from __future__ import annotations

import pytest
from tests.support.diagnoses import cause

from gpudebug.core.change import intervention
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts, Ranked
from gpudebug.core.diagnosis.optional_code import decided
from gpudebug.core.diagnosis.tested_causes import BY_TOUCH, StatedHypothesis, causes_of
from gpudebug.core.diagnosis.worth import worth
from gpudebug.core.records import Stacks, StacksEvidence

TOUCHED = {"memory": frozenset({"ListMemory", "RingMemory"}), "eval_every": frozenset({"evaluate"})}
FRAMES = ("dqn/train.py:main", "dqn/train.py:ListMemory.add", "dqn/train.py:Learner.learn")


def stacks(slow: float, rest: float) -> Stacks:
    told = (("other", (0, 1), 8, slow, slow), ("forward", (0, 2), 30, rest, rest))
    return Stacks(seconds=slow + rest, cpu_s=slow + rest, samples=100, frames=FRAMES, stacks=told)


def facts(**more: Stacks) -> DiagnosisFacts:
    return DiagnosisFacts(signals={"data_wait_share": 0.5}, stacks=StacksEvidence(**more))


@pytest.mark.parametrize(
    ("change", "known", "expected"),
    [
        ("--set --memory=ring", facts(training=stacks(3, 7)), 0.3),
        ("--unset --memory", facts(training=stacks(3, 7)), 0.3),
        ("--set --eval-every=9", facts(training=stacks(3, 7)), 0.0),
        ("--env MEMORY=ring", facts(training=stacks(3, 7)), 0.0),
        ("--set --memory=ring", facts(workers=stacks(6, 4)), 0.3),
        ("--set --memory=ring", DiagnosisFacts(), 0.0),
    ],
    ids=["set", "unset", "another", "a variable", "of workers as far as they are waited for", "no stacks"],
)
def test_the_share_of_what_a_change_decides_on(change: str, known: DiagnosisFacts, expected: float) -> None:
    assert decided(intervention.parse(change), known, TOUCHED) == pytest.approx(expected)


def test_a_change_of_the_code_that_a_cause_shows_in_tests_that_cause() -> None:
    known = [cause("replay-store"), cause("eval-frequent")]
    shown = {"replay-store": "ListMemory.add self.kept = [*self.kept, moment]", "eval-frequent": "other x"}
    said = StatedHypothesis("Moments are kept in a list", "", intervention.parse("--set --memory=ring"))
    assert causes_of(said, known, DiagnosisFacts(), shown=shown, touched=TOUCHED)["replay-store"] >= BY_TOUCH
    assert "eval-frequent" not in causes_of(said, known, DiagnosisFacts(), shown=shown, touched=TOUCHED)


def test_where_no_cause_explains_it_the_change_of_where_the_time_goes_is_first() -> None:
    weak = Diagnosis(causes=(Ranked("no-amp", "Full precision", 0.1, exposed=0.2),))
    matches = {1: {"no-amp": 0.9}, 2: {}, 3: {}}
    by_worth = worth(weak, matches, cost_s=10.0, points=False, decided={2: 0.5})
    assert by_worth[2] > by_worth[1] > by_worth[3] == 0.0
    sure = Diagnosis(causes=(Ranked("no-amp", "Full precision", 0.95, exposed=0.6),))
    assert worth(sure, matches, cost_s=10.0, points=False, decided={2: 0.5})[1] > by_worth[2]
