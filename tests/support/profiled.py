"""Programs that time sections of their own, in a Python of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpudebug

SHIM = Path(gpudebug.__file__).resolve().parent / "training" / "shim"
REPORT = "\nimport json as _json\nprint(_json.dumps(get_profiler().report()))\n"


@dataclass(frozen=True)
class Done:
    """How a program ended and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What the last line of its output says."""
        return json.loads(self.out.splitlines()[-1])


def run(
    code: str,
    folder: Path,
    python: str = sys.executable,
    env: Mapping[str, str] | None = None,
    status: int = 0,
) -> Done:
    """Run a program in `folder`, with the shim on its path; an unexpected exit status fails the test."""
    folder.mkdir(exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUDEBUG_PROFILE", "GPUDEBUG_R"))}
    program = folder / "program.py"
    program.write_text("from gpudebug import *\n" + textwrap.dedent(code))
    done = subprocess.run(
        [python, str(program)],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(SHIM), **(env or {})},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def report_of(
    code: str, folder: Path, python: str = sys.executable, env: Mapping[str, str] | None = None
) -> Any:
    """The report that the program has at its end."""
    return run(textwrap.dedent(code) + REPORT, folder, python, env).json


def by_name(report: Any) -> dict[str, dict[str, Any]]:
    """The report's sections."""
    return {section["name"]: section for section in report["sections"]}


def places(report: Any) -> dict[str, dict[str, Any]]:
    """The report's tree, each place under its path: `a/b`."""
    found = {}
    waiting = [(place, place["name"]) for place in report["tree"]]
    while waiting:
        place, path = waiting.pop()
        assert path not in found, f"{path} is there twice"
        found[path] = place
        waiting += [(child, f"{path}/{child['name']}") for child in place["children"]]
    return found
