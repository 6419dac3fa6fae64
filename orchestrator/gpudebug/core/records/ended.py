"""Parts of the record of a run: its devices, how it ended, and what was counted of its files."""

from __future__ import annotations

from gpudebug.core.records.base import Record
from gpudebug.core.words import counted


class DeviceInfo(Record):
    """One device of a run. `uuid` is `CPU` for the CPU stand-in; `missing` says why it lacks a column.

    `clocks_mhz` are the applications clocks that are set, of processor and memory; `processes` are the PIDs
    of those that computed on it before the launch. `link` is the bus that it hangs on: `PCIe 4 x16`, the
    newest generation that both ends know and the lanes in use; `nvlinks` are the NVLinks that are up, None
    if it has none or the driver reports none. `node` is the one that it is on, of a run on several nodes.
    """

    index: int
    uuid: str
    name: str
    kind: str
    memory_total_mb: float | None = None
    driver: str | None = None
    cores: float | None = None
    clocks_mhz: tuple[float, float] | None = None
    power_limit_w: float | None = None
    processes: tuple[int, ...] = ()
    link: str | None = None
    nvlinks: int | None = None
    missing: dict[str, str] = {}
    node: str | None = None

    @property
    def links(self) -> str | None:
        """`PCIe 4 x16, 18 NVLinks`; None if nothing is known."""
        nvlinks = None
        if self.nvlinks is not None:
            nvlinks = counted(self.nvlinks, "NVLink")
        return ", ".join(text for text in (self.link, nvlinks) if text) or None


class Failure(Record):
    """Why a run failed, with the log lines that say so. `kind` is one of the documented failure classes.

    `own_limit_mb` is the memory limit that the run itself had filled when the kernel killed a process of it.
    """

    kind: str
    lines: tuple[str, ...] = ()
    own_limit_mb: float | None = None


class Counted(Record):
    """What the writer or follower of a file counted of it: its first `bytes` bytes and their SHA-256."""

    bytes: int
    sha256: str


class ServerRun(Record):
    """The server of a run: its command with `{port}` in it, names of the variables that gpudebug.yaml sets.

    `ready_s` is how long it took to be ready, None if it never was; `died` says that its end was the run's.
    One of `exit_status` and `signal` says how it ended.
    """

    command: str
    argv: tuple[str, ...]
    cwd: str
    environment: tuple[str, ...] = ()
    ready_s: float | None = None
    died: bool = False
    exit_status: int | None = None
    signal: int | None = None


class PlannedEnd(Record):
    """Where gpudebug ended a run by its plan: seconds since launch, and bytes of its log by then.

    What the program did and printed later, because it was asked to end, is in no figure. `window_s` is the
    planned window.
    """

    at_s: float
    log_bytes: int
    window_s: float
