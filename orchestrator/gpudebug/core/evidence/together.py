"""What the devices of one run show beside each other: how much they work, and which one is awaited."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import ValidationError

from gpudebug.core.records import AwaitedDevice, DeviceEvidence, DeviceInfo, Window
from gpudebug.core.samples.awaited import awaited
from gpudebug.core.samples.table import Sample
from gpudebug.core.samples.window import Device
from gpudebug.core.samples.working import WorkingShare, working
from gpudebug.core.statistics import across, numbers

MISLEADS = 0.1
"""A device is busy for so much more of the time than it works, as far as power shows."""
_STAND_IN = "the CPU stand-in reports no power"


class DevicesTogether(NamedTuple):
    """The devices with their working shares, the mean share of all, and the awaited device.

    `working_reason` and `awaited_reason` say why one is unknown.
    """

    devices: tuple[DeviceEvidence, ...]
    working: float | None = None
    working_reason: str | None = None
    awaited: AwaitedDevice | None = None
    awaited_reason: str | None = None


def together(
    devices: Sequence[DeviceEvidence],
    rows: Mapping[Device, Sequence[Sample]],
    window: Window | None,
    infos: Mapping[str, DeviceInfo],
    missing: Mapping[str, str],
) -> DevicesTogether:
    """Add what power shows of them. Without a window nothing is known, which `window_reason` explains."""
    if window is None or not rows:
        return DevicesTogether(tuple(devices))
    limits = {d: infos[d[1]].power_limit_w if d[1] in infos else None for d in rows}
    names = {d: infos[d[1]].name if d[1] in infos else "" for d in rows}
    shares = working(rows, window, limits, names)
    found = tuple(_with_share(d, shares.get((d.index, d.uuid)), missing) for d in devices)
    waited, reason = awaited(rows, window, shares)
    if waited is not None and waited.uuid in infos:
        waited = waited.model_copy(update={"node": infos[waited.uuid].node})
    known = [d.working for d in found if d.working is not None]
    complete = len(known) == len(found)
    return DevicesTogether(
        found,
        math.fsum(known) / len(known) if complete else None,
        None if complete else next(d.working_reason for d in found if d.working is None),
        waited,
        reason,
    )


def _with_share(
    device: DeviceEvidence, share: WorkingShare | None, missing: Mapping[str, str]
) -> DeviceEvidence:
    if share is None:
        return device.model_copy(update={"working_reason": "no device reading"})
    if share.scale is None or share.share is None:
        reason = _STAND_IN if device.uuid == "CPU" else share.reason
        if device.power_w is None:
            reason = missing.get("power_w", reason)
        return device.model_copy(update={"working_reason": reason})
    figures = {
        "working": round(share.share, 4),
        "waiting_w": round(share.scale.waiting_w, 1),
        "working_w": round(share.scale.working_w, 1),
    }
    return device.model_copy(update=figures)


def awaited_text(found: AwaitedDevice) -> str:
    """`GPU 0 is idle every 3.5 s for 1 s while the others are busy at waiting power: periodic work on …`."""
    does = "is idle" if found.state == "idle" else "works alone"
    length = numbers.seconds(found.length_s)
    if found.every_s is not None:
        when = f"every {numbers.seconds(found.every_s)} for {length}"
    elif found.times > 1:
        when = f"{found.times} times for {length} on average"
    else:
        when = f"for {length}"
    what = "periodic work on one device" if found.every_s is not None else "they wait for it"
    return f"{across.name(found)} {does} {when} while the others are busy at waiting power: {what}"


def notes(evidence: Any) -> tuple[str, ...]:
    """Return what a reader of the mean utilisation of a run, a record or its JSON, has to know: the awaited
    device, and busy waiting.

    Without power what the mean hides is told by the utilisation of each device alone.
    """
    misleads = _by_power([evidence]) or _by_devices([evidence])
    return tuple(note for note in (waited_for([evidence]), misleads) if note)


def waited_for(runs: Sequence[Any]) -> str | None:
    """Return the device that the others wait for and for how much of the window, if it is the same in every
    run that shows one. Runs are evidence, records or their JSON."""
    found = awaited_in(runs)
    if found is None:
        return None
    return f"{awaited_text(found)} ({_shared(runs, found):.0%} of the window)"


def awaited_in(runs: Sequence[Any]) -> AwaitedDevice | None:
    """The awaited device as the last run shows it; None if none does, or if it is not the same in all."""
    found = [one for e in runs if (one := awaited_of(e)) is not None]
    return found[-1] if len({one.uuid or one.index for one in found}) == 1 else None


def awaited_of(run: Any) -> AwaitedDevice | None:
    """None also of a record that another hand wrote, and that is none."""
    with suppress(ValidationError):
        return AwaitedDevice.model_validate(across.reader(run)("awaited"))
    return None


def _shared(runs: Sequence[Any], otherwise: AwaitedDevice) -> float:
    """Return the mean share of the runs of which power tells; of one that shows no awaited device it is 0."""
    told = [e for e in runs if across.reader(e)("working") is not None]
    shares = [one.share if (one := awaited_of(e)) is not None else 0.0 for e in told]
    return math.fsum(shares) / len(shares) if shares else otherwise.share


def telling(runs: Sequence[Any]) -> str | None:
    """Return which of several devices tell how busy these runs are, their work or the least busy one; None if
    their mean does."""
    if any(_by_power([e]) for e in runs):
        return across.WORKING
    return across.LEAST if _by_devices(runs) else None


def mean_hides(runs: Sequence[Any], judged_by: str | None = None) -> str | None:
    """Return why the mean utilisation of these runs misleads and what to judge by, by the utilisation of each
    device, else by power; None if it does not, or if `judged_by`, criteria.devices, says so already.

    Runs are evidence, records or their JSON. The least busy device shows an awaited one as well.
    """
    if judged_by == across.WORKING:
        return None
    if judged_by != across.LEAST:
        return _by_devices(runs) or _by_power(runs)
    return None if _awaited(runs) else _by_power(runs)


def _by_power(runs: Sequence[Any]) -> str | None:
    busy, share = (_mean([across.reader(e)(figure) for e in runs]) for figure in ("utilisation", "working"))
    return mean_misleads(busy, share, awaited=_awaited(runs))


def _by_devices(runs: Sequence[Any]) -> str | None:
    return across.misleading(across.across(*(across.reader(e)("devices") or () for e in runs)))


def _awaited(runs: Sequence[Any]) -> bool:
    return any(across.reader(e)("awaited") for e in runs)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def mean_misleads(utilisation: float | None, share: float | None, *, awaited: bool) -> str | None:
    """Return why utilisation misleads, as far as power shows; None if it does not, or if that is not known.

    Beside a device that the others wait for, their mean counts the waiting as work and hides the idling.
    """
    if utilisation is None or share is None or not (awaited or utilisation / 100 - share > MISLEADS):
        return None
    works = f"the power of work is drawn {numbers.percent(100 * share)} of the time"
    instead = f"judge by `criteria: {{devices: {across.WORKING}}}` or by steps_per_s"
    mean = f"the mean gpu_util of {numbers.percent(utilisation)}"
    return f"{mean} misleads: waiting counts as busy in it, and {works}; {instead}"
