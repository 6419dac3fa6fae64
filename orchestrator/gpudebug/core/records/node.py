"""Where in a cluster a run was made."""

from __future__ import annotations

from gpudebug.core.records.base import Record


class RunNode(Record):
    """The node of a cluster's job that a run was launched on, and what of it the job may use.

    `name` is the node's in the cluster; `boot` the kernel's id of its boot. `allocation` is the job with how
    often it was started again, `412` or `412.1`, and `nodes` are all of its nodes. `cores` are the numbers of
    the cores that the job's step may use, in order; `memory_limit_mb` is the least limit of the control
    groups of the step, None also if there is none. `attempt` counts the tries at this run: 1, and 2 if one
    before it was cut off. `unsampled` says why the devices of another node are unknown, `clocks` what its
    monotonic clock was ahead of the first one's in seconds, by node.
    """

    name: str
    allocation: str | None = None
    nodes: tuple[str, ...] = ()
    boot: str | None = None
    cores: tuple[int, ...] = ()
    memory_limit_mb: float | None = None
    attempt: int | None = None
    unsampled: dict[str, str] = {}
    clocks: dict[str, float] = {}
