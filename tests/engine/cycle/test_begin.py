"""Without a cluster everything is as ever: the same functions are asked, with the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.answers.next import NothingRunning
from gpudebug.core.errors import UsageError
from gpudebug.engine.cycle import begin
from gpudebug.engine.run.live_line import Live

IDLE = NothingRunning(campaign="test", why="planted")


def silent(_: Live) -> None:
    pass


def test_on_this_host_next_is_next_and_detached_is_detached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, object]] = []
    monkeypatch.setattr(begin, "next_cycle", lambda *words: asked.append(("next", words)) or IDLE)
    monkeypatch.setattr(begin.detached, "start", lambda *words: asked.append(("start", words)) or IDLE)
    assert begin.next_here(tmp_path, silent, "a") == IDLE
    assert begin.next_here(tmp_path, silent, "a", detach=True) == IDLE
    words = (tmp_path, silent, "a")
    assert asked == [("next", words), ("start", words)]


def test_a_wrong_profile_is_refused_before_anything_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        begin.profile_here(tmp_path, "workload", "wait=x", silent)
