"""Who else computes on a GPU: the processes that the driver lists, without the run's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import pynvml as nvml

from gpudebug.edges.devices.proctree import ProcessTree
from gpudebug.edges.proc import read_process

# The PID namespace that the kernel starts in (PROC_PID_INIT_INO, include/linux/proc_ns.h).
_FIRST_NAMESPACE = "pid:[4026531836]"
_NODE = re.compile(r"/dev/nvidia\d+")


def computing(handle: Any) -> set[int]:
    """PIDs that the driver lists as computing on the device. Raises `NVMLError` if it does not tell."""
    try:
        listed = nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    except nvml.NVMLError as error:
        if error.value != nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
        listed = nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)
    return {int(process.pid) for process in listed}


class Company:
    """Counts the processes on one device that are not in the run's tree."""

    def __init__(self, handle: Any, tree: ProcessTree) -> None:
        self._handle = handle
        self._tree = tree
        self._earlier: set[int] = set()
        self._started = False

    def start(self) -> None:
        """The job is launched: who is listed from now on may be the run's own."""
        self._started = True

    def count(self) -> int | None:
        """How many are foreign for certain; None if nobody can tell whether any is. Raises `NVMLError`.

        In a container the driver may list PIDs of the host, which name no process here: those that were there
        before the launch are foreign; of later ones as many are as the run has no process for that holds a
        GPU open.
        """
        listed = computing(self._handle)
        if not self._started:
            self._earlier |= listed
            return len(listed)
        others = listed - self._own(self._tree.members)
        if others:
            others -= self._own(self._tree.scan())
        nameless = {pid for pid in others - self._earlier if read_process(pid) is None}
        if others and self._tree.unknown:
            # Whoever was there before the launch is none of the run's.
            return len(others & self._earlier) or None
        strangers = len(others) - len(nameless)
        if nameless and _contained():
            strangers += max(0, len(nameless) - sum(map(_holds_gpu, self._tree.members)))
        return strangers

    def _own(self, members: Iterable[int]) -> set[int]:
        return {self._tree.root, *self._tree.exclude, *members}


def _contained() -> bool:
    return os.readlink("/proc/self/ns/pid") != _FIRST_NAMESPACE


def _holds_gpu(pid: int) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        return any(_NODE.fullmatch(os.readlink(f"{folder}/{fd}")) for fd in os.listdir(folder))
    except OSError:
        return False
