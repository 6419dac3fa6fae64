"""Which of several devices utilisation is judged by: their mean, the least busy one, or their work."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import DeviceEvidence, Evidence
from gpudebug.core.samples.working import AVERAGED_S, PowerScale
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import LEAST, WORKING, DeviceKey, key_of, unused

SHOWN = {
    LEAST: "that of the least busy GPU of each run",
    WORKING: "the working share of the GPUs, in percent",
}
_NO_POWER = "power does not show when it works"

_Scales = dict[DeviceKey, PowerScale]


def on_devices(
    devices: str | None, before: Sequence[Evidence], after: Sequence[Evidence]
) -> tuple[tuple[Evidence, ...], tuple[Evidence, ...]]:
    """Both sides with `utilisation` as `criteria.devices` has it; None is the mean, as it was measured.

    A run without the figure has none, with the reason at its devices. A device that no run of either side
    uses is not the least busy one.
    """
    if devices == LEAST:
        idle = unused(*(e.devices for e in (*before, *after)))
        return tuple(_least(e, idle) for e in before), tuple(_least(e, idle) for e in after)
    if devices == WORKING:
        runs = (*before, *after)
        scales = _scales(runs)
        found = [_working(e, scales) for e in runs]
        return tuple(found[: len(before)]), tuple(found[len(before) :])
    return tuple(before), tuple(after)


def judged_mean(devices: str | None, runs: Sequence[Evidence]) -> float | None:
    """Return the mean of what is judged, in percent, over the runs that have it; None if none does."""
    known = [e.utilisation for e in on_devices(devices, runs, ())[0] if e.utilisation is not None]
    return math.fsum(known) / len(known) if known else None


def judged_text(devices: str | None, runs: Sequence[Evidence]) -> list[str]:
    """Return a line for the baseline: what its trials are compared with, if that is not the mean."""
    if devices not in SHOWN:
        return []
    judged, _ = on_devices(devices, runs, ())
    known = [e.utilisation for e in judged if e.utilisation is not None]
    if len(known) < len(judged) or not known:
        reasons = (d.reason for e in judged if e.utilisation is None for d in e.devices)
        why = next((reason for reason in reasons if reason), "no utilisation was measured")
        return [f"utilisation is judged by {SHOWN[devices]} (criteria.devices), which is unknown: {why}"]
    mean = numbers.percent(math.fsum(known) / len(known))
    return [f"utilisation is judged by {SHOWN[devices]}: {mean} (criteria.devices)"]


def _least(e: Evidence, idle: frozenset[DeviceKey]) -> Evidence:
    """Of a run in which a device is unknown nothing is known: it may be the least busy one."""
    used = [d for d in e.devices if key_of(d) not in idle]
    known = [(d.gpu_util.mean, d.standard_error) for d in used if d.gpu_util is not None]
    if e.utilisation is None or not known:
        return e
    mean, error = min(known, key=lambda one: one[0])
    return e.model_copy(update={"utilisation": mean, "standard_error": error})


def _working(e: Evidence, scales: _Scales) -> Evidence:
    """Its error is that of the power: GPUs that are busy all the time work more and less. It is no less than
    that of the utilisation."""
    share = _share(e, scales)
    if share is None:
        devices = tuple(d.model_copy(update={"reason": d.reason or _reason(d)}) for d in e.devices)
        return e.model_copy(update={"utilisation": None, "standard_error": None, "devices": devices})
    error = max(e.standard_error or 0.0, 100 * _share_error(e, scales))
    return e.model_copy(update={"utilisation": 100 * share, "standard_error": error})


def _share_error(e: Evidence, scales: _Scales) -> float:
    """Standard error of the working share: the mean of the devices', which train together and vary alike."""
    errors = [_power_error(e, d) / scales[key_of(d)].span_w for d in e.devices if key_of(d) in scales]
    return math.fsum(errors) / len(errors)


def _power_error(e: Evidence, device: DeviceEvidence) -> float:
    """In W. Where evidence lacks it, as if power were at either end of its spread, anew in each second: no
    driver averages it over longer."""
    if device.power_error is not None:
        return device.power_error
    if device.power_w is None:
        return 0.0
    seconds = max(1.0, e.window.duration_s / AVERAGED_S) if e.window is not None else 1.0
    return (device.power_w.p95 - device.power_w.p5) / 2 / math.sqrt(seconds)


def _reason(device: DeviceEvidence) -> str | None:
    return device.working_reason or (_NO_POWER if device.working is None else None)


def on_one_scale(runs: Sequence[Evidence]) -> list[float | None]:
    """Return the working share of each run, its devices' mean, on one scale for each device over all runs.

    A run that hardly works shows no power of work: another one of the same device does.
    """
    scales = _scales(runs)
    return [_share(e, scales) for e in runs]


def _scales(runs: Sequence[Evidence]) -> _Scales:
    scales: _Scales = {}
    for device in (d for e in runs for d in e.devices):
        if device.waiting_w is None or device.working_w is None:
            continue
        found = scales.get(key_of(device), PowerScale(device.waiting_w, device.working_w))
        scales[key_of(device)] = PowerScale(
            min(found.waiting_w, device.waiting_w), max(found.working_w, device.working_w)
        )
    return scales


def _share(e: Evidence, scales: _Scales) -> float | None:
    shares = [
        scale.share(d.power_w.mean)
        for d in e.devices
        if d.power_w is not None and d.working is not None and (scale := scales.get(key_of(d)))
    ]
    return math.fsum(shares) / len(shares) if shares and len(shares) == len(e.devices) else None
