"""The devices of a run beside each other: a figure's least, median and most, and which device is apart.

A mean over devices hides the one that the others wait for: in a collective they spin at 95 to 100 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.words import is_stand_in

if TYPE_CHECKING:
    from gpudebug.core.answers.status import DeviceValue, FigureAcross

# A device is apart if it lies this many median absolute deviations, each scaled to a standard deviation of
# normal values, from the median of all (Leys et al. 2013, J. Exp. Soc. Psychol. 49: 3 is their careful one) …
_DEVIATIONS = 3.0
_TO_SD = 1.4826
# … and by so much as matters at all: devices that do the same differ by less than a tenth.
_SHARE = 0.10
# Of fewer devices none is apart: of two, each is as far from the other.
FEWEST = 3
MISLEADING = 10.0
"""Points of utilisation between the least and the most busy device, beyond which their mean misleads."""
UNUSED_UTIL = assumed("resolution")
"""Percent up to which a device does nothing: a driver's own queries show as less."""
UNUSED_MB = assumed("unused_mb")
"""A driver holds some of a large GPU that no process uses; a training's context adds as much."""
LEAST, WORKING = "least", "working"
"""What `criteria.devices` has utilisation judged by, if not by the mean."""
_NAMED = 3


class _Figure(NamedTuple):
    """`label` and `unit` are as printed; `floor` is the least distance that matters, None: a tenth."""

    label: str
    unit: str
    floor: float | None = None


FIGURES = {
    "gpu_util": _Figure("gpu_util", "%", MISLEADING),
    "power_w": _Figure("power", " W"),
    "sm_clock_mhz": _Figure("clock", " MHz"),
    "mem_clock_mhz": _Figure("memory clock", " MHz"),
    "mem_mean_mb": _Figure("memory", " MB"),
    "mem_util": _Figure("memory busy", "%", 10.0),
    "temperature_c": _Figure("temperature", " C", 10.0),
    "throttled": _Figure("throttled", "% of the time", 10.0),
}


def across(*runs: Sequence[Any]) -> tuple[FigureAcross, ...]:
    """Return each figure that at least two devices have, in the order of `FIGURES`.

    A run is the devices of its evidence, records or their JSON; of several runs a device has its mean.
    """
    count, idle = _count(runs), unused(*runs)
    nodes = {key_of(device): reader(device)("node") for run in runs for device in run}
    found = (_figure_across(name, _values(name, runs), count, idle, nodes) for name in FIGURES)
    return tuple(one for one in found if one is not None)


def unused(*runs: Sequence[Any]) -> frozenset[DeviceKey]:
    """The devices that nothing used in any of these runs: visible, below 1 % busy, and next to no memory.

    One whose memory is unknown may hold a model that waits. Where none is used, none is unused beside it.
    """
    seen: dict[DeviceKey, list[bool]] = {}
    for device in (one for run in runs for one in run):
        get = reader(device)
        util, held = _value(get("gpu_util"), "gpu_util"), _value(get("mem_used_mb"), "mem_used_mb")
        idle = util is not None and held is not None and util < UNUSED_UTIL and held <= UNUSED_MB
        seen.setdefault(key_of(device), []).append(idle)
    found = frozenset(key for key, idle in seen.items() if all(idle))
    return found if len(found) < len(seen) else frozenset()


def outliers(values: Sequence[float], floor: float | None = None) -> list[int]:
    """Positions of the values that are apart, the farthest first; none of fewer than three.

    `floor` is the least distance from the median that counts, a tenth of the median if None.
    """
    if len(values) < FEWEST:
        return []
    middle = median(values)
    away = [abs(v - middle) for v in values]
    least = max(_DEVIATIONS * _TO_SD * median(away), _SHARE * abs(middle) if floor is None else floor)
    return sorted((i for i, d in enumerate(away) if d > least), key=lambda i: -away[i])


def shown(figures: Sequence[FigureAcross]) -> list[FigureAcross]:
    """Return the utilisation, and each further figure by which a device is apart: what a person is shown."""
    return [one for one in figures if one.figure == "gpu_util" or one.apart]


def text(found: FigureAcross) -> str:
    """`gpu_util least 3.7% (GPU 0), median 99.9%, most 99.9% (GPU 5); GPU 0 is apart`."""
    kind = FIGURES[found.figure]
    digits = 1 if found.figure == "gpu_util" else 0
    least, middle, most = (
        f"{v:.{digits}f}{kind.unit}" for v in (found.least.value, found.median, found.most.value)
    )
    ends = f"least {least} ({name(found.least)})", f"most {most} ({name(found.most)})"
    parts = [ends[0], f"median {middle}", ends[1]]
    if found.least.value == found.most.value:
        parts = [f"{least} on each{' used one' if found.unused else ''}"]
    if found.unknown:
        parts.append(f"{found.unknown} unknown")
    return f"{kind.label} {', '.join(parts)}{apart_text(found)}"


def apart_text(found: FigureAcross) -> str:
    """`; GPU 0 is apart`, or nothing; beside the utilisation also which devices are unused."""
    apart = f"; {_those(found.apart)} apart" if found.apart else ""
    idle = found.unused if found.figure == "gpu_util" else ()
    return apart + (f"; {_those(idle)} unused" if idle else "")


def _those(devices: Sequence[DeviceValue]) -> str:
    """`GPU 0 is`, `GPU 0 and GPU 1 are`."""
    names = [name(one) for one in devices[:_NAMED]]
    more = len(devices) - len(names)
    first = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    shown = f"{', '.join(names)} and {more} more" if more else first
    return f"{shown} {'is' if len(devices) == 1 else 'are'}"


def name(device: Any) -> str:
    """`GPU 3`, of a record or its JSON; `GPU 3 on n1` of a run on several nodes. Of a MIG device, whose index
    is its GPU's, with its own UUID."""
    get = reader(device)
    uuid = str(get("uuid") or "")
    if is_stand_in(uuid):
        return "CPU stand-in"
    node = get("node")
    where = f" on {node}" if node else ""
    return f"GPU {get('index')}" + (f" ({uuid})" if uuid.startswith("MIG-") else "") + where


def misleading(figures: Sequence[FigureAcross]) -> str | None:
    """Why the mean utilisation of these devices misleads; None if they are alike, or it is not known."""
    found = next((one for one in figures if one.figure == "gpu_util"), None)
    if found is None or found.most.value - found.least.value <= MISLEADING:
        return None
    return (
        f"the mean over GPUs misleads: {name(found.least)} is busy {found.least.value:.1f}% of the time, "
        f"{name(found.most)} {found.most.value:.1f}%, and a GPU that waits for another in a collective "
        f"counts as busy: judge by the least busy one (criteria: {{devices: {LEAST}}} in gpudebug.yaml) "
        "or by steps_per_s"
    )


DeviceKey = tuple[int, str]


def _count(runs: Sequence[Sequence[Any]]) -> int:
    return len({key_of(device) for run in runs for device in run})


def key_of(device: Any) -> DeviceKey:
    get = reader(device)
    index = get("index")
    return index if isinstance(index, int) else 0, str(get("uuid") or "")


def reader(device: Any) -> Callable[[str], Any]:
    if isinstance(device, Mapping):
        return device.get
    return lambda key: getattr(device, key, None)


def _values(figure: str, runs: Sequence[Sequence[Any]]) -> dict[DeviceKey, float]:
    """Return the figure of each device that has it in every run that it is in."""
    seen: dict[DeviceKey, list[float | None]] = {}
    for run in runs:
        for device in run:
            seen.setdefault(key_of(device), []).append(_value(reader(device)(figure), figure))
    return {
        key: math.fsum(known) / len(known)
        for key, values in seen.items()
        if (known := [v for v in values if v is not None]) and len(known) == len(values)
    }


def _value(found: Any, figure: str) -> float | None:
    if isinstance(found, Mapping):
        found = found.get("mean")
    mean = getattr(found, "mean", found)
    if isinstance(mean, bool) or not isinstance(mean, (int, float)) or not math.isfinite(mean):
        return None
    return 100.0 * mean if figure == "throttled" else float(mean)


def _figure_across(
    figure: str,
    values: Mapping[DeviceKey, float],
    count: int,
    idle: frozenset[DeviceKey],
    nodes: Mapping[DeviceKey, str | None],
) -> FigureAcross | None:
    from gpudebug.core.answers.status import DeviceValue, FigureAcross

    if len(values) < 2:
        return None
    found = {
        key: DeviceValue(index=key[0], uuid=key[1], value=round(v, 2), node=nodes.get(key))
        for key, v in values.items()
    }
    devices = [device for key, device in found.items() if key not in idle]
    if not devices:
        return None
    apart = outliers([d.value for d in devices], FIGURES[figure].floor)
    return FigureAcross(
        figure=figure,
        least=min(devices, key=lambda d: d.value),
        median=median(d.value for d in devices),
        most=max(devices, key=lambda d: d.value),
        apart=tuple(devices[i] for i in apart),
        unknown=count - len(found),
        unused=tuple(device for key, device in found.items() if key in idle),
    )


LARGE = 0.2
"""From this share of the time on less of it would bring 1.25x (a judgement, as the diagnosis makes it)."""
_MODEL = frozenset({"forward", "backward"})
_BESIDE = {"data": "making batches", "env": "stepping environments", "other": "in code of its own"}


def own_work(stacks: Any) -> dict[str, float] | None:
    """By phase, of those that are not the model's, the share of the time (0 to 1) in which the thread runs;
    `stacks` is a record `Stacks` or its JSON. None where no phase of a model was seen."""
    get = reader(stacks)
    rows, seconds = get("stacks") or (), get("seconds") or 0.0
    if seconds <= 0 or not {row[0] for row in rows} >= _MODEL:
        return None
    found = dict.fromkeys(_BESIDE, 0.0)
    for phase, _, _, lasted, ran in rows:
        if phase in found:
            found[phase] += min(lasted, ran) / seconds
    return found


def counted_as_busy(evidence: Sequence[Any]) -> str | None:
    """What utilisation of the CPU stand-in counts as busy in runs and is none of the model's work, if that is
    much; None if it is little or unknown, or no stand-in was measured. Runs are evidence or its JSON."""
    found = [shares for e in evidence if _stands_in(e) and (shares := _of_training(e)) is not None]
    if not found or len(found) < len(evidence):
        return None
    mean = {phase: sum(shares[phase] for shares in found) / len(found) for phase in _BESIDE}
    whole, most = sum(mean.values()), max(mean, key=lambda phase: mean[phase])
    if whole < LARGE:
        return None
    return (
        f"the training process itself computes {whole:.0%} of the time outside its model, most of it "
        f"{_BESIDE[most]}, and the CPU stand-in counts that as busy"
    )


def _stands_in(e: Any) -> bool:
    devices = reader(e)("devices") or ()
    return bool(devices) and all(is_stand_in(reader(d)("uuid")) for d in devices)


def _of_training(e: Any) -> dict[str, float] | None:
    stacks = reader(e)("stacks")
    training = reader(stacks)("training") if stacks else None
    return own_work(training) if training else None
