from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.trials import crashed, run

from gpudebug.core.errors import DeviceError, InterruptedRun
from gpudebug.core.records import Evidence
from gpudebug.core.words import Outcome
from gpudebug.engine.trial import unmodified
from gpudebug.engine.trial.unmodified import BaselineFailed, by_the_user, launch


class SealedRuns:
    """A workspace that only knows what was sealed in it."""

    def __init__(self) -> None:
        self.sealed: list[str] = []

    def seal(self, folder: Any) -> None:
        self.sealed.append(folder.name)


def made(number: int, e: Evidence, reason: str | None = None) -> Any:
    folder = SimpleNamespace(name=f"{number:04}-x", path=Path("x"), log=Path("x/train.log"))
    record = SimpleNamespace(outcome=e.outcome, reason=reason, server=None)
    return SimpleNamespace(folder=folder, record=record, evidence=e)


def launched(monkeypatch: pytest.MonkeyPatch, *runs: Any) -> tuple[Any, SealedRuns]:
    """What `launch` makes of these runs, and the workspace."""
    left, workspace = list(runs), SealedRuns()
    monkeypatch.setattr(unmodified, "measure", lambda bench, job: left.pop(0))
    bench: Any = SimpleNamespace(workspace=workspace)
    job: Any = None
    return launch(bench, "workload", job), workspace


LOST = run(outcome=Outcome.SAMPLER_LOST)


def test_a_run_that_the_machinery_failed_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    good = made(2, run())
    found, workspace = launched(monkeypatch, made(1, LOST), good)
    assert found is good and workspace.sealed == ["0001-x"]


def test_the_machinery_is_to_blame_once_it_failed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        DeviceError, match="two runs of the workload failed for reasons outside the training: SAMPLER_LOST"
    ):
        launched(monkeypatch, made(1, LOST), made(2, LOST))


def test_a_crash_is_the_workloads_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BaselineFailed, match=r"does not complete: CRASHED.*: ValueError: no") as caught:
        launched(monkeypatch, made(1, crashed("exception", "ValueError: no")))
    assert caught.value.file == "x/train.log"


def test_ctrl_c_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = made(1, run(outcome=Outcome.INTERRUPTED), "interrupted by SIGINT")
    assert by_the_user(stopped)
    assert not by_the_user(made(1, run(outcome=Outcome.INTERRUPTED), "the warden was lost"))
    with pytest.raises(InterruptedRun, match="0001-x was interrupted"):
        launched(monkeypatch, stopped)
