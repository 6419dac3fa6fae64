"""The process that loads GPUs: it prints what it made them do, a JSON object a line.

`begin` is the first line, `end` the last. Times are seconds since the first, of the monotonic clock:

- `phase`: `name`, `from`, `to`;
- `slice`: about half a second of one GPU: `phase`, `gpu`, `kernel`, `from`, `to`, `busy_s` by its events;
- `timer`: a kernel that was to run `asked_s`, by events (`event_s`) and by the host's clock (`host_s`);
- `copy`: `bytes` to the GPU and back, `to_s`, `back_s`, and whether they came back the `same`;
- `memory`: `bytes` that a phase holds on a GPU beside its kernels, null if it could not have them;
- `failed`: why it ended, with exit status 1.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence

from gpudebug.core.hardware.plan import WORK, Load, Phase, parsed, plain_uuid
from gpudebug.edges.cudaload.driver import Cuda, CudaDevice, CudaError

# The driver averages its utilisation over a sixth of a second at the least (nvml.h): some periods fit in.
PERIOD_S = 0.02
_SLICE_S = 0.5
_TIMER_S = 0.05
_COPIED_MB = 32
_HELD_BYTES = 256 << 20
_LOGGED_S = 0.25
_STEP_S = 0.004


class _Truth:
    """The lines on standard output; several threads write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._origin = time.monotonic()
        self.write("begin")

    def now(self) -> float:
        return time.monotonic() - self._origin

    def write(self, kind: str, **fields: object) -> None:
        fields = {k: round(v, 6) if isinstance(v, float) else v for k, v in fields.items()}
        with self._lock:
            sys.stdout.write(json.dumps({"kind": kind, "at": round(self.now(), 4), **fields}) + "\n")
            sys.stdout.flush()


def describe() -> int:
    """Print the GPUs that CUDA sees, one JSON line: `cuda`, `uuids` in its order, `error` or null."""
    answer: dict[str, object] = {"cuda": None, "uuids": [], "absent": False, "error": None}
    try:
        cuda = Cuda()
        answer["cuda"] = cuda.version()
        answer["uuids"] = [device.uuid for device in cuda.devices()]
    except OSError as error:
        answer.update(absent=True, error=f"CUDA's driver library cannot be loaded: {error}")
    except CudaError as error:
        answer.update(absent=error.no_device, error=str(error))
    print(json.dumps(answer))
    return 0


def load(text: str) -> int:
    """Take the GPUs through the phases in `text`; returns the exit status."""
    phases, truth = parsed(text), _Truth()
    try:
        opened = _opened(Cuda(), {one.uuid for phase in phases for one in phase.loads})
        for uuid, device in opened.items():
            _try(truth, uuid, device)
        for phase in phases:
            _phase(truth, phase, opened)
        for device in opened.values():
            device.close()
    except CudaError as error:
        truth.write("failed", message=str(error))
        return 1
    truth.write("end")
    return 0


def train(wait: float, seconds: float) -> int:
    """Work on the first GPU and wait `wait` s, in turn; log steps and a loss as a training does."""
    device = Cuda().devices()[0]
    device.open()
    began, step = time.monotonic(), 0
    logged = began
    while (now := time.monotonic()) - began < seconds:
        device.run(WORK, _STEP_S)
        time.sleep(wait)
        step += 1
        if now - logged >= _LOGGED_S:
            logged = now
            print(f"step {step} loss {1 / (1 + 0.01 * step):.6f}", flush=True)
    device.close()
    return 0


def _opened(cuda: Cuda, wanted: set[str]) -> dict[str, CudaDevice]:
    seen = {device.uuid: device for device in cuda.devices()}
    opened = {uuid: seen[plain_uuid(uuid)] for uuid in sorted(wanted)}
    for device in opened.values():
        device.open()
    return opened


def _try(truth: _Truth, uuid: str, device: CudaDevice) -> None:
    device.use()
    device.run(WORK, 0.001)
    before = time.perf_counter()
    took = device.run("spin", _TIMER_S)
    host = time.perf_counter() - before
    truth.write("timer", gpu=uuid, asked_s=_TIMER_S, event_s=took, host_s=host)
    copied = device.copy(bytes(i * i % 251 for i in range(1 << 20)), _COPIED_MB)
    truth.write("copy", gpu=uuid, bytes=_COPIED_MB << 20, **copied._asdict())


def _phase(truth: _Truth, phase: Phase, opened: dict[str, CudaDevice]) -> None:
    began, ends = truth.now(), truth.now() + phase.seconds
    failed: list[CudaError] = []
    threads = [
        threading.Thread(target=_caught, args=(failed, _keep_busy, truth, phase, one, opened[one.uuid], ends))
        for one in phase.loads
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    time.sleep(max(0.0, ends - truth.now()))
    truth.write("phase", name=phase.name, **{"from": began, "to": truth.now()})


def _caught(failed: list[CudaError], call: Callable[..., None], *arguments: object) -> None:
    try:
        call(*arguments)
    except CudaError as error:
        failed.append(error)


def _keep_busy(truth: _Truth, phase: Phase, one: Load, device: CudaDevice, ends: float) -> None:
    """Run the kernel once a period until `ends`; each slice is whole periods, and what events counted."""
    device.use()
    try:
        held = device.allocate(_HELD_BYTES)
    except CudaError:
        held = None
    truth.write("memory", phase=phase.name, gpu=one.uuid, bytes=_HELD_BYTES if held is not None else None)
    began = due = truth.now()
    busy = 0.0
    while (now := truth.now()) < ends:
        if now - began >= _SLICE_S:
            span = {"from": began, "to": now}
            truth.write("slice", phase=phase.name, gpu=one.uuid, kernel=one.kernel, busy_s=busy, **span)
            began, busy = now, 0.0
        busy += device.run(one.kernel, one.duty * PERIOD_S)
        due = max(due + PERIOD_S, now)
        time.sleep(max(0.0, due - truth.now()))
    if held is not None:
        device.free(held)


def main(arguments: Sequence[str]) -> int:
    """`describe`, `load PHASES` or `train WAIT SECONDS`."""
    match arguments:
        case ["describe"]:
            return describe()
        case ["load", text]:
            return load(text)
        case ["train", wait, seconds]:
            return train(float(wait), float(seconds))
        case _:
            return 2
