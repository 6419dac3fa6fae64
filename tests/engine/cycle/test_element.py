"""The worker in an element of a job array: which one it is, and what it leaves to others."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from gpudebug.core.answers.next import NothingRunning
from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.core.errors import ClusterError
from gpudebug.edges import store
from gpudebug.engine.cycle import element
from gpudebug.engine.cycle.notice import Notice

JOB = InsideJob(id="90", node="n0", nodes=("n0",), array="88", element=2)
SINCE = "2026-11-26T08:00:00.000000+00:00"


def elements(folder: Path, array: str | None, ended: str | None = None) -> store.Elements:
    found = store.Elements(store.Workspace(folder))
    for note in found.make((1, 2), SINCE):
        found.put(replace(note, array=array, ended=ended))
    return found


def test_it_tests_the_hypothesis_of_its_number(tmp_path: Path) -> None:
    found = element._taken_up(elements(tmp_path, "88"), JOB)
    assert found is not None
    assert (found.name, found.hypothesis) == ("0200", 2)


@pytest.mark.parametrize(("array", "ended"), [("87", None), (None, None), ("88", "gpudebug stop")])
def test_an_element_that_nobody_wants_any_more_does_nothing(
    tmp_path: Path, array: str | None, ended: str | None
) -> None:
    assert element._taken_up(elements(tmp_path, array, ended), JOB) is None


def test_outside_of_an_array_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpudebug.yaml").write_text("campaign: x\n")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(ClusterError, match="no element of a job array"):
        element.main(str(tmp_path))


def test_what_ran_as_the_job_was_suspended_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def cycle(folder: Path, report: object, session: str | None) -> NothingRunning:
        asked.append("run")
        if len(asked) == 1:
            signal.raise_signal(signal.SIGTSTP)
        return NothingRunning(campaign="x", why="hypothesis 2 is VALIDATED")

    monkeypatch.setattr(element, "next_cycle", cycle)
    (note, _) = elements(tmp_path, "88").notes()
    notice, said = Notice(JOB), list[str]()
    with notice.heeded(said.append):
        signal.raise_signal(signal.SIGTSTP)
        assert element._outcome(tmp_path, note, notice) == "hypothesis 2 is VALIDATED"
    assert (len(asked), said, notice.why) == (2, [], None)
