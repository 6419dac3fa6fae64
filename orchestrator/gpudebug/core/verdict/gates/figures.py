"""The figures of runs that are compared: which there are, of which devices, and how gates print them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.records import DeviceEvidence, Estimate, Evidence
from gpudebug.core.samples.working import AVERAGED_S, PowerScale
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import LEAST, WORKING, DeviceKey, key_of, unused
from gpudebug.core.statistics.assumed import assumed
from gpudebug.core.statistics.metrics import JOULES, Metric
from gpudebug.core.verdict.work import WorkRates
from gpudebug.core.words import Result


def estimate_text(estimate: Estimate, unit: str, *, signed: bool = False, digits: int = 1) -> str:
    """`+33.6pp (95% CI +31.2 to +36.0)`."""
    sign = "+" if signed else ""

    def text(value: float) -> str:
        # Adding 0.0 turns a rounded -0.0 into 0.0.
        return f"{round(value, digits) + 0.0:{sign}.{digits}f}"

    value = f"{text(estimate.value)}{unit}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} (95% CI {text(estimate.low)} to {text(estimate.high)})"


def bounds_text(metric: Metric, estimate: Estimate) -> str:
    """`12.0 to 18.4 pp`, or `1.02x to 1.31x`."""
    assert estimate.low is not None and estimate.high is not None
    if metric.points:
        return f"{estimate.low:.1f} to {estimate.high:.1f} pp"
    return f"{estimate.low:.2f}x to {estimate.high:.2f}x"


def improvement_text(metric: Metric, estimate: Estimate) -> str:
    """Return the delta of a metric: in pp, or `1.31x (95% CI 1.24 to 1.38)`."""
    if metric.points:
        return estimate_text(estimate, "pp", signed=True)
    return estimate_text(estimate, "x", digits=2)


def rates_of(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> WorkRates:
    """Return the runs' and the others' progress per second, if all that have one count the same."""
    runs, others = alike(runs, others), alike(others, runs)
    before, after = [rate_of(e) for e in runs], [rate_of(e) for e in others]
    counted = {(rate[0], probed(e)) for e in (*runs, *others) if (rate := rate_of(e))}
    if len(counted) != 1:
        return WorkRates()
    return WorkRates(counted.pop()[0], tuple(r[1] for r in before if r), tuple(r[1] for r in after if r))


def sample_rates(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> WorkRates:
    """As `rates_of`, in samples, if they have the same source in all runs."""
    every = (*runs, *others)
    if len({e.samples_by for e in every}) != 1 or any(not e.samples_per_s for e in every):
        return WorkRates()
    before, after = ([e.samples_per_s for e in side if e.samples_per_s] for side in (runs, others))
    return WorkRates("samples", tuple(before), tuple(after))


def rate_of(e: Evidence) -> tuple[str, float] | None:
    """Return what the run's log counts and how much of it a second."""
    unit = e.step_unit or "step"
    rate = e.progress_per_s or (e.steps_per_s if unit == "step" else None)
    return (unit, rate) if rate else None


def probed(e: Evidence) -> bool:
    """Whether its rate is of steps that the probe counted: if the log counts, one may be another thing."""
    return e.steps_by == "probe" and e.step_unit in (None, "step")


def alike(runs: Sequence[Evidence], others: Sequence[Evidence] = ()) -> tuple[Evidence, ...]:
    """Return the runs with steps as the probe counted them, if not all logs of these and of the others tell
    them and the probe reported all; else as they are."""
    every = (*runs, *others)
    told = len({probed(e) for e in every}) == 1 and all(map(rate_of, every))
    if told or not all(_inside(e) for e in every):
        return tuple(runs)
    by_probe = {"steps_by": "probe", "step_unit": "step"}
    return tuple(
        e.model_copy(update={"steps_per_s": rate, "progress_per_s": rate, **by_probe})
        for e in runs
        if (rate := _inside(e))
    )


def _inside(e: Evidence) -> float | None:
    """Steps per second by the probe, of a run whose log counts nothing else, or epochs, which may be longer
    than its window."""
    return e.probe.steps_per_s if e.probe and e.step_unit in (None, "step", "epoch") else None


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return math.fsum(values) / len(values) if values else None


# In percent: below it a device's busy time says nothing to compare.
IDLE = assumed("resolution")
# Throughput: `better` needs a gain that a person would keep; `not_worse` forgives noise.
BETTER_ESTIMATE = 1.03
NOT_WORSE_BOUND = 0.97


def idle(runs: Sequence[Evidence]) -> bool:
    return any(u < IDLE for u in utilisations(runs))


def has_figure(e: Evidence) -> bool:
    return e.utilisation is not None and e.standard_error is not None


def has_metric(metric: Metric, e: Evidence) -> bool:
    return has_figure(e) if metric.points else metric.value(e) is not None


def comparable(metric: Metric, runs: Sequence[Evidence]) -> bool:
    """Tell whether the metric has the same source in all runs."""
    return len({told_by(metric, e) for e in runs}) == 1


def told_by(metric: Metric, e: Evidence) -> str | None:
    """Name the metric's source; of steps only whether it is the log: one of its steps may differ.

    Of energy whether a counter has it or the power over time, which some devices report for a part of the
    time only.
    """
    if metric.name == "samples_per_s":
        return e.samples_by
    if not metric.by_steps:
        return None
    by = e.step_time_by if metric.name in _TIMES else e.steps_by
    steps = "probe" if by == "probe" else "log"
    if metric.name != JOULES:
        return steps
    energy = " and ".join(sorted({d.energy_by for d in e.devices if d.energy_by}))
    return f"{energy} and the steps of the {steps}"


_TIMES = frozenset({"step_time_p50", "step_time_p95"})


def values_of(metric: Metric, runs: Sequence[Evidence]) -> list[float]:
    """Return the metric of the runs that have it, in its own unit."""
    return [v for e in runs if (v := metric.value(e)) is not None]


def utilisations(runs: Sequence[Evidence]) -> list[float]:
    """Of the runs that have one, in percent."""
    return [e.utilisation for e in runs if e.utilisation is not None]


def throughput_result(wanted: str, ratio: Estimate) -> Result:
    """Tell whether throughput is `better` or `not_worse`."""
    assert ratio.low is not None and ratio.high is not None
    if wanted == "not_worse":
        return Result.FAIL if ratio.high < NOT_WORSE_BOUND else Result.PASS
    if ratio.low > 1 and ratio.value >= BETTER_ESTIMATE:
        return Result.PASS
    return Result.FAIL if ratio.high < BETTER_ESTIMATE else Result.UNKNOWN


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
