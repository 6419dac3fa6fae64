"""Verdicts on a busy machine, got as a user gets them: what others disturbed is measured again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.campaigns import Campaign

TRIES = 5


def judged(campaign: Campaign, number: int = 1, **more: Any) -> Any:
    """What `next` answers of hypothesis `number`, the only one that waits; `more` are options of `run`."""
    answer = settled(campaign.json("next", **more), lambda number: measured_again(campaign, number, **more))
    assert answer["hypothesis"] == number, answer
    return answer


def settled(answer: Any, again: Callable[[int], Any]) -> Any:
    """The answer; while others on the host leave it open, what `again` answers of its hypothesis.

    Up to TRIES times. What is decided is not tried again: what must not be VALIDATED has no second chance.
    """
    for _ in range(TRIES):
        if not disturbed(answer):
            break
        answer = again(answer["hypothesis"])
    return answer


def measured_again(campaign: Campaign, number: int, **more: Any) -> Any:
    """What `next` answers of the hypothesis beside a fresh baseline, under the load of now."""
    campaign.run("baseline", **more).expect(0)
    campaign.run("reopen", str(number)).expect(0)
    return campaign.json("next", **more)


def disturbed(answer: Any) -> bool:
    """Whether a verdict is open, and others were on the host: INVALID for that, or too noisy to decide."""
    alone = gates(answer).get("device_to_itself")
    if alone is None or alone["value"] == "alone":
        return False
    invalid = answer["verdict"] == "INVALID" and alone["result"] == "fail"
    return invalid or answer["verdict"] == "INCONCLUSIVE"


def gates(answer: Any) -> dict[str, Any]:
    """The gates of an answer by their names."""
    return {gate["name"]: gate for gate in answer["gates"]}
