"""What is read of a compared run: whether it completed, and how it ended in the last words of its log."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.comparisons import record
from tests.support.trials import crashed, run

from gpudebug.core.words import Outcome
from gpudebug.edges.store import RunFolder
from gpudebug.engine.tools.compared import CompareFailed, asked_of, latency_of, refuse_incomplete


def folder_of(path: Path, log: str) -> RunFolder:
    (path / "train.log").write_text(log)
    return RunFolder(path, str)


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.ENDED_BY_PLAN])
def test_a_run_that_ended_as_planned_is_compared(tmp_path: Path, outcome: Outcome) -> None:
    refuse_incomplete(folder_of(tmp_path, ""), run(outcome=outcome))


def test_another_is_refused_with_its_last_words(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "loading\nno such file: a.bin\n\n")
    with pytest.raises(CompareFailed, match="of A did not complete: CRASHED, exit status 1: no such file"):
        refuse_incomplete(folder, crashed(None), " of A")


def test_latencies_and_the_steps_that_its_command_asks_for(tmp_path: Path) -> None:
    assert latency_of(folder_of(tmp_path, "step 1 loss 2\n")) is None
    found = latency_of(folder_of(tmp_path, "latency: 10 ms\n" * 30))
    assert found is not None
    assert found.mean == pytest.approx(0.01)
    assert asked_of(record("python train.py --max_steps=50")) == 50
