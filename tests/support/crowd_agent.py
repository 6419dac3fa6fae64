"""One of many agents on one campaign: a session a hypothesis, until the campaign stops. A real process.

Every command of it may be killed at any moment; then it does what an agent does: the same again. Each line
of its journal is one command: session, words, exit status, and what the answer says.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, TextIO

GPUDEBUG = (sys.executable, "-m", "gpudebug")
BUSY, STOPPED, SESSION_DONE = 6, 4, 7
# Bad usage, and a defect.
FATAL = (2, 3)
MOST = 200


class Agent:
    def __init__(self, name: str, journal: TextIO, pause: float) -> None:
        self.name = name
        self.journal = journal
        self.pause = pause
        self.rng = random.Random(name)
        self.session = ""

    def work(self) -> None:
        for number in count(1):
            self.session = f"{self.name}-{number}"
            for status in self.steps():
                if status == STOPPED:
                    return
                if status == SESSION_DONE:
                    break

    def steps(self) -> Iterator[int]:
        """One session: what its commands ended with."""
        for _ in range(MOST):
            status, answer = self.gpudebug("next", *self.rng.choice(((), ("--detach",))))
            yield status
            if answer.get("action") == "implement":
                self.write(Path(answer["worktree"]) / "train.py", answer["hypothesis"])
            elif answer.get("action") == "running" or status == BUSY:
                yield self.gpudebug("wait", "--for", "5s")[0]
                # All who were busy wake at the same moment, and one of them can begin.
                time.sleep(self.rng.uniform(0, self.pause))
            elif answer.get("action") == "propose":
                time.sleep(self.rng.uniform(1, 1 + self.pause / 2))
        raise AssertionError(f"session {self.session} does not come to its end")

    def write(self, file: Path, hypothesis: int) -> None:
        text = f"CHANGE = {hypothesis}\n"
        if text not in file.read_text():
            with file.open("a") as f:
                f.write(text)

    def gpudebug(self, *words: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [*GPUDEBUG, *words, "--json"],
            env={**os.environ, "GPUDEBUG_SESSION": self.session},
            capture_output=True,
            check=False,
        )
        answer = json.loads(done.stdout) if done.stdout else {}
        kept = {k: answer.get(k) for k in ("action", "hypothesis", "verdict", "why", "error")}
        line = {
            "at": time.time(),
            "session": self.session,
            "words": words,
            "status": done.returncode,
            **kept,
            "stderr": done.stderr.decode(errors="replace")[-2000:],
        }
        self.journal.write(json.dumps(line) + "\n")
        self.journal.flush()
        assert done.returncode not in FATAL and b"Traceback" not in done.stderr, line
        return done.returncode, answer


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        Agent(sys.argv[1], file, float(sys.argv[3])).work()
