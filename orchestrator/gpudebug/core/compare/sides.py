"""One side of a comparison as it is shown: its means, its memory, what its runs reported from inside."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudebug.core.answers.compare import CompareSide, Latencies, RateSpread, WallTimes
from gpudebug.core.answers.status import WorkFigure
from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.compare.faster import counts_work
from gpudebug.core.inside.probe import figures
from gpudebug.core.records import WorkUnit
from gpudebug.core.statistics.across import across
from gpudebug.core.trainlog.latency import Latency
from gpudebug.core.verdict import work
from gpudebug.core.verdict.gates.figures import mean
from gpudebug.core.words import is_stand_in


def side(
    label: str,
    runs: Sequence[ComparedRun],
    *,
    other_batch: bool = False,
    unit: WorkUnit | None = None,
    replayed: bool | None = None,
    calls: Sequence[float] = (),
) -> CompareSide:
    """One side as it is shown; `other_batch` and `unit` as in SpeedComparison, `calls` a second of a section
    for each run if throughput counts those."""
    counted = unit if counts_work(unit) else None
    latencies = [r.latency for r in runs if r.latency is not None]
    walls = [r.wall_time for r in runs if r.wall_time is not None]
    used = [r.evidence.utilisation for r in runs if r.evidence.utilisation is not None]
    joules = [r.evidence.joules_per_step for r in runs if r.evidence.joules_per_step is not None]
    inside = figures.side(label, [r.evidence.model_dump(mode="json") for r in runs])
    return CompareSide(
        label=label,
        runs=tuple(r.record.name for r in runs),
        stand_in=any(_stands_in(r) for r in runs),
        utilisation=mean(used) if len(used) == len(runs) else None,
        utilisation_reason=None if len(used) == len(runs) else _silent(runs),
        throughput=_rates(
            [("call", rate) for rate in calls] or [r.rate_in(other_batch, counted) for r in runs]
        ),
        work=_work_of(runs, unit),
        latency=_latencies(latencies) if len(latencies) == len(runs) else None,
        wall_time=WallTimes(mean_s=_mean(walls), min_s=min(walls), max_s=max(walls))
        if len(walls) == len(runs)
        else None,
        peak_rss_mb=max((v for r in runs if (v := _host_memory(r)) is not None), default=None),
        peak_device_mb=max((v for r in runs if (v := _device_memory(r)) is not None), default=None),
        probe=inside.figures,
        probe_reason=inside.reason,
        replayed=replayed,
        across=across(*(r.evidence.devices for r in runs)),
        joules_per_step=_mean(joules) if joules and len(joules) == len(runs) else None,
    )


def _work_of(runs: Sequence[ComparedRun], unit: WorkUnit | None) -> WorkFigure | None:
    known = [v for r in runs if unit and (v := work.rate(r.evidence, unit.unit, unit.source))]
    if unit is None or len(known) < len(runs):
        return None
    return WorkFigure(unit=unit.unit, per_s=_mean(known), source=unit.source)


def _rates(rates: Sequence[tuple[str, float] | None]) -> RateSpread | None:
    known = [rate for rate in rates if rate]
    if len(known) < len(rates) or len({unit for unit, _ in known}) > 1:
        return None
    values = [value for _, value in known]
    return RateSpread(mean=_mean(values), min=min(values), max=max(values), unit=known[0][0])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _latencies(found: Sequence[Latency]) -> Latencies:
    counts = [one.count for one in found if one.count is not None]
    return Latencies(
        mean_s=_mean([one.mean for one in found]),
        min_s=min((one.least for one in found if one.least is not None), default=None),
        max_s=max((one.most for one in found if one.most is not None), default=None),
        first_s=max((one.first for one in found if one.first is not None), default=None),
        count=sum(counts) if counts else None,
        warmup=sum(one.warmup for one in found) if counts else None,
    )


def _silent(runs: Sequence[ComparedRun]) -> str | None:
    reasons = [r.evidence.window_reason for r in runs]
    reasons += [d.reason for r in runs for d in r.evidence.devices]
    return next((reason for reason in reasons if reason), None)


def _stands_in(run: ComparedRun) -> bool:
    """Tell whether the device was the CPU: its memory is then the program's own."""
    return any(is_stand_in(d.uuid) for d in run.evidence.devices)


def _host_memory(run: ComparedRun) -> float | None:
    """None also for 0: a program that ended before it was first looked at."""
    both = [run.evidence.peak_rss_mb, run.evidence.peak_device_mb if _stands_in(run) else None]
    return max((v for v in both if v), default=None)


def _device_memory(run: ComparedRun) -> float | None:
    return None if _stands_in(run) else run.evidence.peak_device_mb
