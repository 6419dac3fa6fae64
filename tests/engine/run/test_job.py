"""The records of a run: what is the same for all runs of one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.edges import store
from gpudebug.engine.run.job import Bench


@pytest.mark.parametrize(("kind", "replays"), [("replay", True), ("nvml", False), ("cpu", False)])
def test_recordings_are_played_back_on_one_device_alone(kind: str, replays: bool, tmp_path: Path) -> None:
    bench = Bench(
        workspace=store.Workspace(tmp_path),
        campaign=None,
        device={"kind": kind},
        devices=(),
        interval=0.2,
        warmup=None,
        patterns={},
        hold_fds=(),
        report=lambda live: None,
    )
    assert bench.replays is replays
