"""An agent for tests: a real process that reads its brief and does what the next turn of a plan says.

The plan is a JSON file that SCRIPT names: a list of turns, each a list of steps `[verb, words…]`. Which turn
is next stands in a file beside it. After the last one the agent does nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

GPUDEBUG = (sys.executable, "-m", "gpudebug")


def main() -> None:
    brief = sys.stdin.read()
    print(f"brief of {len(brief)} characters for {os.environ['GPUDEBUG_SESSION']}", flush=True)
    for verb, *words in _turn(Path(os.environ["SCRIPT"])):
        STEPS[verb](*words)


def _turn(plan: Path) -> list[list[Any]]:
    counter = plan.with_suffix(".turn")
    number = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(number + 1))
    turns = json.loads(plan.read_text())
    return turns[number] if number < len(turns) else []


def gpudebug(*words: str) -> dict[str, Any]:
    """One command; its JSON. Its exit status is printed, and ends nothing."""
    done = subprocess.run([*GPUDEBUG, *words, "--json"], stdout=subprocess.PIPE, check=False)
    print("gpudebug", *words, "->", done.returncode, flush=True)
    return dict(json.loads(done.stdout))


def propose(change: str, title: str = "The loader waits") -> None:
    gpudebug("propose", "--title", title, "--method", "Try it.", *shlex.split(change))


def write(name: str, text: str) -> None:
    """Append to a file of the worktree that `next` names."""
    worktree = gpudebug("next")["worktree"]
    edit(str(Path(worktree) / name), text)


def edit(name: str, text: str) -> None:
    with open(name, "a", encoding="utf-8") as f:
        f.write(text)


def child(seconds: float) -> None:
    """Leave a process behind that outlives its parent's session and holds the output."""
    statement = f"import time; time.sleep({seconds})"
    subprocess.Popen([sys.executable, "-c", statement], start_new_session=True)


def kill_loop() -> None:
    """The loop that started this agent, as the kernel would; then on as if nothing were."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getppid(), signal.SIGKILL)


STEPS: dict[str, Callable[..., object]] = {
    "propose": propose,
    "none": lambda why: gpudebug("propose", "--none", why),
    "next": lambda *words: gpudebug("next", *words),
    "write": write,
    "edit": edit,
    "say": lambda text: print(text, flush=True),
    "child": child,
    "hang": time.sleep,
    "kill_loop": kill_loop,
    "exit": sys.exit,
}


def command() -> str:
    return shlex.join([sys.executable, __file__])


def script(path: Path, *turns: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Write a plan; the variables that an agent needs to find it."""
    path.write_text(json.dumps(turns))
    return {"SCRIPT": str(path)}


if __name__ == "__main__":
    main()
