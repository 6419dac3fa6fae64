"""Keeping GPUs busy for a known time, through CUDA's driver API: without PyTorch, in a process of its own.

A driver that hangs or crashes costs the process that `command` starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.errors import DeviceError
from gpudebug.core.hardware.plan import Phase, written
from gpudebug.core.text.shell_words import isolated_argv

# CUDA starts each GPU of the host: some seconds where there are eight.
_PATIENCE_S = 60.0
_CHECK = "check `nvidia-smi`, look for Xid in `dmesg`, and attach this line to a report"


class CudaSeen(NamedTuple):
    """What CUDA sees: its version (12040 is 12.4) and the GPUs' UUIDs, 32 digits each, in its own order."""

    version: int
    uuids: tuple[str, ...]


class NoGpuError(DeviceError):
    """There is no CUDA here to speak of: its library is missing, or it finds no GPU."""

    exit_code = 2


def command(*arguments: str) -> tuple[str, ...]:
    """Return the argument list that runs `program.main`, whatever modules the working folder holds."""
    folder = str(Path(__file__).resolve().parents[3])
    statement = "from gpudebug.edges.cudaload import program; sys.exit(program.main(sys.argv[1:]))"
    return (*isolated_argv(sys.executable, [folder], statement), *arguments)


def load_command(phases: Sequence[Phase]) -> tuple[str, ...]:
    """Return the argument list of the process that takes GPUs through `phases`."""
    return command("load", written(phases))


def seen(env: Mapping[str, str], patience: float = _PATIENCE_S) -> CudaSeen:
    """Ask CUDA, as a program started in `env` would. NoGpuError without it, DeviceError if it is broken."""
    child = subprocess.Popen(
        command("describe"),
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, _ = child.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        child.kill()
        # A call that is stuck in the kernel outlives even this.
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=1)
        raise DeviceError(f"CUDA did not start within {patience:g} s", next=_CHECK) from None
    try:
        answer = json.loads(out)
    except ValueError:
        raise DeviceError(f"starting CUDA crashed (exit status {child.returncode})", next=_CHECK) from None
    if answer["error"] is None:
        return CudaSeen(answer["cuda"], tuple(answer["uuids"]))
    if answer["absent"]:
        raise NoGpuError(
            answer["error"], next="install the NVIDIA driver, or in a container start it with `--gpus all`"
        )
    raise DeviceError(f"CUDA does not start: {answer['error']}", next=_CHECK)
