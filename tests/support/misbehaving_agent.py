"""The scripted agent with everything that agents should not do: a verb for each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import scripted_agent
from scripted_agent import GPUDEBUG, gpudebug


def swap(name: str, old: str, new: str) -> None:
    """Edit a file, which must hold the text."""
    path = Path(name)
    text = path.read_text()
    assert text.count(old) == 1, f"{name} holds it {text.count(old)} times: {old}"
    path.write_text(text.replace(old, new))


def implement(name: str, old: str, new: str) -> None:
    """The same in the worktree that `next` names."""
    swap(str(Path(gpudebug("next")["worktree"]) / name), old, new)


def forge(progress: str, number: int, result: str) -> None:
    """Write a verdict by hand in place of the status of one's own hypothesis."""
    path = Path(progress)
    before, heading, rest = path.read_text().partition(f"### Hypothesis {number}:")
    lines = rest.split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith("- **Status**:"))
    lines[place : place + 1] = result.split("\n")
    path.write_text(before + heading + "\n".join(lines))


def die_in_the_middle() -> None:
    """Be killed while a run of one's own is under way in the foreground."""
    subprocess.Popen([*GPUDEBUG, "next", "--json"], stdout=subprocess.DEVNULL)
    _until_it_trains()
    os.kill(os.getpid(), signal.SIGKILL)


def lose_patience() -> None:
    """A tool that kills what takes long, and an agent that calls the same again."""
    caller = subprocess.Popen([*GPUDEBUG, "next", "--detach", "--json"], stdout=subprocess.DEVNULL)
    _until_it_trains()
    caller.kill()
    caller.wait()
    assert gpudebug("next")["action"] == "running"
    assert gpudebug("next", "--detach")["action"] == "running"
    while gpudebug("wait", "--for", "2s")["action"] == "running":
        pass


def _until_it_trains() -> None:
    while not _trains():
        time.sleep(0.1)


def _trains() -> bool:
    """Whether the newest run is under way and has begun to train."""
    logs = sorted(Path("runs").glob("[0-9]*/train.log"))
    return (
        bool(logs) and not (logs[-1].parent / "manifest.json").exists() and b"step=" in logs[-1].read_bytes()
    )


scripted_agent.STEPS |= {
    "swap": swap,
    "implement": implement,
    "forge": forge,
    "die_in_the_middle": die_in_the_middle,
    "lose_patience": lose_patience,
}

if __name__ == "__main__":
    sys.exit(scripted_agent.main())
