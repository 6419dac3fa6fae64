"""What a background process left as its answer, as the caller's own."""

from __future__ import annotations

from typing import Any

from gpudebug.core.answers.answer import read
from gpudebug.core.answers.next import ACTIONS, NextAnswer, SessionDone
from gpudebug.core.errors import GpudebugError


class Retold(GpudebugError):
    """An expected error that a background process met, raised for the caller that asks for its answer."""

    def __init__(self, answer: dict[str, Any], exit_status: int) -> None:
        super().__init__(
            str(answer.get("message")),
            file=answer.get("file"),
            line=answer.get("line"),
            next=answer.get("next"),
        )
        self.code = str(answer.get("code"))
        self.exit_code = exit_status


class AllocationLost(GpudebugError):
    """The cluster ended the allocation: what ran in it is void, and says nothing of the program."""

    code = "allocation"


AGAIN = "gpudebug next, which runs it again"


def retold(outcome: dict[str, Any]) -> NextAnswer:
    """Return the answer in `{"answer": …}`.

    Raises Retold for `{"error": …, "exit_status": N}`, AllocationLost if `void` says what the cluster did.
    """
    if outcome.get("void"):
        raise AllocationLost(str(outcome["void"]), next=AGAIN)
    if "error" in outcome:
        raise Retold(outcome["error"], int(outcome["exit_status"]))
    try:
        answer = outcome["answer"]
        return read(SessionDone if answer.get("session_done") else ACTIONS[answer["action"]], answer)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise GpudebugError(
            "the detached run's answer is not what this version of gpudebug writes",
            next="gpudebug status, which shows what the run recorded",
        ) from None
