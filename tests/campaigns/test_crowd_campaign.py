"""Many agents on one campaign at once, while processes of theirs are killed at random moments.

No hypothesis is tested twice at once, none is lost, no session brings two verdicts, nothing is left over,
and nothing of the user's is touched.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support import crowd, crowd_agent
from tests.support.campaigns import Campaign, environment, git, make_replay_campaign, record
from tests.support.repositories import left_over, users

from gpudebug.core.progress import parse
from gpudebug.core.words import VERDICTS, Status
from gpudebug.edges.store import locks

RUN_S = 0.3
RECORDED_S = 12.0


def make(folder: Path, count: int) -> Campaign:
    """A campaign of `count` hypotheses, every third of them code to be written; a dirty tree with a stash."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10, seconds=RECORDED_S)
    for n in range(1, count + 1):
        util, rate = (70, 35) if n % 2 else (20, 10)
        record(recordings, f"{n + 1:04d}-h{n}", util=util, rate=rate, seconds=RECORDED_S, seed=n)
    campaign = make_replay_campaign(
        folder / "repo",
        recordings,
        RECORDED_S / RUN_S,
        config=f"budget: {{hypotheses: {count}, device_time: 1000h}}\ntarget: 100\n",
        files={"data.txt": "kept\n", "old.txt": "kept\n"},
        progress="## Hypotheses\n\n" + "".join(entry(n) for n in range(1, count + 1)),
    ).pin()
    (campaign.folder / "data.txt").write_text("stashed\n")
    git(campaign.folder, "stash", "--quiet")
    (campaign.folder / "old.txt").write_text("staged\n")
    git(campaign.folder, "add", "old.txt")
    (campaign.folder / "data.txt").write_text("changed\n")
    (campaign.folder / "new.txt").write_text("untracked\n")
    return campaign


def entry(n: int) -> str:
    change = "--code" if n % 3 == 0 else f"--set --lr={n / 1000 + 1}"
    return f"### Hypothesis {n}: Cause {n}\n- **Intervention**: {change}\n- **Status**: UNTESTED\n\n"


class Crowd:
    """Agents at work on a campaign, each a process of its own, with a journal each."""

    def __init__(self, campaign: Campaign, agents: int) -> None:
        self.campaign = campaign
        self.mark = str(campaign.folder)
        self.folder = campaign.folder.parent / "journals"
        self.folder.mkdir()
        # The more there are, the longer each waits before it tries again.
        self.pause = agents / 2
        self.agents = [self._start(f"agent{n}") for n in range(1, agents + 1)]

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, crowd_agent.__file__, name, str(self.folder / name), str(self.pause)],
            cwd=self.campaign.folder,
            env=environment({crowd.MARK: self.mark}),
            stdin=subprocess.DEVNULL,
        )

    def wait(self, within: float) -> None:
        deadline = time.monotonic() + within
        while any(agent.poll() is None for agent in self.agents):
            assert not any(agent.poll() for agent in self.agents), "an agent gave up"
            assert time.monotonic() < deadline, f"not over within {within} s\n{self.standing()}"
            time.sleep(0.2)

    def standing(self) -> str:
        """What each agent was told last, and the processes that are left."""
        left = crowd.processes(self.mark)
        told = [
            f"{f.name}: {''.join(f.read_text().splitlines()[-1:])}" for f in sorted(self.folder.iterdir())
        ]
        return "\n".join([*told, *(f"{n}: {command}" for n, command in left.items())])

    def end(self) -> None:
        """Whatever is left of it, so that the next test starts clean."""
        for agent in self.agents:
            agent.kill()
            agent.wait()
        for pid in crowd.processes(self.mark):
            os.kill(pid, signal.SIGKILL)

    @property
    def journal(self) -> list[dict[str, Any]]:
        lines = [json.loads(s) for f in self.folder.iterdir() for s in f.read_text().splitlines()]
        return sorted(lines, key=lambda line: line["at"])


def check(campaign: Campaign, count: int) -> None:
    document = parse(campaign.progress.read_bytes(), "progress.md")
    assert [h.number for h in document.hypotheses] == list(range(1, count + 1))
    assert all(h.status in VERDICTS for h in document.hypotheses), [
        str(h.status) for h in document.hypotheses
    ]
    assert campaign.text.count("- **Result**:") == count
    # A sampler that was killed costs samples, so that too few may be left for a verdict either way.
    for h in document.hypotheses:
        wanted = Status.VALIDATED if h.number % 2 else Status.REJECTED
        assert h.status in (wanted, Status.INCONCLUSIVE, Status.INVALID), (h.number, h.result)
    told = Counter(h.status for h in document.hypotheses)
    assert told[Status.VALIDATED] + told[Status.REJECTED] >= 0.7 * count - 1

    listed = [name for h in document.hypotheses for name in h.runs]
    assert len(listed) == len(set(listed))
    runs = campaign.folder / "runs"
    records = {
        n: json.loads((runs / n / "run.json").read_text()) for n in campaign.runs() if is_run(runs / n)
    }
    judged = {n: r for n, r in records.items() if (runs / n / "verdict.json").exists()}
    assert sorted(r["hypothesis"] for r in judged.values()) == list(range(1, count + 1))
    assert max(Counter(r["session"] for r in judged.values()).values()) == 1
    assert set(judged) <= set(listed)
    assert all((runs / n / "manifest.json").exists() for n in records)
    assert not list(runs.glob("*/late.json"))


def is_run(folder: Path) -> bool:
    """Whether it is a run's folder; one that was killed before anything was launched is none."""
    return folder.name[0].isdigit() and (folder / "run.json").exists()


def check_nothing_left(campaign: Campaign, mark: str) -> None:
    deadline = time.monotonic() + 3
    while (left := crowd.processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
    assert left_over(campaign.folder) == []
    assert git(campaign.folder, "for-each-ref", "refs/gpudebug") == ""
    runs = campaign.folder / "runs"
    assert not list((runs / ".leases").glob("*/*.json"))
    private = campaign.private
    assert not any(locks.claimed(p) for p in (private / "claim", private / "detached" / "lock"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("agents", "count", "kills"),
    [
        (3, 4, 3),
        (16, 60, 100),
    ],
)
@pytest.mark.heavy
def test_a_crowd_of_agents_under_kills(tmp_path: Path, agents: int, count: int, kills: int) -> None:
    campaign = make(tmp_path, count)
    before = own(campaign)
    team = Crowd(campaign, agents)
    watcher = crowd.Watcher(team.mark, kills, (0.2, 1.2))
    watcher.start()
    try:
        team.wait(600)
    finally:
        watcher.end()
        team.end()
    assert watcher.left == 0, f"the campaign was over before the kills were: {watcher.killed}"
    assert watcher.at_once == []
    check(campaign, count)
    check_nothing_left(campaign, team.mark)
    assert own(campaign) == before
    campaign.json("verify")


def own(campaign: Campaign) -> dict[str, object]:
    """All that is the user's, but for what gpudebug is there to write."""
    return {k: v for k, v in users(campaign.folder).items() if not k.startswith(("progress/", "hypotheses/"))}
