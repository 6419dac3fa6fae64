"""What a sample is read from: NVIDIA's driver, the CPU stand-in, or a recorded run."""

from __future__ import annotations

from typing import Any

from gpudebug.core.errors import DeviceError
from gpudebug.core.readings import Device
from gpudebug.edges.devices.proctree import ProcessTree

__all__ = ["Device", "ProcessTree", "open_device"]


def open_device(spec: dict[str, Any], tree: ProcessTree) -> Device:
    """The device of a specification that `resolve` made; `tree` is the run's process tree.

    Called in the sampler's process: only the module that is asked for is loaded. Raises `DeviceError`.
    """
    kind = spec["kind"]
    if kind == "cpu":
        from gpudebug.edges.devices.cpu import CpuDevice

        return CpuDevice(float(spec["cores"]), tree)
    raise DeviceError(f"no such kind of device: {kind}", next="use auto, nvml, cpu, cpu:N or replay:FOLDER")
