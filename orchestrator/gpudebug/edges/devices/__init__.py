"""What a sample is read from: NVIDIA's driver, the CPU stand-in, or a recorded run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core.errors import DeviceError
from gpudebug.core.samples.row import SamplerDevice
from gpudebug.core.text.values import DEVICES, DeviceChoice, QuantityError, parse_device
from gpudebug.core.words import CPU, GPU, RECORDING, device_kind
from gpudebug.edges.devices.proctree import ProcessTree

__all__ = ["ProcessTree", "Resolved", "SamplerDevice", "open_device", "resolve"]


class Resolved(NamedTuple):
    """The device of a run, found before any device time is spent.

    `spec` is JSON for the sampler's order, and of the CPU says in `own` how many cores the setting gives it
    for itself, 0 if it shares them; `devices` have the keys of `core.records.DeviceInfo` and
    `missing` (a column's reason); `notes` are remarks for the user.
    """

    spec: dict[str, Any]
    devices: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()


def open_device(spec: dict[str, Any], tree: ProcessTree) -> SamplerDevice:
    """Return the device of a specification that `resolve` made; `tree` is the run's process tree.

    Called in the sampler's process: only the module that is asked for is loaded. A replay's
    specification has the `path` of one recorded run in place of `folder`; the CPU's may have, as `probe`,
    the path of what the training processes report. Raises `DeviceError`.
    """
    can = device_kind(spec["kind"])
    if can.is_gpu:
        from gpudebug.edges.devices.nvml import NvmlDevice

        return NvmlDevice(list(spec["uuids"]), tree)
    if can.shares_cores:
        from gpudebug.edges.devices.cpu import CpuDevice

        return CpuDevice(float(spec["cores"]), tree, spec.get("probe"))
    if can.is_recording:
        from gpudebug.edges.devices.replay import ReplayDevice

        return ReplayDevice(str(spec["path"]), float(spec.get("speed", 1.0)))
    raise DeviceError(f"no such kind of device: {can.name}", next=f"use {DEVICES}")


def resolve(setting: str, env: Mapping[str, str], root: Path | None = None) -> Resolved:
    """Return the device that `setting` (`device:` of gpudebug.yaml) means for a program started in `env`.

    `auto` takes the NVIDIA GPUs that the program would see, and the CPU if there is no driver, no
    GPU, or CUDA_VISIBLE_DEVICES hides all of them. A driver that is there but does not answer is an
    error, never a silent change of device. `root` is what a relative replay folder is relative to.
    Raises `DeviceError`.
    """
    try:
        choice = parse_device(setting)
    except QuantityError:
        raise DeviceError(f"no such device: {setting}", next=f"use {DEVICES}") from None
    can = device_kind(choice.kind)
    if can.shares_cores:
        return _cpu(choice.cores)
    if can.is_recording:
        return _replay(choice, root or Path())
    return _nvml(env) if can.is_gpu else _auto(env)


def _auto(env: Mapping[str, str]) -> Resolved:
    from gpudebug.edges.devices.probe import probe_nvml
    from gpudebug.edges.devices.visible import VARIABLE, hides_all

    if hides_all(env):
        return _stand_in(f"{VARIABLE}={env[VARIABLE]} hides every GPU")
    probe = probe_nvml(env)
    if probe.absent:
        return _stand_in("there is no NVIDIA driver here")
    if probe.works and not probe.devices:
        return _stand_in("the NVIDIA driver found no GPU")
    return _nvml(env, probe)


def _stand_in(why: str) -> Resolved:
    found = _cpu(None)
    return found._replace(notes=(f"{why}: the CPU stands in for a GPU", *found.notes))


def _nvml(env: Mapping[str, str], probe: Any = None) -> Resolved:
    from gpudebug.edges.devices.probe import gpu_error, probe_nvml
    from gpudebug.edges.devices.visible import VARIABLE, choose, hides_all

    if hides_all(env):
        raise DeviceError(
            f"{VARIABLE}={env[VARIABLE]} hides every GPU",
            next=f"unset {VARIABLE}, or measure the CPU with `device: cpu`",
        )
    probe = probe or probe_nvml(env)
    if not probe.works or not probe.devices:
        raise probe.as_error()
    visible = choose(probe.devices, env)
    for device in visible.devices:
        if "error" in device:
            raise gpu_error(device)
    notes = [
        f"GPU {device['index']} ({device['uuid']}) reports no utilisation: {device['missing']['gpu_util']}"
        for device in visible.devices
        if "gpu_util" in device["missing"]
    ]
    spec = {"kind": GPU.name, "uuids": [device["uuid"] for device in visible.devices]}
    return Resolved(spec, visible.devices, (*visible.notes, *notes))


def _cpu(asked: float | None) -> Resolved:
    from gpudebug.edges.devices.cpu import available_cores, describe

    available = available_cores()
    cores = available if asked is None else asked
    notes: tuple[str, ...] = ()
    if cores > available:
        notes = (f"100 % means {cores:g} cores, but this process may use {available:g}",)
    own = 0 if asked is None else math.ceil(cores)
    return Resolved({"kind": CPU.name, "cores": cores, "own": own}, (describe(cores),), notes)


def _replay(choice: DeviceChoice, root: Path) -> Resolved:
    from gpudebug.edges.devices.replay import describe, recorded_runs

    folder = (root / choice.path).resolve()
    runs = recorded_runs(folder)
    if not runs:
        raise DeviceError("no recorded runs here", file=str(folder), next="name a folder of run folders")
    spec = {"kind": RECORDING.name, "folder": str(folder), "speed": choice.speed}
    return Resolved(spec, tuple(describe(runs[0])))
