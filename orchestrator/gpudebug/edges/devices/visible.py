"""Which GPUs a run sees: CUDA_VISIBLE_DEVICES read as CUDA reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.errors import DeviceError

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"


class Visible(NamedTuple):
    """The devices of a run, as the probe described them, and remarks on how they were chosen."""

    devices: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()


def choose(gpus: Sequence[Mapping[str, Any]], env: Mapping[str, str]) -> Visible:
    """Return the devices that a CUDA program started in `env` would use; empty if it would see none.

    `gpus` is what the probe found, in NVML's order. As CUDA does, entries are read from the left up
    to the first that names no device, and an entry named twice leaves no device at all (CUDA programming
    guide, environment variables). Raises `DeviceError` where entries name nothing here.
    """
    text = env.get(VARIABLE)
    if text is None:
        found = _with_mig([dict(gpu) for gpu in gpus])
        return found._replace(notes=(*_all_note(found.devices), *found.notes))
    entries = [entry.strip() for entry in text.split(",")]
    chosen: list[dict[str, Any]] = []
    for entry in entries:
        device = _find(entry, gpus)
        if device is None:
            break
        if device in chosen:
            raise DeviceError(
                f"{VARIABLE}={text} names a device twice: CUDA then sees none",
                next=f"name it once in {VARIABLE}",
            )
        chosen.append(device)
    if not chosen and not hides_all(env):
        raise DeviceError(
            f"{VARIABLE}={text} names no GPU of this machine", next=f"set {VARIABLE} to one of {_offer(gpus)}"
        )
    found = _with_mig(chosen)
    return found._replace(notes=(*_order_note(entries, gpus, env), *found.notes))


def hides_all(env: Mapping[str, str]) -> bool:
    """The variable is set so that a program sees no GPU: empty, or a negative number first."""
    text = env.get(VARIABLE)
    return text is not None and (not text.strip() or text.strip().startswith("-"))


def _find(entry: str, gpus: Sequence[Mapping[str, Any]]) -> dict[str, object] | None:
    # CUDA reads the digits that an entry starts with.
    number = re.match(r"\+?(\d+)", entry)
    if number:
        index = int(number[1])
        return dict(gpus[index]) if index < len(gpus) else None
    if entry.startswith("MIG-"):
        return _find_mig(entry, gpus)
    if entry.startswith("GPU-"):
        return _only([dict(gpu) for gpu in gpus if gpu["uuid"].startswith(entry)])
    return None


def _find_mig(entry: str, gpus: Sequence[Mapping[str, Any]]) -> dict[str, object] | None:
    parts = [(gpu, mig) for gpu in gpus for mig in gpu.get("mig_devices", ())]
    # The name before driver 470: MIG-<GPU's UUID>/<GPU instance>/<compute instance>.
    old = re.fullmatch(r"MIG-(GPU-[^/]+)/(\d+)/(\d+)", entry)
    if old:
        wanted = (int(old[2]), int(old[3]))
        return _only(
            [
                dict(mig)
                for gpu, mig in parts
                if gpu["uuid"].startswith(old[1]) and (mig["gpu_instance"], mig["compute_instance"]) == wanted
            ]
        )
    return _only([dict(mig) for _, mig in parts if mig["uuid"].startswith(entry)])


def _only(found: list[dict[str, object]]) -> dict[str, object] | None:
    return found[0] if len(found) == 1 else None


def _with_mig(devices: list[dict[str, Any]]) -> Visible:
    """Return a whole GPU in MIG mode runs nothing itself: CUDA uses its first compute instance."""
    chosen = []
    notes = []
    for device in devices:
        parts = device.get("mig_devices") or ()
        if device.get("mig") and not parts:
            raise DeviceError(
                f"GPU {device['index']} is in MIG mode and has no compute instance",
                next=f"create one with `nvidia-smi mig -cgi ... -C`, or choose another GPU with {VARIABLE}",
            )
        chosen.append(dict(parts[0]) if parts else device)
        if parts:
            notes.append(
                f"GPU {device['index']} is in MIG mode: CUDA uses its first compute instance, "
                f"{parts[0]['uuid']}; another is chosen by {VARIABLE}=MIG-..."
            )
    return Visible(tuple(chosen), tuple(notes))


def _order_note(
    entries: list[str], gpus: Sequence[Mapping[str, Any]], env: Mapping[str, str]
) -> tuple[str, ...]:
    if env.get(ORDER) == "PCI_BUS_ID" or not any(entry[:1].isdigit() for entry in entries):
        return ()
    if len({gpu["name"] for gpu in gpus}) < 2:
        return ()
    return (
        f"the GPUs are of different models: CUDA counts them fastest first, {VARIABLE} is read here in the "
        f"order of the bus; set {ORDER}=PCI_BUS_ID so that both agree",
    )


def _all_note(devices: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    if len(devices) < 2:
        return ()
    return (
        f"{VARIABLE} is not set, so all {len(devices)} GPUs count as the run's; set it if the "
        "program uses fewer, or the idle ones lower the mean",
    )


def _offer(gpus: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{gpu['index']} ({gpu['uuid']})" for gpu in gpus)
