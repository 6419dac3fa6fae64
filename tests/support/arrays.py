"""A campaign on the login node of a stand-in for a cluster, whose hypotheses may be tested at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support.batch import Batch
from tests.support.campaigns import RECORDED_S, Campaign, make_replay_campaign, record

from gpudebug.edges import store

RUNNER = "runner: {slurm: {partition: gpu, parallel: 2}}\n"
_CRASH = (
    "step 1/10 loss 2.0\nTraceback (most recent call last):\n  File x\nValueError: readers must be even\n"
)


class Login:
    """A campaign on a login node, whose odd hypotheses help and whose runs take `seconds`."""

    def __init__(
        self, folder: Path, cluster: Batch, *, count: int = 3, seconds: float = 0.6, target: int = 80
    ) -> None:
        self.recordings = recordings = folder / "recordings"
        record(recordings, "0001-baseline-workload", util=20, rate=10)
        for n in range(1, (count or 3) + 1):
            record(
                recordings,
                f"000{n + 1}-h{n}",
                util=60 if n % 2 or not count else 20,
                rate=30 if n % 2 or not count else 10,
            )
        self.env = {"PATH": f"{cluster.bin}:{os.environ['PATH']}"}
        self.campaign: Campaign = make_replay_campaign(
            folder / "repo", recordings, RECORDED_S / seconds, config=f"{RUNNER}target: {target}\n"
        ).pin()
        for n in range(count):
            self.campaign.propose(f"--set --lr=0.{n + 2}")
        self.elements = store.Elements(store.Workspace(self.campaign.folder))

    def json(self, *words: str, status: int = 0) -> Any:
        return self.campaign.json(*words, status=status, env=self.env, timeout=180)

    def crashes(self, number: int) -> None:
        """From now on the trial of this hypothesis crashes."""
        name = f"000{number + 1}-h{number}"
        shutil.rmtree(self.recordings / name)
        record(self.recordings, name, log=_CRASH, seconds=3, exit_status=1)

    def propose_patch(self, number: int, before: str) -> None:
        """A patch that helps: a line before this one."""
        folder, program = self.campaign.folder, self.campaign.folder / "train.py"
        text = program.read_text()
        program.write_text(text.replace(before, f"A{number} = {number}\n{before}", 1))
        patch = subprocess.run(["git", "diff"], cwd=folder, capture_output=True, check=True).stdout
        program.write_text(text)
        path = folder / "hypotheses" / "patches" / f"{number}.patch"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(patch)
        self.campaign.propose(f"--patch hypotheses/patches/{number}.patch")

    def wait(self) -> Any:
        return self.json("wait")
