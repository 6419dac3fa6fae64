"""Without a cluster everything is as ever: the same functions are asked, with the same words."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn, cast

import pytest

from gpudebug.core.answers.next import NothingRunning
from gpudebug.core.cluster.jobs import Cluster
from gpudebug.core.errors import InterruptedRun, UsageError
from gpudebug.edges import store
from gpudebug.engine.campaign.runner import RunsElsewhere
from gpudebug.engine.cycle import begin
from gpudebug.engine.cycle.allocation import Allocation
from gpudebug.engine.run.live_line import Live

IDLE = NothingRunning(campaign="test", why="planted")


def silent(_: Live) -> None:
    pass


def test_on_this_host_next_is_next_and_detached_is_detached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, object]] = []
    monkeypatch.setattr(begin, "next_or_attached", lambda *words: asked.append(("next", words)) or IDLE)
    monkeypatch.setattr(begin.detached, "start", lambda *words: asked.append(("start", words)) or IDLE)
    assert begin.next_here(tmp_path, silent, "a") == IDLE
    assert begin.next_here(tmp_path, silent, "a", detach=True, hypothesis=2, within_s=60.0) == IDLE
    words = (tmp_path, silent, "a")
    wishes = store.NextWish(), store.NextWish(2, 60.0)
    assert asked == [("next", (*words, wishes[0])), ("start", (*words, wishes[1]))]


def test_a_wrong_profile_is_refused_before_anything_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        begin.profile_here(tmp_path, "workload", "wait=x", silent)


def test_ctrl_c_in_the_moment_of_asking_takes_the_request_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere() -> NoReturn:
        raise RunsElsewhere("here is no device")

    def asked(there: Allocation, request: store.RunRequest) -> NoReturn:
        there.files.make()
        there.files.ask(request)
        raise KeyboardInterrupt

    monkeypatch.setattr(Allocation, "ask", asked)
    there = Allocation(store.Workspace(tmp_path), cast(Cluster, None), silent)
    for detach in (False, True):
        with pytest.raises(InterruptedRun):
            begin._made(elsewhere, there, begin._request("next", None), detach=detach)
        assert there.files.request() is None
