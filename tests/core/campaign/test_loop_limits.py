"""When a loop ends: histories of sessions as tables."""

from __future__ import annotations

import pytest

from gpudebug.core.campaign.decide import Ending
from gpudebug.core.campaign.loop_limits import Did, Limits, Spent, Stuck, end_of, next_name

LETTERS = {"s": Did.SOMETHING, "n": Did.NOTHING, "f": Did.FAILED}


def first_end(history: str, limits: Limits) -> tuple[int, Stuck] | None:
    """After how many sessions the loop ends, and why."""
    spent = Spent()
    for number, letter in enumerate(history, start=1):
        spent = spent.after(LETTERS[letter])
        if (end := end_of(limits, spent)) is not None:
            return number, Stuck(end.ending)
    return None


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("ssssssss", None),
        ("fff", (3, Stuck.FAILURES)),
        ("ffsffsff", None),
        ("ffsfff", (6, Stuck.FAILURES)),
        ("nnn", (3, Stuck.IDLE)),
        ("nnsnnsnn", None),
        ("ffnffnff", None),
        ("fnfnfn", (6, Stuck.IDLE)),
        ("nffnfn", (6, Stuck.IDLE)),
        ("nnff", None),
        ("nnfff", (5, Stuck.FAILURES)),
    ],
)
def test_a_row_of_sessions_without_a_gain_ends_the_loop(
    history: str, expected: tuple[int, Stuck] | None
) -> None:
    assert first_end(history, Limits()) == expected


@pytest.mark.parametrize(
    ("limits", "spent", "ending", "said"),
    [
        (Limits(), Spent(hypotheses=99, device_time=1e6), None, ""),
        (Limits(hypotheses=3), Spent(hypotheses=2), None, ""),
        (Limits(hypotheses=1), Spent(hypotheses=1), Ending.OUT_OF_BUDGET, "1 hypothesis tested, --hyp"),
        (Limits(hypotheses=3), Spent(hypotheses=4), Ending.OUT_OF_BUDGET, "4 hypotheses tested, --hyp"),
        (Limits(device_time=60), Spent(device_time=59.9), None, ""),
        (Limits(device_time=60), Spent(device_time=75.2), Ending.OUT_OF_BUDGET, "75 s of device time used"),
        (Limits(failures=1), Spent(failures=1, hypotheses=9), Stuck.FAILURES, "1 session in a row failed"),
        (Limits(idle=2), Spent(idle=2), Stuck.IDLE, "2 sessions in a row did nothing"),
    ],
)
def test_limits_are_reached_not_approached(
    limits: Limits, spent: Spent, ending: Stuck | Ending | None, said: str
) -> None:
    end = end_of(limits, spent)
    assert (end and end.ending) == ending
    assert said in (end.why if end else "")


@pytest.mark.parametrize(
    ("used", "number"),
    [
        ([], 1),
        (["loop-20261121-1", None, "loop-20261121-7", "loop-20261120-99"], 8),
        (["loop-20261121-12345678901234567890", "loop-20261121-x", "loop-20261121-²", "other"], 1),
    ],
)
def test_a_name_is_never_used_twice(used: list[str | None], number: int) -> None:
    assert next_name("20261121", used) == f"loop-20261121-{number}"
