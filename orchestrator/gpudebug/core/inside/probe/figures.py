"""A record of the probe and the steady window -> `ProbeEvidence`; why there is none, and what disagrees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.answers.show import CopyFigures, ProbeFigures, ProbeSide, SiteFigures
from gpudebug.core.inside.probe import uneven
from gpudebug.core.inside.probe.processes import VERSION, ProbeRecord, TrainingProcess
from gpudebug.core.inside.probe.spans import ProcessSpan, first_step, percentile, steady
from gpudebug.core.records import DeviceInfo, ProbeEvidence, Window
from gpudebug.core.records.inside import ProbedCopies, ProbedForwards, ProbeRank
from gpudebug.core.statistics import numbers

MB = 2.0**20
FEW_FOR_P95 = 20


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
        "step_time_p50_s": percentile(times, 0.5) if counted >= uneven.FEW_STEPS else None,
        "step_time_p95_s": percentile(times, 0.95) if counted >= FEW_FOR_P95 else None,
        "data_wait_share": _per(span, "data_s"),
        "eval_data_share": _per(span, "eval_data_s"),
        "background_data_share": _per(span, "background_data_s"),
        "loader_start_share": _per(span, "loader_starts_s"),
        "loader_restart_share": _restarts(span),
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
        **uneven.stalls(times, span.seconds),
        **uneven.slowing(span),
        "cpu_cores": _per(span, "cpu_s"),
        "h2d": _copies(span, "h2d"),
        "d2h": _copies(span, "d2h"),
        "acts": _acts(span),
    }


def _per(span: ProcessSpan | None, counter: str, by: float | None = None) -> float | None:
    """Return a counter's rise over the span's seconds, or over `by`."""
    rise = span.delta(counter) if span else None
    return None if span is None or rise is None else rise / (by or span.seconds)


def _restarts(span: ProcessSpan) -> float | None:
    """What starting loaders takes, with what each epoch's first batch takes beyond the usual one."""
    starts, first = _per(span, "loader_starts_s"), _per(span, "loader_first_s")
    return None if starts is None or first is None else min(1.0, starts + first)


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


NOBODY = "the command ran no PyTorch training step"
NEVER_ASKED = "the run was recorded without a probe"
SWITCHED_OFF = "`probe: false` in gpudebug.yaml"


def reason(probed: bool | None, record: ProbeRecord | None) -> str:
    """In one clause. `probed` says whether the probe was put into the run; None: unknown."""
    if probed is None:
        return NEVER_ASKED
    if not probed:
        return SWITCHED_OFF
    if record is not None and record.other_version is not None:
        return f"probe.jsonl is of version {record.other_version}; this gpudebug reads version {VERSION}"
    if record is not None and record.off is not None:
        return f"the probe switched itself off: {record.off}"
    return NOBODY


NO_OPTIMIZER = "its steps are backward passes: it has no optimizer of PyTorch's"
APART = 0.10
"""Rates of log and probe further apart than this do not tell of the same thing."""
MOST_TIMES = 128
# Rates over the same window are known to a few percent, and beyond this 15 times cannot be told from 16.
_NEAR, _NEAR_WHOLE = 0.05, 0.15


def notes(probe: ProbeEvidence, log_rate: float | None, devices: Sequence[DeviceInfo]) -> tuple[str, ...]:
    """Return what does not fit together. `log_rate` is steps per second by the arrival of the log's lines."""
    found = [
        _rates(probe, log_rate),
        _device(probe, devices),
        NO_OPTIMIZER if probe.steps and probe.facts.get("optimizers") == [] else None,
        f"the probe switched itself off: {probe.off}" if probe.off else None,
    ]
    return tuple(note for note in found if note)


def nodes(record: ProbeRecord | None) -> tuple[str, ...]:
    """Return which nodes have a training of their own beside the one that is looked at."""
    others = record.elsewhere if record else ()
    if record is None or record.main is None or not others:
        return ()
    names = ", ".join(dict.fromkeys(process.node or "another node" for process in others))
    has = f"{names} trained, too, with the ranks of {record.main.node or 'this node'}"
    return (f"{has}, which alone is looked at: without one rendezvous, each node trains on its own",)


def _rates(probe: ProbeEvidence, log_rate: float | None) -> str | None:
    own = probe.steps_per_s
    if not own or not log_rate or abs(log_rate / own - 1) <= APART:
        return None
    if times := factor(log_rate / own):
        return f"the log counts {times} steps for each step of the optimizer{_why(probe, times)}"
    if times := factor(own / log_rate):
        return f"the optimizer steps {times} times for each step of the log"
    text = f"{numbers.number(log_rate)} steps/s by the log, {numbers.number(own)} by the optimizer's steps"
    return f"{text}: they count different things, or the log was not followed well"


def factor(ratio: float) -> int | None:
    """Return the whole number above 1 that a ratio of rates is, as well as such rates are known."""
    whole = round(ratio)
    near = abs(ratio - whole) <= min(_NEAR * whole, _NEAR_WHOLE)
    return whole if 1 < whole <= MOST_TIMES and near else None


def _why(probe: ProbeEvidence, times: int) -> str:
    if probe.backwards_per_step and round(probe.backwards_per_step) == times:
        return f": gradients are accumulated over {times} backward passes"
    optimizers = probe.facts.get("optimizers")
    if isinstance(optimizers, list) and len(optimizers) == times:
        return f": there are {times} optimizers"
    return ""


def _device(probe: ProbeEvidence, devices: Sequence[DeviceInfo]) -> str | None:
    if probe.facts.get("device") != "cpu" or not any(d.can.is_gpu for d in devices):
        return None
    return "the training runs on the CPU, and a GPU is sampled"


MOST_SITES = 5
_MEANS = (
    "steps",
    "span_steps",
    "steps_per_s",
    "samples_per_s",
    "step_time_p50_s",
    "step_time_p95_s",
    "data_wait_share",
    "eval_data_share",
    "background_data_share",
    "loader_start_share",
    "forward_share",
    "backward_share",
    "optimizer_share",
    "backwards_per_step",
    "inputs_per_step",
    "blocking_reads_per_step",
    "blocking_read_share",
    "syncs_per_step",
    "device_time_share",
    "gc_share",
    "cpu_cores",
)
_LARGEST = ("alloc_retries", "peak_host_mb", "peak_device_mb")


def side(part: str, evidence: Sequence[Mapping[str, Any]]) -> ProbeSide:
    """`part` (baseline, trial, …) with what its runs' evidence.json holds; `reason` if none holds any."""
    probes = [e["probe"] for e in evidence if e.get("probe")]
    reasons = [e["probe_reason"] for e in evidence if e.get("probe_reason")]
    return ProbeSide(
        part=part,
        runs=tuple(e["run"] for e in evidence),
        figures=together(probes),
        reason=None if probes else next(iter(reasons), None),
    )


def together(records: Sequence[Mapping[str, Any]]) -> ProbeFigures | None:
    """Return the figures of several runs as of one; None of none."""
    if not records:
        return None
    return ProbeFigures(
        **{name: _mean([run.get(name) for run in records]) for name in _MEANS},
        **{name: max(_known([run.get(name) for run in records]), default=None) for name in _LARGEST},
        h2d=_copies_of_runs([run.get("h2d") for run in records]),
        d2h=_copies_of_runs([run.get("d2h") for run in records]),
        rank=records[-1].get("rank"),
        world_size=records[-1].get("world_size"),
        facts=records[-1].get("facts") or {},
        sites=_sites(records),
        notes=tuple(dict.fromkeys(note for run in records for note in run.get("notes") or ())),
    )


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return math.fsum(known) / len(known) if known else None


def _copies_of_runs(records: Sequence[Mapping[str, Any] | None]) -> CopyFigures | None:
    known = [one for one in records if one]
    names = ("count", "mb", "seconds", "pinned_share")
    return CopyFigures(**{name: _mean([one.get(name) for one in known]) for name in names}) if known else None


def _sites(records: Sequence[Mapping[str, Any]]) -> tuple[SiteFigures, ...]:
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for site in (site for run in records for site in run.get("sites") or ()):
        found.setdefault((site["site"], site["kind"], site["device"]), []).append(site)
    sites = (
        SiteFigures(
            site=place,
            kind=kind,
            device=device,
            count=sum(one["count"] / len(records) for one in ones),
            seconds=sum(one["seconds"] / len(records) for one in ones),
        )
        for (place, kind, device), ones in found.items()
    )
    return tuple(sorted(sites, key=lambda site: -site.seconds)[:MOST_SITES])
