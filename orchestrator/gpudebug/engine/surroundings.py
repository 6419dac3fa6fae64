"""What a run ran in: interpreter, packages, host, quota, devices; and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpudebug.core.models import DeviceInfo, RunRecord
from gpudebug.edges import host

_NAMED = 5


@dataclass(frozen=True)
class Surroundings:
    """`interpreter` is path and version; `packages` is empty where the interpreter was not or could not be
    asked; None is unknown, as for everything of an imported run."""

    interpreter: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None
    cpu_quota: float | None = None
    devices: tuple[DeviceInfo, ...] = ()


def here(interpreter: host.Interpreter | None, devices: tuple[DeviceInfo, ...]) -> Surroundings:
    """The surroundings of a run that would start now."""
    return Surroundings(
        interpreter=f"{interpreter.path} {interpreter.version}".strip() if interpreter else None,
        packages=interpreter.packages if interpreter else {},
        host=host.host_name(),
        cpu_quota=host.cpu_quota(),
        devices=devices,
    )


def recorded(record: RunRecord) -> Surroundings:
    """The surroundings that run.json tells of."""
    return Surroundings(
        interpreter=record.interpreter,
        packages=record.packages,
        host=record.host,
        cpu_quota=record.cpu_quota,
        devices=record.devices,
    )


def differences(before: Surroundings, after: Surroundings) -> list[str]:
    """What differs, named. What either side does not know is not compared: unknown is no difference."""
    found = []
    if before.packages and after.packages:
        if before.interpreter != after.interpreter:
            found.append(f"interpreter {before.interpreter} and {after.interpreter}")
        found += _packages(before.packages, after.packages)
    if None not in (before.host, after.host) and before.host != after.host:
        found.append(f"host {before.host} and {after.host}")
    if None not in (before.cpu_quota, after.cpu_quota) and before.cpu_quota != after.cpu_quota:
        found.append(f"CPU quota {before.cpu_quota:g} and {after.cpu_quota:g} cores")
    if before.devices and after.devices:
        found += _devices(before.devices, after.devices)
    return found


def _packages(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    names = sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n))
    if not names:
        return []
    return [f"packages {', '.join(names[:_NAMED])}{' and more' if len(names) > _NAMED else ''}"]


def _devices(before: tuple[DeviceInfo, ...], after: tuple[DeviceInfo, ...]) -> list[str]:
    if [(d.uuid, d.cores) for d in before] != [(d.uuid, d.cores) for d in after]:
        return [f"device {_shown(before)} and {_shown(after)}"]
    drivers = [d.driver for d in before], [d.driver for d in after]
    return [f"driver {drivers[0][0]} and {drivers[1][0]}"] if drivers[0] != drivers[1] else []


def _shown(devices: tuple[DeviceInfo, ...]) -> str:
    return ", ".join(d.uuid + (f" with {d.cores:g} cores" if d.cores else "") for d in devices)
