"""Real jobs with several ranks: the programs of the zoo, looked at by `gpudebug why`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.support import zoo
from tests.support.campaigns import environment


def names() -> list[str]:
    """The programs of the zoo that train with several ranks."""
    return [name for name in zoo.names() if zoo.truth(name).shows == "ranks"]


def look(folder: Path, name: str, steps: int) -> Any:
    """What `why --json` says of so many steps of a program, in a folder that has nothing else in it."""
    for file, text in zoo.files(name).items():
        if file.endswith(".py"):
            (folder / file).write_text(text)
    workload = yaml.safe_load(zoo.files(name)["gpudebug.yaml"])["workload"]
    command = [*shlex.split(workload["command"].replace("\\\n", " ")), f"--steps={steps}"]
    why = [
        sys.executable,
        "-m",
        "gpudebug",
        "why",
        "--to-the-end",
        "--device=cpu:1",
        "--json",
        "--",
        *command,
    ]
    done = subprocess.run(
        why,
        cwd=folder,
        env=environment(workload["env"]),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["ranks"]


def named(ranks: Any) -> tuple[int | None, str | None]:
    """The rank that holds the others up, and why; a late start if none does."""
    if ranks["straggler"]:
        return ranks["straggler"]["rank"], ranks["straggler"]["cause"]
    return (ranks["late"]["rank"], "late-start") if ranks["late"] else (None, None)
