"""One command of a scheduler, run to its end: found on PATH, in plain English, bounded in time."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

LONGEST_S = 60.0
"""A command that a controller leaves waiting is ended: Slurm's own give up after some 20 s by default."""
# A user's own defaults would change what is printed: formats, filters, sorting.
_DEFAULTS = ("SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_")
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """`status` is None if the command is not on PATH or did not end in time; `error` says so then."""

    status: int | None
    out: str = ""
    error: str = ""

    @property
    def missing(self) -> bool:
        return self.status is None and not self.late

    @property
    def late(self) -> bool:
        return self.status is None and self.error.startswith("no answer")

    @property
    def why(self) -> str:
        """The last line that it complained in, without the command's name."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        return lines[-1] if lines else f"status {self.status}"


def available(name: str) -> str | None:
    """Return the path of a scheduler's command; None if there is none."""
    return shutil.which(name)


def ask(
    name: str,
    *arguments: str,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    within_s: float | None = None,
) -> CommandAnswer:
    """Run the command `name` with `arguments`, for `LONGEST_S` at most by default. Raises nothing."""
    within_s = LONGEST_S if within_s is None else within_s
    program = available(name)
    if program is None:
        return CommandAnswer(None, error=f"{name} is not on PATH")
    surrounding = os.environ if env is None else env
    plain = {k: v for k, v in surrounding.items() if not k.startswith(_DEFAULTS)}
    try:
        done = subprocess.run(
            [program, *arguments],
            input=stdin.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env={**plain, "LC_ALL": "C"},
            cwd=cwd,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return CommandAnswer(None, error=f"no answer of {name} within {within_s:g} s")
    except OSError as e:
        return CommandAnswer(126, error=f"{name}: {e.strerror}")
    out, error = (data[:_MOST_BYTES].decode("utf-8", "replace") for data in (done.stdout, done.stderr))
    return CommandAnswer(done.returncode, out, error)
