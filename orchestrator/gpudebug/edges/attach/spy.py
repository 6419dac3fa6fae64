"""py-spy, which reads the Python stacks of a process from outside: found, tried once, and set to record.

It reads memory (process_vm_readv, else /proc/PID/mem) and with `--nonblocking` never stops the process that
it reads. Written for py-spy 0.4; what it prints of an error is read for its first line only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

NAME = "py-spy"
INSTALL = "pip install 'gpudebug[attach]'"
TRY_S = 20.0
_REFUSED = ("permission denied", "operation not permitted", "os error 1)", "os error 13)")
_GONE = ("no such process", "no such file or directory", "os error 3)")
_UNKNOWN = ("python version", "python interpreter", "unsupported version", "failed to find a python")
_LONGEST = 200


class FirstLook(NamedTuple):
    """What py-spy said of one process. `result` is `seen`, `refused`, `unknown` (an interpreter that it does
    not know, or no Python), `gone`, `failed` or `missing` (it is not installed); `said` is its own line."""

    result: str
    said: str = ""
    dump: tuple[dict[str, Any], ...] = ()


def find() -> str | None:
    """Return the py-spy of this Python's environment, else of the PATH; None if there is none."""
    beside = Path(sysconfig.get_path("scripts")) / NAME
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(NAME)


def look_once(program: str | None, pid: int) -> FirstLook:
    """Read the stacks of a process once, about 20 ms of CPU time."""
    if program is None:
        return FirstLook("missing")
    argv = [program, "dump", "--json", "--nonblocking", "--pid", str(pid)]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRY_S, check=False, env=quiet()
        )
    except subprocess.TimeoutExpired:
        return FirstLook("failed", f"it did not answer within {TRY_S:g} s")
    except OSError as error:
        return FirstLook("failed", f"{program}: {error.strerror}")
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode == 0:
        try:
            return FirstLook("seen", "", tuple(json.loads(done.stdout)))
        except (ValueError, TypeError):
            return FirstLook("failed", "it answered what is no JSON")
    return judged(done.returncode, said)


def judged(status: int, said: str) -> FirstLook:
    """Return what an exit status other than 0 means, by what was printed with it."""
    if status < 0:
        return FirstLook("refused", f"it was killed by signal {-status}")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = (lines[0] if lines else f"exit status {status}").removeprefix("Error: ")[:_LONGEST]
    text = said.lower()
    for result, words in (("refused", _REFUSED), ("gone", _GONE), ("unknown", _UNKNOWN)):
        if any(word in text for word in words):
            return FirstLook(result, first)
    return FirstLook("failed", first)


def recording(program: str, pid: int, output: str, *, rate: int, seconds: int, idle: bool) -> list[str]:
    """Return the argument list that records the stacks of a process: `rate` looks a second on average.

    With `idle` every look counts, without it those at which a thread ran.
    """
    return [
        *(program, "record", "--nonblocking", "--threads", "--full-filenames", "--format", "raw"),
        *(("--idle",) if idle else ()),
        *("--rate", str(rate), "--duration", str(seconds), "--output", output, "--pid", str(pid)),
    ]


def quiet() -> dict[str, str]:
    """Return the variables that py-spy is started with: no backtraces, no language but English."""
    return {**os.environ, "RUST_BACKTRACE": "0", "RUST_LIB_BACKTRACE": "0", "LC_ALL": "C"}
