"""What a run met on its machine."""

from __future__ import annotations

from gpudebug.core.records.base import Record


class Conditions(Record):
    """What the samples of the window say of the machine, the worst of the run's devices; None: unknown.

    `foreign_procs` is the largest count of other processes computing on the device, `foreign_share` the
    share of readings with any, `foreign_on` the index of the device that had them, if there are several,
    `foreign_uuid` its UUID.
    `foreign_cpu` is the mean of that column, percent of the run's cores; `sm_clock_mhz` the mean clock;
    `throttle` the share of readings by reason. `read_mb_s` is what the run read from disk: what the page
    cache holds is not among it. `cpu_cores` is the CPU time a second of its processes, `cores` how many cores
    they may use. `cpu_wait`, `cpu_throttled`, `cpu_stolen` and `foreign_demand` are means of these columns:
    percent of one core, and the last of the run's cores.
    """

    foreign_procs: int | None = None
    foreign_share: float | None = None
    foreign_cpu: float | None = None
    sm_clock_mhz: float | None = None
    throttle: dict[str, float] | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None
    cpu_cores: float | None = None
    cores: float | None = None
    cpu_wait: float | None = None
    cpu_throttled: float | None = None
    cpu_stolen: float | None = None
    foreign_demand: float | None = None
    foreign_on: int | None = None
    foreign_uuid: str | None = None
