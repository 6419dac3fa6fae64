"""What a device answers at one tick, and the CSV row that it becomes.

Standard library only: the sampler process imports this and must stay small, so the pydantic records
of `core.records` are out of its reach. Units: percent, W, MHz, degrees Celsius,
`_mb` is 2**20 bytes, seconds. `None` is *unknown* and becomes an empty cell, never 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from gpudebug.core.command.program import RunProcess
from gpudebug.core.errors import DeviceError


class DeviceLostError(DeviceError):
    """The device stopped answering in mid-run; what was sampled so far stays."""

    code = "device_lost"


class DeviceReading(NamedTuple):
    """One row of samples.csv; the field names are its columns, in order.

    A live device leaves `elapsed`, the host columns and `log_bytes` to the sampler. A reading that
    brings its own `elapsed` (a recording) is written as it is. `foreign_procs` counts the processes that
    compute on the device and are not the run's; `foreign_cpu` is what others use of the cores that the run
    may use, in percent of all these cores, `foreign_demand` that and what they waited for. In percent of one
    core, over all threads: `cpu_wait` is how long the run's were ready and had no core, `cpu_throttled` how
    long a control group's quota held them, `cpu_stolen` what of the waiting others caused. `energy_j` is the
    device's own counter in joules, which began at another time than the run.
    """

    elapsed: float | None = None
    gpu_util: float | None = None
    mem_util: float | None = None
    mem_used_mb: float | None = None
    mem_total_mb: float | None = None
    gpu_index: int | None = None
    gpu_uuid: str | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    mem_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttle: str | None = None
    new_samples: int | None = None
    cpu_util: float | None = None
    rss_mb: float | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None
    procs: int | None = None
    log_bytes: int | None = None
    foreign_procs: int | None = None
    foreign_cpu: float | None = None
    cpu_wait: float | None = None
    cpu_throttled: float | None = None
    cpu_stolen: float | None = None
    foreign_demand: float | None = None
    energy_j: float | None = None


COLUMNS = DeviceReading._fields
_EARLIER = frozenset(COLUMNS.index(first) for first in ("foreign_procs", "cpu_wait", "energy_j"))
"""How many columns recordings of earlier versions hold; new ones stand at the end."""
HEADER = ",".join(COLUMNS) + "\n"


class HostReading(NamedTuple):
    """The run's process tree at one tick, and the others; the sampler leaves itself out of both."""

    cpu_util: float | None = None
    rss_mb: float | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None
    procs: int | None = None
    foreign_cpu: float | None = None
    cpu_wait: float | None = None
    cpu_throttled: float | None = None
    cpu_stolen: float | None = None
    foreign_demand: float | None = None


class Processes(Protocol):
    """The run's process tree, as the host columns and the devices that live on it see it."""

    @property
    def missing(self) -> dict[str, str]:
        """Why a host column is empty, by column."""
        ...

    @property
    def written(self) -> list[str]:
        """Files of loggers that the job was seen to hold open to write."""
        ...

    @property
    def seen(self) -> list[RunProcess]:
        """What each process did that was ever in the run's tree."""
        ...

    def start(self, job_pid: int | None) -> None:
        """The job was launched; rates count from here."""

    def glance(self) -> None:
        """Called at each tick, between two readings too."""

    def read(self) -> HostReading: ...


class SamplerDevice(Protocol):
    """What the sampler reads: all devices of one run, held for the whole of it.

    Neither index nor UUID need be NVIDIA's: any text without a comma that names the device for good
    will do.
    """

    @property
    def source(self) -> str:
        """The source of utilisation, in a word."""
        ...

    @property
    def missing(self) -> dict[str, str]:
        """Why a column is empty, by column; recorded once."""
        ...

    def describe(self) -> list[dict[str, object]]:
        """Return each device as the keys of `core.records.DeviceInfo`, with `missing` of its own."""
        ...

    def start(self, job_pid: int | None) -> None:
        """The job was launched: what was measured before is not the run's."""

    def read(self, elapsed: float, final: bool = False) -> list[DeviceReading]:
        """One reading a device, `elapsed` s after the launch. Raises `DeviceLostError`."""
        ...

    def summary(self) -> dict[str, object]:
        """Figures of the run as a whole, `energy_j` by UUID if the device counts it."""
        ...


def cell(value: float | int | str | None, digits: int = 2) -> str:
    """Return a CSV cell: empty for unknown, no exponent, no trailing zeros.

    Reading the text back as a number and writing it again gives the same text.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return str(value)


def csv_row(reading: DeviceReading) -> str:
    """Return the row with its newline. `elapsed` keeps milliseconds, everything else two digits."""
    return ",".join([cell(reading.elapsed, 3), *map(cell, reading[1:])]) + "\n"


def parse_row(line: str) -> DeviceReading | None:
    """Return the reading of one row that `csv_row` wrote; None for a header or a torn row."""
    cells = line.rstrip("\r\n").split(",")
    if len(cells) != len(COLUMNS) and len(cells) not in _EARLIER:
        return None
    try:
        return DeviceReading(**{name: _value(name, text) for name, text in zip(COLUMNS, cells, strict=False)})
    except ValueError:
        return None


TEXTS = frozenset({"gpu_uuid", "throttle"})
WHOLE = frozenset({"gpu_index", "new_samples", "procs", "log_bytes", "foreign_procs"})


def _value(name: str, text: str) -> Any:
    if not text:
        return None
    if name in TEXTS:
        return text
    return int(text) if name in WHOLE else float(text)
