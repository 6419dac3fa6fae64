"""NVIDIA devices, read through NVML and held by UUID.

Loaded in the sampler's process and in the probe's, never in gpudebug's own: a driver may hang or crash
whoever calls it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pynvml as nvml

from gpudebug.core.errors import DeviceError
from gpudebug.core.samples.row import DeviceLostError, DeviceReading
from gpudebug.core.words import GPU
from gpudebug.edges.devices.company import Company
from gpudebug.edges.devices.proctree import ProcessTree

MB = 2**20

# The driver refreshes its utilisation once in this span, by product (nvmlUtilization_t in nvml.h).
SHORTEST_PERIOD_S = 1 / 6
LONGEST_PERIOD_S = 1.0
# A call that takes longer than this holds the driver's lock for too long to be made at every tick.
SLOW_CALL_S = 0.001
SLOW_INTERVAL_S = 1.0
# Errors that may be a passing trouble or the end of the device: these many ticks in a row decide.
PATIENCE = 5

# The device cannot answer this, now or later.
LACKING = frozenset(
    {
        nvml.NVML_ERROR_NOT_SUPPORTED,
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        nvml.NVML_ERROR_NO_PERMISSION,
        nvml.NVML_ERROR_INVALID_ARGUMENT,
        nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        nvml.NVML_ERROR_DEPRECATED,
    }
)
NO_SAMPLES = frozenset({nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_NO_DATA, nvml.NVML_ERROR_NOT_READY})

# nvmlClocksEventReasons of nvml.h, called nvmlClocksThrottleReasons before driver 535.
THROTTLE = {
    0x001: "gpu_idle",
    0x002: "applications_clocks",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal",
    0x040: "hw_thermal",
    0x080: "hw_power_brake",
    0x100: "display_clock",
}

# nvmlValueType_t -> the member of nvmlValue_t that holds the value.
VALUE_FIELDS = {
    nvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    nvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
}

Values = dict[str, Any]


class NvmlDevice:
    """All GPUs of one run, by UUID, in the order given."""

    def __init__(self, uuids: list[str], tree: ProcessTree) -> None:
        """Raises `DeviceError` where the driver does not answer or a UUID is not there."""
        try:
            nvml.nvmlInit()
            self._driver = nvml.nvmlSystemGetDriverVersion()
            self._units = [_Unit(uuid, tree) for uuid in uuids]
        except nvml.NVMLError as error:
            raise DeviceError(
                f"the NVIDIA driver does not answer: {error} (NVML error {error.value})",
                next="run `gpudebug doctor`",
            ) from error

    @property
    def source(self) -> str:
        """`samples` (the driver's own buffer), `rates` (its latest figure) or `none`."""
        return "+".join(dict.fromkeys(unit.source for unit in self._units))

    @property
    def missing(self) -> dict[str, str]:
        """Reasons by column; if not all devices lack it, the reason names the ones that do."""
        found: dict[str, list[tuple[int, str]]] = {}
        for unit in self._units:
            for column, reason in unit.missing.items():
                found.setdefault(column, []).append((unit.index, reason))
        return {column: self._together(reasons) for column, reasons in found.items()}

    def _together(self, reasons: list[tuple[int, str]]) -> str:
        texts = list(dict.fromkeys(text for _, text in reasons))
        if len(texts) == 1 and len(reasons) == len(self._units):
            return texts[0]
        return "; ".join(f"GPU {index}: {text}" for index, text in reasons)

    def describe(self) -> list[dict[str, object]]:
        return [{**unit.describe(), "driver": self._driver} for unit in self._units]

    def start(self, job_pid: int | None) -> None:
        """What the driver measured before is not the run's."""
        for unit in self._units:
            unit.start()

    def read(self, elapsed: float, final: bool = False) -> list[DeviceReading]:
        now = time.monotonic()
        return [unit.read(now) for unit in self._units]

    def summary(self) -> dict[str, object]:
        """`energy_j` by UUID since `start`, for the devices that count it."""
        used = {unit.uuid: joules for unit in self._units if (joules := unit.energy_used()) is not None}
        return {"energy_j": used}


class _Unit:
    """One GPU or MIG device."""

    def __init__(self, uuid: str, tree: ProcessTree) -> None:
        self.uuid = uuid
        self.missing: dict[str, str] = {}
        self._handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        self.index = gpu_index(self._handle, uuid)
        self._name = nvml.nvmlDeviceGetName(self._handle)
        self._total_mb: float | None = None
        self._utilisation = _Utilisation(self._handle)
        self._company = Company(self._handle, tree)
        self._gauges = [_Gauge(*gauge) for gauge in _gauges(self._handle)]
        self._gauges += [
            _Gauge(("energy_j",), lambda: (_energy(self._handle),)),
            _Gauge(("foreign_procs",), lambda: (self._company.count(),), SLOW_INTERVAL_S),
        ]
        self._troubles = 0
        self._energy_start: float | None = None
        now = time.monotonic()
        self._read_all(now)
        self._read_all(now + SLOW_INTERVAL_S)

    @property
    def source(self) -> str:
        return self._utilisation.source

    def describe(self) -> dict[str, object]:
        return {
            "index": self.index,
            "uuid": self.uuid,
            "name": self._name,
            "kind": GPU.name,
            "memory_total_mb": self._total_mb,
            "cores": None,
            "missing": dict(self.missing),
        }

    def start(self) -> None:
        with suppress(nvml.NVMLError):  # A trouble that lasts is met, and counted, at the first tick.
            self._utilisation.forget()
        self._company.start()
        for gauge in self._gauges:
            gauge.due = -math.inf
        self._energy_start = self._energy()

    def read(self, now: float) -> DeviceReading:
        values, trouble = self._read_all(now)
        self._troubles = self._troubles + 1 if trouble else 0
        if trouble is not None and (
            trouble.value == nvml.NVML_ERROR_GPU_IS_LOST or self._troubles >= PATIENCE
        ):
            raise DeviceLostError(
                f"GPU {self.index} ({self.uuid}) is lost: {trouble} (NVML error {trouble.value})",
                next="look for Xid in `dmesg`; a reset or a reboot may be needed",
            ) from trouble
        return DeviceReading(gpu_index=self.index, gpu_uuid=self.uuid, **values)

    def energy_used(self) -> float | None:
        """J since `start`; None if the device does not count it or is lost."""
        end = self._energy()
        if end is None or self._energy_start is None:
            return None
        return round(end - self._energy_start, 3)

    def _energy(self) -> float | None:
        if "energy_j" in self.missing:
            return None
        try:
            return _energy(self._handle)
        except nvml.NVMLError as error:
            self.missing["energy_j"] = str(error)
            return None

    def _read_all(self, now: float) -> tuple[Values, nvml.NVMLError | None]:
        """Return all values that the device has, and the first trouble that is not a mere lack."""
        values: Values = {}
        trouble: nvml.NVMLError | None = None
        try:
            values.update(self._utilisation.read(now, self.missing))
        except nvml.NVMLError as error:
            trouble = error
        for gauge in self._gauges:
            if gauge.columns[0] in self.missing or now < gauge.due:
                continue
            try:
                values.update(gauge.read(now))
            except nvml.NVMLError as error:
                if error.value in LACKING:
                    self.missing.update(dict.fromkeys(gauge.columns, str(error)))
                elif error.value not in NO_SAMPLES:
                    trouble = trouble or error
        self._total_mb = values.get("mem_total_mb", self._total_mb)
        return values, trouble


class _Utilisation:
    """`gpu_util`, `new_samples` and `mem_util` of one device.

    The driver keeps a buffer of timestamped samples: all that are new at a tick are averaged. It may
    run dry where the device idles (and then says NOT_FOUND or nothing), so after the longest period
    that a device has, the driver's latest figure counts as one sample: an idle device is 0 %, not
    unknown. Timestamps are compared with each other only: their clock is no documented one.
    """

    def __init__(self, handle: Any) -> None:
        self.source = "samples"
        self._handle = handle
        self._seen = 0
        self._fresh_at = -math.inf
        self._util: float | None = None

    def forget(self) -> None:
        """Drop what is in the buffer."""
        self._drain()
        self._fresh_at = time.monotonic()
        self._util = None

    def read(self, now: float, missing: dict[str, str]) -> Values:
        new = self._drain()
        rates = self._rates(missing)
        count = len(new)
        if new:
            self._util = sum(new) / count
        elif rates is not None and now - self._fresh_at >= self._patience():
            self._util = float(rates.gpu)
            count = 1
        if count:
            self._fresh_at = now
        if self.source == "rates" and rates is None:
            self.source = "none"
            missing["gpu_util"] = missing["mem_util"]
        if self.source == "none":
            return {}
        memory = float(rates.memory) if rates is not None else None
        return {"gpu_util": self._util, "new_samples": count, "mem_util": memory}

    def _patience(self) -> float:
        # A little slack: at 6 Hz and below every reading of the rates is a sample of its own.
        return LONGEST_PERIOD_S if self.source == "samples" else SHORTEST_PERIOD_S * 0.9

    def _drain(self) -> list[float]:
        """New utilisation samples in percent, oldest first."""
        if self.source != "samples":
            return []
        try:
            kind, samples = nvml.nvmlDeviceGetSamples(
                self._handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, self._seen
            )
        except nvml.NVMLError as error:
            if error.value in LACKING:
                self.source = "rates"
            elif error.value not in NO_SAMPLES:
                raise
            return []
        field = VALUE_FIELDS.get(kind, "uiVal")
        new = [
            (sample.timeStamp, float(getattr(sample.sampleValue, field)))
            for sample in samples
            if sample.timeStamp > self._seen
        ]
        self._seen = max((stamp for stamp, _ in new), default=self._seen)
        return [value for _, value in new if 0 <= value <= 100]

    def _rates(self, missing: dict[str, str]) -> Any:
        if "mem_util" in missing:
            return None
        try:
            return nvml.nvmlDeviceGetUtilizationRates(self._handle)
        except nvml.NVMLError as error:
            if error.value not in LACKING:
                raise
            missing["mem_util"] = str(error)
            return None


class _Gauge:
    """One call and the columns that it fills; read each `every` s, once a second where it turns out slow."""

    def __init__(
        self, columns: tuple[str, ...], call: Callable[[], tuple[Any, ...]], every: float = 0.0
    ) -> None:
        self.columns = columns
        self._every = every
        self.due = -math.inf
        self._call = call
        self._quickest = math.inf

    def read(self, now: float) -> Values:
        before = time.perf_counter()
        values = self._call()
        self._quickest = min(self._quickest, time.perf_counter() - before)
        every = SLOW_INTERVAL_S if self._quickest > SLOW_CALL_S else self._every
        self.due = now + every * 0.99
        return dict(zip(self.columns, values, strict=True))


def _gauges(handle: Any) -> list[tuple[tuple[str, ...], Callable[[], tuple[Any, ...]]]]:
    def memory() -> tuple[Any, ...]:
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
        return info.used / MB, info.total / MB

    return [
        (("mem_used_mb", "mem_total_mb"), memory),
        (("power_w",), lambda: (nvml.nvmlDeviceGetPowerUsage(handle) / 1000,)),
        (("sm_clock_mhz",), lambda: (float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),)),
        (("mem_clock_mhz",), lambda: (float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),)),
        (
            ("temperature_c",),
            lambda: (float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),),
        ),
        (("throttle",), lambda: (throttle_names(_throttle_mask(handle)),)),
    ]


def _energy(handle: Any) -> float:
    """Joules since the driver was loaded, as the device counts them."""
    return float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000


def _throttle_mask(handle: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except nvml.NVMLError as error:
        # The same call under the name that it had before driver 535.
        if error.value != nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
        return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def throttle_names(mask: int) -> str:
    """The set bits by name joined by `+`; `none` for no bit, `other` for bits that have no name here."""
    names = [name for bit, name in THROTTLE.items() if mask & bit]
    if mask & ~sum(THROTTLE):
        names.append("other")
    return "+".join(names) or "none"


def gpu_index(handle: Any, uuid: str) -> int:
    """NVML's index of the GPU; of the GPU that a MIG device is on."""
    gpu = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if uuid.startswith("MIG-") else handle
    return int(nvml.nvmlDeviceGetIndex(gpu))
