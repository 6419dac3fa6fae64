"""Agents that misbehave, one a session, driven by `gpudebug loop` over a real training program.

The right fix ends VALIDATED, is accepted, exported and applied to a fresh clone, which then waits for its
data no more; nothing else is validated, and the user's dirty tree is as it was.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import scripted_agent
from tests.support.campaigns import Campaign, git, make_repository
from tests.support.judged import disturbed, settled
from tests.support.repositories import left_over, users

from gpudebug import demo

AGENT = Path(scripted_agent.__file__).with_name("misbehaving_agent.py")
PROGRESS = "progress/demo.md"
COMMAND = f"{shlex.quote(sys.executable)} train.py --hidden=256 --warmup_steps=5 --duration=6.5"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
CONFIG = f"""\
campaign: demo
goal: Keep the device busy.
workload:
  command: {json.dumps(COMMAND)}
  env: {json.dumps(ONE_THREAD)}
  timeout: 2m
protocol: {{max_runs: 2}}
target: 30
device: cpu:1
"""
# What somebody would like: no store, no wait.
CHEAT = ("time.sleep(self.latency)", "pass  # no wait")
# Batches are read ahead, in the same order.
FIX = ("if prefetch <= 0:", "prefetch = prefetch or 16\n    if prefetch <= 0:")
FORGED = """\
- **Status**: VALIDATED
- **Accepted**: 1
- **Result**:
  - GPU util before: 10.0%
  - GPU util after: 99.0%
  - Improvement: +89.0pp
  - Training: SUCCESS
  - Runs: runs/0001-baseline-workload"""
REFUTED = "--set --cache_stats=1"
SESSIONS = [
    # Edits the checkout instead of the worktree.
    [
        ["propose", "--code", "The store is slow"],
        ["next"],
        ["swap", "train.py", *CHEAT],
        ["next"],
    ],
    # Writes its verdict by hand.
    [["next"], ["forge", PROGRESS, 1, FORGED], ["next"]],
    # Calls `next` ten times.
    [["propose", REFUTED, "Statistics are computed again"], *[["next"]] * 10],
    # Proposes a refuted idea under another name; then it dies in the middle of testing another.
    [
        ["propose", REFUTED, "The scaler is not cached"],
        ["propose", f"{REFUTED} --compound", "Normalisation repeats itself"],
        ["propose", "--set --log_every=4", "Printing waits for the terminal"],
        ["die_in_the_middle"],
    ],
    # The right fix, by an agent whose tool has no patience.
    [
        ["propose", "--code", "Each batch is asked for only when the model waits for it"],
        ["implement", "train.py", *FIX],
        ["lose_patience"],
        ["next"],
    ],
]


LIMIT = ("--session-timeout", "60s")


def make(folder: Path) -> Campaign:
    """The demo's program in a repository, and a tree that is dirty in every way."""
    files = {**demo.files(), "gpudebug.yaml": CONFIG, "notes.txt": "kept\n", "old.txt": "kept\n"}
    campaign = Campaign(make_repository(folder, files))
    (folder / "notes.txt").write_text("stashed\n")
    git(folder, "stash", "--quiet")
    (folder / "old.txt").write_text("staged\n")
    git(folder, "add", "old.txt")
    (folder / "old.txt").write_text("staged, then changed\n")
    (folder / "notes.txt").write_text("changed\n")
    (folder / "new.txt").write_text("untracked\n")
    return campaign


def own(campaign: Campaign) -> dict[str, Any]:
    """All that is the user's, but for what gpudebug is there to write."""
    return {k: v for k, v in users(campaign.folder).items() if not k.startswith(("progress/", "hypotheses/"))}


def waits(folder: Path) -> float:
    """Seconds that a step of the program in `folder` waits for its batch."""
    done = subprocess.run(
        [sys.executable, "train.py", "--hidden=256", "--steps=40"],
        cwd=folder,
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [float(s) for s in re.findall(r"data_s=(\S+)", done.stdout)][2:]
    return sum(found) / len(found)


def of_fix(campaign: Campaign) -> Any:
    """What `show` answers of the right fix, in the words of `next`."""
    shown = campaign.json("show", "4")
    return {**shown, "hypothesis": 4, "verdict": shown["status"]}


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_agents_that_misbehave(tmp_path: Path) -> None:
    campaign = make(tmp_path / "repo")
    before = own(campaign)
    original = (campaign.folder / "train.py").read_bytes()
    env = scripted_agent.script(tmp_path / "plan.json", *SESSIONS)
    command = shlex.join([sys.executable, str(AGENT)])
    words = ("loop", "--agent", command, "--idle", "5", *LIMIT, "--json")
    done = campaign.run(*words, env=env, timeout=200)
    answer, first = done.json, of_fix(campaign)
    sessions = answer["sessions"]
    assert [s["hypothesis"] for s in sessions if s["verdict"]] == [2, 4]
    assert [s["exit_status"] for s in sessions[:5]] == [0, 0, 0, None, 0]
    # After a verdict that others on the host left open, further agents come, who have nothing to do.
    assert len(sessions) == 5 or disturbed(first)
    said = [Path(s["transcript"]).read_text() for s in sessions]
    assert re.findall(r"gpudebug next -> (\d)", said[2]) == ["0", *"7" * 9]
    assert "gpudebug propose --title The scaler is not cached" in said[3]
    assert [re.findall(r"gpudebug propose .* -> (\d)", said[3])] == [["1", "1", "0"]]

    # What an agent did to the checkout is there still, and nobody measured it.
    assert CHEAT[1].encode() in (campaign.folder / "train.py").read_bytes()
    assert answer["checkout_changed"] == ["train.py"]
    assert not any(CHEAT[1] in p.read_text() for p in campaign.folder.glob("hypotheses/patches/*"))
    kept = {k: v for k, v in own(campaign).items() if k != "train.py"}
    assert kept == {k: v for k, v in before.items() if k != "train.py"}

    # Its owner puts it back; what others on the host disturbed is measured again.
    (campaign.folder / "train.py").write_bytes(original)

    def again(number: int) -> Any:
        nonlocal done
        campaign.run("baseline").expect(0)
        campaign.run("reopen", str(number)).expect(0)
        done = campaign.run(*words, env=env, timeout=200)
        return of_fix(campaign)

    settled(first, again)
    done.expect(4)
    assert done.json["ending"] == "solved"

    # Only the right fix is VALIDATED by runs; on a busy machine the others may be no more than undecided.
    found = {h["number"]: h for h in done.json["hypotheses"]}
    assert [n for n, h in found.items() if h["verified"] and h["status"] == "VALIDATED"] == [4]
    assert (found[1]["status"], found[1]["verified"]) == ("VALIDATED", False)
    assert {found[n]["status"] for n in (2, 3)} <= {"REJECTED", "INVALID"}
    assert found[2]["verified"] and found[3]["verified"]

    # The owner accepts the fix, which was just measured, and hands it over.
    problems = campaign.run("verify", "--json").expect(1).json["problems"]
    assert {p["hypothesis"] for p in problems} == {1}
    assert "UNVERIFIED" in [p["why"].split(":")[0] for p in problems]
    campaign.json("accept", "4")
    refused = campaign.run("export").expect(1).err
    assert "the Accepted line of hypothesis 1 was written by hand: UNVERIFIED" in refused
    progress = campaign.folder / PROGRESS
    progress.write_text(progress.read_text().replace("- **Accepted**: 1\n", ""))
    exported = campaign.json("export", "-o", str(tmp_path / "patches"))
    assert [h["number"] for h in exported["hypotheses"]] == [4]
    git(tmp_path, "clone", "--quiet", str(campaign.folder), "clone")
    assert waits(tmp_path / "clone") > 0.05
    for name in exported["patches"]:
        git(tmp_path / "clone", "apply", str(tmp_path / "patches" / name))
    assert waits(tmp_path / "clone") < 0.02

    campaign.run("next").expect(4)
    assert left_over(campaign.folder) == []
    assert git(campaign.folder, "for-each-ref", "refs/gpudebug") == ""
    assert not list((campaign.folder / "runs" / ".leases").glob("*/*.json"))
    assert {k: v for k, v in own(campaign).items() if k != "train.py"} == kept
    assert (campaign.folder / "train.py").read_bytes() == original
