"""What a background process left: its answer, its error, or what the cluster did to it."""

from __future__ import annotations

import pytest

from gpudebug.core.answers.next import NothingRunning
from gpudebug.core.errors import BusyError, GpudebugError
from gpudebug.engine.cycle.retold import AllocationLost, Retold, retold

IDLE = NothingRunning(campaign="test", why="nothing is under way here")


def test_an_answer_is_the_callers_own() -> None:
    assert retold({"answer": IDLE.as_json(), "session": "a"}) == IDLE


def test_an_error_keeps_its_words_and_status() -> None:
    error = BusyError("the device is taken", file="x", next="wait")
    with pytest.raises(Retold) as caught:
        retold({"error": error.as_json(), "exit_status": error.exit_code})
    assert caught.value.as_json() == error.as_json()
    assert caught.value.exit_code == error.exit_code


def test_what_the_cluster_ended_is_no_error_of_the_run() -> None:
    error = GpudebugError("interrupted").as_json()
    with pytest.raises(AllocationLost, match="job 12 was started again"):
        retold({"error": error, "exit_status": 130, "void": "job 12 was started again"})


@pytest.mark.parametrize("answer", [None, {}, {"action": "new"}, {"action": "idle"}])
def test_an_answer_of_another_version_is_one_line(answer: object) -> None:
    with pytest.raises(GpudebugError, match="not what this version of gpudebug writes"):
        retold({"answer": answer})
