"""Trying the profiling library in a Python of its own, in a folder that is gone afterwards."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import temporary

_TRAINING = Path(__file__).resolve().parents[2] / "training"
_SHIM = _TRAINING / "shim"
_PROGRAM = _TRAINING / "profiling" / "selftest.py"
_PATIENCE_S = 60.0


def try_profiling(python: str) -> dict[str, Any]:
    """Run the library's self-test: what it printed, and under `report` what it wrote.

    `version` of the Python, `package` the file it imported, nanoseconds `pair_ns`, `section_ns`, `bound_ns`,
    `section_off_ns`, `bound_off_ns`. GpudebugError if it fails, hangs, or wrote no report.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUDEBUG_")}
    env = {**env, "PYTHONPATH": str(_SHIM), "GPUDEBUG_PROFILE": "at-exit.json"}
    with temporary.workplace("gpudebug-profiling-") as made:
        folder = made.path
        done = _run(python, folder, env)
        try:
            told = json.loads(done.stdout.splitlines()[-1])
            at_exit = json.loads((folder / "at-exit.json").read_text("utf-8"))
            report = json.loads((folder / "report.json").read_text("utf-8"))
        except (OSError, ValueError, IndexError) as e:
            raise _failed(python, f"no readable report: {e}") from e
    return {**told, "report": report, "at_exit": at_exit}


def _run(python: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            [python, str(_PROGRAM)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise _failed(python, f"not done after {_PATIENCE_S:.0f} s") from e
    except OSError as e:
        raise _failed(python, e.strerror or str(e)) from e
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise _failed(python, lines[-1])
    return done


def _failed(python: str, why: str) -> GpudebugError:
    return GpudebugError(
        f"the profiling library does not work in {python}: {why}",
        next=f"see the whole error with: PYTHONPATH={_SHIM} {python} {_PROGRAM}",
    )
