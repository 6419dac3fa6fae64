"""A campaign on the login node of a cluster that is stood in for: its runs are recordings that are played."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.batch import Batch
from tests.support.campaigns import RECORDED_S, make_replay_campaign, record, wait_for

from gpudebug.edges import store
from gpudebug.edges.clusters import answers

RUNNER = "runner: {slurm: {partition: gpu, idle: 1m}}\n"


class LoginNode:
    """A campaign whose runs take `seconds`, and the cluster that they are made on."""

    def __init__(self, folder: Path, seconds: float) -> None:
        recordings = folder / "recordings"
        record(recordings, "0001-baseline-workload", util=20, rate=10)
        record(recordings, "0002-h1", util=60, rate=30)
        record(recordings, "0003-h1", util=60, rate=30)
        for name in ("0004-aa", "0005-aa", "0006-profile-workload"):
            record(recordings, name, util=20, rate=10)
        self.cluster = Batch(folder / "cluster")
        self.campaign = make_replay_campaign(
            folder / "repo", recordings, RECORDED_S / seconds, config=RUNNER
        ).pin()
        private = self.campaign.private
        self.files, self.detached = store.Allocations(private), store.Detached(private)

    def env(self, more: dict[str, str]) -> dict[str, str]:
        return {"PATH": f"{self.cluster.bin}:{os.environ['PATH']}", **more}

    def json(self, *words: str, status: int = 0, **more: str) -> Any:
        return self.campaign.json(*words, status=status, env=self.env(more), timeout=90)

    def told(self, *words: str, status: int = 0, **more: str) -> Any:
        """As `json`, of a command that submits a job, and asks of it without the pause after that."""
        job = str(len(self.cluster.jobs()) + 1)
        command = self.start(*words, **more)
        wait_for(lambda: (note := self.files.note()) is not None and note.job == job)
        self.end_pause()
        out, _ = command.communicate(timeout=90)
        assert command.returncode == status, out
        return json.loads(out)

    def end_pause(self) -> None:
        """Let the cluster be asked again at once."""
        with answers.opened(self.files.folder) as book:
            book.next_at = 0.0

    def start(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        return self.campaign.start(*words, "--json", env=self.env(more))

    def records(self) -> list[dict[str, Any]]:
        workspace = store.Workspace(self.campaign.folder)
        runs = [workspace.run(name) for name in workspace.run_names()]
        return [dict(run.read("run.json")) for run in runs if run.has("run.json")]

    def under_way(self, runs: int = 1) -> bool:
        """Whether the last of so many runs writes its log."""
        names = self.campaign.runs()
        log = self.campaign.folder / "runs" / names[-1] / "train.log" if len(names) == runs else None
        return log is not None and log.exists() and log.stat().st_size > 0


@contextmanager
def login_node(folder: Path, seconds: float) -> Iterator[LoginNode]:
    """One for the length of a block; what its cluster runs ends with it."""
    node = LoginNode(folder, seconds)
    try:
        yield node
    finally:
        node.cluster.close()
