"""Which processes are meant by a number: the job that a process belongs to, if the caller may look at it."""

from __future__ import annotations

import os
import pwd
from typing import NamedTuple

from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.edges.attach import processes
from gpudebug.edges.attach.processes import ForeignProcess

RANKS = ("WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_SERVING = ("multiprocessing.spawn", "multiprocessing.forkserver", "joblib.externals.loky")
_LAUNCHERS = ("orted", "prterun", "mpirun", "mpiexec", "hydra_pmi_proxy")
_HIGHEST = 64
# Of the kernel; its threads are children of this process.
_KTHREADD = 2


class AttachError(GpudebugError):
    """A process that cannot be looked at: gone, ended, another user's, or none that trains."""

    code = "attach"


class TargetJob(NamedTuple):
    """What is looked at: `root` and all below it. `asked` is the process that was named, `python` are those
    of the family that run Python, None of the ones where that cannot be seen."""

    root: ForeignProcess
    asked: ForeignProcess
    family: dict[int, ForeignProcess]
    python: dict[int, bool | None]


def target(pid: int) -> TargetJob:
    """The job of a process that may be looked at. AttachError, UsageError with one line if there is none."""
    asked = _readable(pid)
    root = _job_root(asked)
    family = processes.family(root.pid)
    if not family:
        raise AttachError(f"process {pid} ended while it was looked at", next=FIND)
    python = {number: processes.is_python(process) for number, process in family.items()}
    return TargetJob(root, asked, family, python)


FIND = "find the training with `ps -eo pid,user,etime,args | grep python`, or nvidia-smi"


def _readable(pid: int) -> ForeignProcess:
    if pid < 1:
        raise UsageError(f"--pid {pid} is no process", next=FIND)
    process = processes.read(processes.leader_of(pid) or pid)
    if process is None:
        inside = processes.numbered_inside(pid)
        if len(inside) == 1:
            raise AttachError(
                f"there is no process {pid} here; in a container process {inside[0]} has that number",
                next=f"gpudebug why --pid {inside[0]}",
            )
        raise AttachError(f"there is no process {pid}: it has ended, or lies on another host", next=FIND)
    if not process.alive:
        raise AttachError(
            f"process {pid} has ended: only its entry is left (a zombie), until process {process.parent} "
            "collects it",
            next=FIND,
        )
    if _KTHREADD in (process.pid, process.parent) and not process.argv:
        raise AttachError(f"process {pid} is a thread of the kernel ({process.name})", next=FIND)
    mine = os.getpid()
    if process.pid == mine or process.pid in processes.ancestors(mine):
        raise AttachError(f"process {pid} ({process.shown}) is what started this gpudebug", next=FIND)
    if os.geteuid() not in (0, process.uid):
        raise AttachError(
            f"process {pid} belongs to {_user(process.uid)}: only that user and root may look at it",
            next=f"sudo gpudebug why --pid {pid}",
        )
    return process


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _job_root(process: ForeignProcess) -> ForeignProcess:
    """Return the process above all ranks and workers of its job: itself, unless it is one of them."""
    for _ in range(_HIGHEST):
        above = processes.read(process.parent) if process.parent > 1 else None
        if above is None or above.uid != process.uid or not _is_part(process, above):
            return process
        process = above
    return process


def _is_part(process: ForeignProcess, above: ForeignProcess) -> bool:
    """Tell whether a process serves the one above it, or was launched by it as one of several ranks."""
    if above.name in _LAUNCHERS:
        return True
    if processes.is_python(above) is not True:
        return False
    if process.loads or any(word.startswith(_SERVING) or _spawned(word) for word in process.argv):
        return True
    if process.argv and process.argv == above.argv:
        return True
    known = processes.variables(process.pid, RANKS) or {}
    theirs = processes.variables(above.pid, RANKS) or {}
    return any(known.get(name) not in (None, theirs.get(name)) for name in RANKS)


def _spawned(word: str) -> bool:
    return word == "--multiprocessing-fork" or any(f"from {module} import" in word for module in _SERVING)
