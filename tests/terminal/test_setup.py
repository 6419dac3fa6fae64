"""What a person reads at the end of a loop."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.answers import read
from tests.support.statuses import hypothesis

from gpudebug.core.answers.hypotheses import LoopAnswer, LoopSession
from gpudebug.terminal.setup import loop, session

SESSION: dict[str, Any] = {
    "session": "loop-20261121-1",
    "action": "propose",
    "exit_status": 0,
    "signal": None,
    "outcome": "COMPLETED",
    "duration_s": 61.0,
    "proposed": [],
    "hypothesis": None,
    "verdict": None,
    "why": None,
    "kept": None,
    "transcript": "/r/runs/sessions/loop-20261121-1/transcript.log",
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "propose    1 min 1 s  no verdict"),
        ({"hypothesis": 4, "verdict": "REJECTED", "exit_status": 1}, "hypothesis 4 REJECTED"),
        ({"proposed": [2, 3]}, "  proposed hypothesis 2, 3"),
        ({"hypothesis": 4, "action": "implement"}, "implement  1 min 1 s  hypothesis 4 has no verdict"),
        ({"outcome": "TIMED_OUT"}, "no verdict, stopped at its time limit"),
        ({"outcome": "CRASHED", "exit_status": 3}, "no verdict, exit status 3"),
        ({"outcome": "CRASHED", "exit_status": None, "signal": 9}, "no verdict, signal 9"),
        ({"duration_s": None}, "propose    unknown  no verdict"),
    ],
)
def test_a_session_is_a_line(changes: dict[str, Any], said: str) -> None:
    line = session(read(LoopSession, {**SESSION, **changes}))
    assert line.startswith("loop-20261121-1  ")
    assert line.endswith(said)


def test_the_end_says_why_what_came_and_what_is_next() -> None:
    told = hypothesis(3, "VALIDATED", title="Waiting", delta_pp=40.04, verified=True)
    answer: dict[str, Any] = {
        "ending": "out of budget",
        "campaign": "test",
        "why": "out of budget: 1 hypothesis tested, --hypotheses is 1",
        "sessions": [SESSION],
        "hypotheses": [told, {**told, "number": 4, "verified": False, "delta_pp": None}],
        "accepted": [],
        "checkout_changed": [],
        "next_command": "gpudebug accept 3",
        "files": [],
    }
    text = loop(read(LoopAnswer, answer))
    assert text.splitlines()[0] == f"Loop of campaign test ended: {answer['why']}."
    assert "   3  VALIDATED     Waiting  +40.0pp\n   4  VALIDATED     Waiting  UNVERIFIED" in text
    assert text.endswith("Next: gpudebug accept 3")
    assert "Checkout" not in text
    assert "Sessions" not in loop(read(LoopAnswer, {**answer, "sessions": [], "hypotheses": []}))
    changed = loop(read(LoopAnswer, {**answer, "checkout_changed": [f"f{n}.py" for n in range(7)]}))
    assert (
        "Checkout: f0.py, f1.py, f2.py, f3.py, f4.py and 2 more changed during the loop, not by gpudebug."
        in changed
    )
