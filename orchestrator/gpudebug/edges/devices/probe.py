"""Asks the NVIDIA driver what is there, in a child process: it may hang, or crash its caller."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core.change.permits import chooses_code
from gpudebug.core.errors import DeviceError
from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.core.words import GPU

TIMEOUT_S = 20.0

# NVML's codes (nvml.h); pynvml is not loaded here, since the child speaks for it.
NO_PERMISSION = 4
NOT_LOADED = 9
NO_LIBRARY = 12
LOST = 15
RESET_REQUIRED = 16
BLOCKED = 17
MISMATCH = 18
UNKNOWN = 999

ADVICE = {
    NO_PERMISSION: "run as a user who may open /dev/nvidia* (see `ls -l /dev/nvidia*`)",
    NOT_LOADED: "load the kernel module with `modprobe nvidia`, or reinstall the driver for this kernel",
    NO_LIBRARY: "install the NVIDIA driver, or in a container start it with `--gpus all`",
    LOST: "look for Xid in `dmesg`; reseat or reset the GPU, or reboot",
    RESET_REQUIRED: "run `nvidia-smi --gpu-reset`, or reboot",
    BLOCKED: "start the container again: it lost the GPU, as after `systemctl daemon-reload`",
    MISMATCH: "the driver was updated under a running kernel module: reload the nvidia module, or reboot",
    UNKNOWN: "start the container again if this is one (`systemctl daemon-reload` takes the GPU from it), "
    "else reboot",
}


class ProbeResult(NamedTuple):
    """The driver's answer. `error` is NVML's code, None if it answered; `text` is the code in words.

    `devices` are dictionaries: the keys of `core.records.DeviceInfo`, `mig`, `mig_devices` and
    `missing`. `hung` and `crashed` are about the child.
    """

    devices: tuple[dict[str, Any], ...] = ()
    driver: str | None = None
    error: int | None = None
    text: str = ""
    hung: bool = False
    crashed: bool = False

    @property
    def absent(self) -> bool:
        """There is no NVIDIA driver to speak of: not one that is broken."""
        return self.error == NO_LIBRARY or (self.error == NOT_LOADED and not nvidia_hardware())

    @property
    def works(self) -> bool:
        return self.error is None and not self.hung and not self.crashed

    def as_error(self) -> DeviceError:
        """Return why there is no device, and what to do about it."""
        otherwise = "or measure the CPU with `device: cpu`"
        if self.hung:
            return DeviceError(
                f"the NVIDIA driver did not answer within {self.text} s",
                next=f"see whether `nvidia-smi` returns and look for Xid in `dmesg`, {otherwise}",
            )
        if self.crashed:
            return DeviceError(
                f"asking the NVIDIA driver crashed ({self.text})",
                next=f"see whether `nvidia-smi` works; reinstall the driver if not, {otherwise}",
            )
        if self.error is None:
            return DeviceError("the NVIDIA driver found no GPU", next=f"check `nvidia-smi -L`, {otherwise}")
        what = "there is no NVIDIA driver here" if self.absent else "the NVIDIA driver does not answer"
        advice = ADVICE.get(self.error, "check `nvidia-smi` and look for Xid in `dmesg`")
        return DeviceError(
            f"{what}: {self.text} (NVML error {self.error})",
            next=f"{advice}; {otherwise}",
        )


def gpu_error(device: Mapping[str, Any]) -> DeviceError:
    """Return why one GPU that the probe found beside others cannot be used."""
    advice = ADVICE.get(device["error"], "check `nvidia-smi` and look for Xid in `dmesg`")
    return DeviceError(
        f"GPU {device['index']} does not answer: {device['text']} (NVML error {device['error']})",
        next=f"{advice}; or choose another with CUDA_VISIBLE_DEVICES",
    )


def command() -> tuple[str, ...]:
    """Return the argument list that runs `main`, whatever modules the working folder or PYTHONPATH hold."""
    spec = find_spec("pynvml")
    folders = [str(Path(__file__).resolve().parents[3])]
    if spec and spec.origin:
        folders.append(str(Path(spec.origin).parent))
    return isolated_argv(sys.executable, folders, "from gpudebug.edges.devices import probe; probe.main()")


# A person's library path leads to the driver's library on some hosts.
_KEPT = frozenset({"LD_LIBRARY_PATH", "PATH", "HOME", "TMPDIR"})


def _cleaned(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that put other code into our own process."""
    return {k: v for k, v in env.items() if k in _KEPT or k.startswith("GPUDEBUG_") or not chooses_code(k)}


def probe_nvml(env: Mapping[str, str], timeout: float = TIMEOUT_S) -> ProbeResult:
    """Ask the driver that a program started in `env` would load. Never raises for a bad driver."""
    child = subprocess.Popen(
        command(), env=_cleaned(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        # A call that is stuck in the kernel outlives even this: it must not take us along.
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=1)
        return ProbeResult(hung=True, text=f"{timeout:g}")
    if child.returncode < 0:
        return ProbeResult(crashed=True, text=signal.Signals(-child.returncode).name)
    try:
        answer = json.loads(out)
    except ValueError:
        last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return ProbeResult(crashed=True, text=last or f"exit status {child.returncode}")
    return ProbeResult(
        devices=tuple(answer["devices"]), driver=answer["driver"], error=answer["error"], text=answer["text"]
    )


def nvidia_hardware(root: Path = Path("/sys/bus/pci/devices")) -> bool:
    """An NVIDIA display controller is on the PCI bus (vendor 0x10de, class 0x03)."""
    for device in root.glob("*"):
        try:
            vendor = (device / "vendor").read_text().strip()
            if vendor == "0x10de" and (device / "class").read_text().startswith("0x03"):
                return True
        except OSError:
            continue
    return False


def main() -> None:
    """The child's part: one JSON line on standard output."""
    import pynvml

    answer: dict[str, Any] = {"devices": [], "driver": None, "error": None, "text": ""}
    try:
        pynvml.nvmlInit()
        answer["driver"] = pynvml.nvmlSystemGetDriverVersion()
        answer["devices"] = [
            _gpu(pynvml, index, answer["driver"]) for index in range(pynvml.nvmlDeviceGetCount())
        ]
    except pynvml.NVMLError as error:
        answer.update(error=error.value, text=str(error))
    sys.stdout.write(json.dumps(answer) + "\n")


def _gpu(nvml: Any, index: int, driver: str) -> dict[str, object]:
    """One GPU; one that does not answer keeps its place, with `error` and `text`, beside others that do."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        gpu = {**_facts(nvml, handle, index), "driver": driver}
        mode = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
        mig = bool(mode and mode[0] == nvml.NVML_DEVICE_MIG_ENABLE)
        return {**gpu, "mig": mig, "mig_devices": _mig_devices(nvml, handle, gpu) if mig else []}
    except nvml.NVMLError as error:
        return {"index": index, "uuid": "", "name": "", "error": error.value, "text": str(error)}


def _mig_devices(nvml: Any, handle: Any, gpu: dict[str, Any]) -> list[dict[str, object]]:
    found = []
    for slot in range(_ask(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
        except nvml.NVMLError as error:
            if error.value != nvml.NVML_ERROR_NOT_FOUND:
                raise
            continue
        facts = {
            **_facts(nvml, part, gpu["index"]),
            "driver": gpu["driver"],
            "gpu_instance": _ask(nvml, nvml.nvmlDeviceGetGpuInstanceId, part),
            "compute_instance": _ask(nvml, nvml.nvmlDeviceGetComputeInstanceId, part),
        }
        found.append(facts)
    return found


def _facts(nvml: Any, handle: Any, index: int) -> dict[str, object]:
    # Loads the driver's library, which is this child's to do.
    from gpudebug.edges.devices.company import computing

    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    limit = _ask(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    clocks = [
        _ask(nvml, nvml.nvmlDeviceGetApplicationsClock, handle, kind)
        for kind in (nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM)
    ]
    return {
        "index": index,
        "uuid": nvml.nvmlDeviceGetUUID(handle),
        "name": nvml.nvmlDeviceGetName(handle),
        "kind": GPU.name,
        "memory_total_mb": memory.total / 2**20 if memory else None,
        "cores": None,
        "clocks_mhz": clocks if None not in clocks else None,
        "power_limit_w": limit / 1000 if limit is not None else None,
        "processes": sorted(_ask(nvml, computing, handle) or ()),
        "link": _link(nvml, handle),
        "nvlinks": _nvlinks(nvml, handle),
        "missing": _lacks(nvml, handle),
    }


def _link(nvml: Any, handle: Any) -> str | None:
    """`PCIe 4 x16`: an idle GPU runs at an older generation, so that of now says nothing; its lanes do."""
    generation = _ask(nvml, nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    lanes = _ask(nvml, nvml.nvmlDeviceGetCurrPcieLinkWidth, handle)
    most = _ask(nvml, nvml.nvmlDeviceGetMaxPcieLinkWidth, handle)
    if not generation or not lanes:
        return None
    return f"PCIe {generation} x{lanes}" + (f" of x{most}" if most and most > lanes else "")


def _nvlinks(nvml: Any, handle: Any) -> int | None:
    """Return how many NVLinks are up, those that sleep for want of traffic among them; None if the device has
    none, or if its driver reports none."""
    states = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            states.append(nvml.nvmlDeviceGetNvLinkState(handle, link))
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_INVALID_ARGUMENT:
                break
            if error.value not in _LACKING:
                raise
    return sum(state != _DOWN for state in states) if states else None


_DOWN = 0


def _lacks(nvml: Any, handle: Any) -> dict[str, str]:
    """Return why the device cannot say how busy it is, if so."""
    try:
        nvml.nvmlDeviceGetUtilizationRates(handle)
    except nvml.NVMLError as error:
        if error.value not in _LACKING:
            raise
        return {"gpu_util": str(error)}
    return {}


def _ask(nvml: Any, call: Any, handle: Any, *more: Any) -> Any:
    """Return the answer, or None if the device has none."""
    try:
        return call(handle, *more)
    except nvml.NVMLError as error:
        if error.value not in _LACKING:
            raise
        return None


# Invalid argument, not supported, no permission, function not found, argument version mismatch, deprecated:
# the device has no such answer.
_LACKING = frozenset({2, 3, 4, 13, 25, 26})
