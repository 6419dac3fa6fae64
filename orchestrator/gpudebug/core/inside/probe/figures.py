"""A record of the probe and the steady window -> `ProbeEvidence`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core.inside.probe.processes import ProbeRecord, TrainingProcess
from gpudebug.core.inside.probe.spans import ProcessSpan, first_step, middle, percentile, steady
from gpudebug.core.records import ProbedCopies, ProbedForwards, ProbeEvidence, ProbeRank, Window

MB = 2.0**20
FEW_STEPS = 5
"""Fewer step times than this have no median worth comparing, as in `core.speed`."""
FEW_FOR_P95 = 20
STALLED = 1.5
"""A step above so many times the median is stalled: its time beyond the median is lost."""


def evidence_of(record: ProbeRecord | None, window: Window | None) -> ProbeEvidence | None:
    """Return what the main process did in the window, else in its own steady iterations; None without one."""
    main = record.main if record else None
    if record is None or main is None:
        return None
    ranks = record.ranks
    bounds = (window.start_s, window.end_s) if window else steady(main)
    span = _span(main, bounds)
    peers = tuple(_rank(process, bounds) for process in ranks)
    return ProbeEvidence(
        pid=main.pid,
        rank=main.rank,
        world_size=main.world_size,
        torch=main.torch,
        steps=main.steps,
        first_step_s=first_step(main),
        last_step_s=main.beats[-1].t if main.beats else None,
        samples_per_s=_sum([peer.samples_per_s for peer in peers]),
        **(_figures(span) if span else {}),
        alloc_retries=_last_count(main, "alloc_retries"),
        peak_host_mb=_fact(main.facts, "peak_host_mb"),
        peak_device_mb=_fact(main.facts, "peak_device_mb"),
        facts=main.facts,
        sites=main.sites,
        ranks=peers if len(peers) > 1 else (),
        off=main.off,
    )


def _span(process: TrainingProcess, bounds: tuple[float, float] | None) -> ProcessSpan | None:
    """Return the part between the bounds in which the process trained."""
    span = ProcessSpan(process, *bounds) if bounds else None
    return span if span and span.seconds and span.steps else None


def _rank(process: TrainingProcess, bounds: tuple[float, float] | None) -> ProbeRank:
    span = _span(process, bounds)
    return ProbeRank(
        pid=process.pid,
        rank=process.rank,
        steps=process.steps,
        samples_per_s=_per(span, "samples_n"),
        steps_per_s=span.steps / span.seconds if span else None,
        data_wait_share=_per(span, "data_s"),
    )


def _figures(span: ProcessSpan) -> dict[str, Any]:
    times = span.step_times()
    counted = sum(times.values())
    return {
        "start_s": round(span.start_s, 3),
        "end_s": round(span.end_s, 3),
        "span_steps": round(span.steps),
        "steps_per_s": span.steps / span.seconds,
        "step_time_p50_s": percentile(times, 0.5) if counted >= FEW_STEPS else None,
        "step_time_p95_s": percentile(times, 0.95) if counted >= FEW_FOR_P95 else None,
        "data_wait_share": _per(span, "data_s"),
        "eval_data_share": _per(span, "eval_data_s"),
        "background_data_share": _per(span, "background_data_s"),
        "loader_start_share": _per(span, "loader_starts_s"),
        "loader_starts_per_step": _per(span, "loader_starts_n", span.steps),
        "forward_share": _per(span, "forward_s"),
        "backward_share": _per(span, "backward_s"),
        "optimizer_share": _per(span, "optimizer_s"),
        "backwards_per_step": _per(span, "backward_n", span.steps),
        "inputs_per_step": _per(span, "inputs_n", span.steps),
        "rows_per_backward": _rows(span),
        "blocking_reads_per_step": _per(span, "reads_n", span.steps),
        "blocking_read_share": _per(span, "reads_s"),
        "syncs_per_step": _per(span, "sync_n", span.steps),
        "device_time_share": _device_time(span),
        "gc_share": _per(span, "gc_s"),
        **_stalls(times, span.seconds),
        "cpu_cores": _per(span, "cpu_s"),
        "h2d": _copies(span, "h2d"),
        "d2h": _copies(span, "d2h"),
        "acts": _acts(span),
    }


def _stalls(times: dict[int, float], seconds: float) -> dict[str, float | None]:
    """The share of the time that steps far above the median take beyond it, and one in how many does."""
    counted = sum(times.values())
    median = percentile(times, 0.5) if counted >= FEW_STEPS else None
    if median is None:
        return {}
    long = {bucket: count for bucket, count in times.items() if middle(bucket) > STALLED * median}
    lost = sum(count * (middle(bucket) - median) for bucket, count in long.items())
    every = counted / sum(long.values()) if long else None
    return {"stall_share": min(1.0, lost / seconds), "stall_every_steps": every}


def _per(span: ProcessSpan | None, counter: str, by: float | None = None) -> float | None:
    """Return a counter's rise over the span's seconds, or over `by`."""
    rise = span.delta(counter) if span else None
    return None if span is None or rise is None else rise / (by or span.seconds)


def _device_time(span: ProcessSpan) -> float | None:
    """From those iterations that events have timed: it may not be all of them."""
    count, seconds = span.delta("gpu_n"), span.delta("gpu_s")
    if not count or seconds is None:
        return None
    return seconds / count * span.steps / span.seconds


def _copies(span: ProcessSpan, direction: str) -> ProbedCopies | None:
    count, moved, took = (span.delta(f"{direction}_{what}") for what in ("n", "bytes", "s"))
    if count is None or moved is None or took is None:
        return None
    pinned = span.delta(f"{direction}_pinned_n")
    return ProbedCopies(
        count=round(count),
        mb=moved / MB,
        seconds=took,
        pinned_share=min(1.0, pinned / count) if pinned is not None and count else None,
    )


def _rows(span: ProcessSpan) -> float | None:
    backwards = span.delta("backward_n")
    return _per(span, "rows_n", backwards) if backwards else None


def _acts(span: ProcessSpan) -> ProbedForwards | None:
    count, rows, seconds = (span.delta(f"acts_{what}") for what in ("n", "rows_n", "s"))
    if not count or rows is None or seconds is None:
        return None
    return ProbedForwards(count=round(count), rows=rows, seconds=seconds)


def _last_count(process: TrainingProcess, counter: str) -> int | None:
    last = next((b.counters[counter] for b in reversed(process.beats) if counter in b.counters), None)
    return None if last is None else int(last)


def _fact(facts: Mapping[str, object], name: str) -> float | None:
    value = facts.get(name)
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    return float(value) if known and isinstance(value, (int, float)) else None


def _sum(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None
