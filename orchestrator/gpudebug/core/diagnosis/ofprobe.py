"""What was reported from inside a training, seen from outside, or sampled of its devices -> signals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.answers.diagnosis import BusyPlace, StepParts
from gpudebug.core.evidence import devices
from gpudebug.core.evidence.devices import awaited_in, awaited_of, awaited_text
from gpudebug.core.inside.attached.foreign_frames import OWN_PROCESS, WITH_WORKERS
from gpudebug.core.inside.stacks import shares
from gpudebug.core.inside.stacks.evaluation import hottest
from gpudebug.core.records import AttachedEvidence, Evidence, StacksEvidence
from gpudebug.core.statistics.across import LEAST, WORKING, across
from gpudebug.core.words import SignalValue

Record = Mapping[str, Any]

_AS_TOLD = (
    *("data_wait_share", "eval_data_share", "background_data_share", "loader_start_share"),
    *("loader_restart_share", "loader_starts_per_step"),
    *("forward_share", "backward_share", "optimizer_share"),
    *("blocking_reads_per_step", "blocking_read_share", "syncs_per_step", "device_time_share"),
    *("gc_share", "stall_share", "stall_every_steps", "slowing_share", "backwards_per_step"),
    "inputs_per_step",
)
_PARTS = ("forward_share", "backward_share", "optimizer_share")
_WAITS = ("data_wait_share", "eval_data_share", "loader_start_share")
_FLAGS = ("anomaly", "launch_blocking", "cudnn_benchmark")


def signals(evidence: Sequence[Record], cores: float | None) -> dict[str, SignalValue | None]:
    """Signals of the probe, of one run or the means of several; facts are the last run's. {} of none."""
    probes = [p for e in evidence if (p := e.get("probe"))]
    if not probes:
        p50 = mean([e.get("step_time_p50_s") for e in evidence])
        return {"step_time_s": p50, "batch_size": mean([e.get("batch_size") for e in evidence])}
    facts = probes[-1].get("facts") or {}
    found: dict[str, SignalValue | None] = {name: mean([p.get(name) for p in probes]) for name in _AS_TOLD}
    p50, p95 = (mean([p.get(f"step_time_{q}_s") for p in probes]) for q in ("p50", "p95"))
    ranks = [r for p in probes for r in p.get("ranks") or ()]
    return {
        **found,
        "weights": _weights(facts),
        "slowing_part": probes[-1].get("slowing_part"),
        "probe_steps": mean([p.get("steps") for p in probes]),
        "step_time_s": p50 if p50 is not None else mean([e.get("step_time_p50_s") for e in evidence]),
        "step_time_spread": p95 / p50 if p50 and p95 is not None else None,
        "unattributed_share": _unattributed(found),
        "main_cpu_cores": mean([p.get("cpu_cores") for p in probes]),
        "alloc_retries": max((n for p in probes if (n := p.get("alloc_retries")) is not None), default=None),
        "world_size": _world(probes[-1], facts),
        "rank_skew": _skew(ranks),
        "batch_size": mean([e.get("batch_size") for e in evidence]) or finite(facts.get("batch_size")),
        **_acts(probes),
        **_copies(probes),
        **_loader(facts, cores),
        **_settings(facts, cores, len(probes[-1].get("ranks") or ()) or 1),
    }


def _weights(facts: Record) -> float | None:
    known = [finite(one.get("weights")) for one in _mappings(facts.get("optimizers"))]
    return max((w for w in known if w), default=None)


def finite(value: object) -> float | None:
    """Return a finite number; None for all else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def mean(values: Sequence[object]) -> float | None:
    """Of those that are known."""
    known = [v for value in values if (v := finite(value)) is not None]
    return math.fsum(known) / len(known) if known else None


def _unattributed(found: Mapping[str, SignalValue | None]) -> float | None:
    """Of an iteration's time what is in no part of it; unknown if a part is.

    A wait that was not reported is 0, but for batches that other threads fetch.
    """
    parts = [finite(found.get(name)) for name in _PARTS]
    known = [p for p in parts if p is not None]
    waits_unknown = found.get("data_wait_share") is None and found.get("background_data_share") is not None
    if len(known) < len(parts) or waits_unknown:
        return None
    waits = [finite(found.get(name)) or 0.0 for name in _WAITS]
    return min(1.0, max(0.0, 1.0 - math.fsum((*known, *waits))))


def _world(probe: Record, facts: Record) -> float | None:
    distributed = facts.get("distributed")
    size = distributed.get("world_size") if isinstance(distributed, Mapping) else None
    return finite(probe.get("world_size")) or finite(size)


def _skew(ranks: Sequence[Record]) -> float | None:
    waits = [w for r in ranks if (w := finite(r.get("data_wait_share"))) is not None]
    return max(waits) - min(waits) if len(waits) > 1 else None


def costs(found: Mapping[str, SignalValue], evidence: Sequence[Record]) -> dict[str, SignalValue | None]:
    """What one batch, one sample and one weight cost, without what the thread waited for a core; of loader
    workers a sample costs what they compute.

    Shares are of all steps, so a step is the mean one: the median has no batch in it where several share one.
    """
    probes = [p for e in evidence if (p := e.get("probe"))]
    rate, batch = mean([p.get("steps_per_s") for p in probes]), finite(found.get("batch_size"))
    step = 1.0 / rate if rate else finite(found.get("step_time_s"))
    if step is None:
        return {}
    rows = mean([p.get("samples_per_s") for p in probes])
    in_step = rows / rate / (finite(found.get("world_size")) or 1.0) if rows and rate else batch
    ran = step * (1.0 - (finite(found.get("starved_share")) or 0.0))
    wait, optimizer = finite(found.get("data_wait_share")), finite(found.get("optimizer_share"))
    weights = finite(found.get("weights"))
    fetch = wait * ran if wait is not None and found.get("loader_workers") == 0 else None
    runs, workers = finite(found.get("worker_running_share")), finite(found.get("loader_workers"))
    starved = finite(found.get("worker_starved_share")) or 0.0
    made = max(0.0, runs - starved) * workers * step if runs is not None and workers else fetch
    return {
        "fetch_s": fetch * (batch / in_step if batch and in_step else 1.0) if fetch is not None else None,
        "sample_cost_s": made / in_step if made is not None and in_step else None,
        "optimizer_ns_per_weight": optimizer * ran / weights * 1e9
        if optimizer is not None and weights
        else None,
    }


def _acts(probes: Sequence[Record]) -> dict[str, SignalValue | None]:
    """Of forwards in which a policy acts; 0 a step if the rows of training's forwards are known alone."""
    train = mean([p.get("rows_per_backward") for p in probes])
    known = [(p, a) for p in probes if (a := p.get("acts"))]
    per_step = mean([_per(a.get("count"), p.get("span_steps")) for p, a in known])
    return {
        "train_rows": train,
        "act_rows": mean([_per(a.get("rows"), a.get("count")) for _, a in known]),
        "acts_per_step": 0.0 if per_step is None and train is not None else per_step,
    }


def _copies(records: Sequence[Record]) -> dict[str, SignalValue | None]:
    """Per step and as shares of the span; unknown if a run names no span."""
    found: dict[str, SignalValue | None] = {}
    for way in ("h2d", "d2h"):
        known = [(p, c) for p in records if (c := p.get(way))]
        found[f"{way}_copies_per_step"] = mean([_per(c.get("count"), p.get("span_steps")) for p, c in known])
        found[f"{way}_mb_per_step"] = mean([_per(c.get("mb"), p.get("span_steps")) for p, c in known])
        found[f"{way}_share"] = mean([_per(c.get("seconds"), _span(p)) for p, c in known])
        found[f"{way}_pinned_share"] = mean([c.get("pinned_share") for _, c in known])
    return {
        name: value for name, value in found.items() if name not in ("d2h_mb_per_step", "d2h_pinned_share")
    }


def _span(probe: Record) -> float | None:
    start, end = finite(probe.get("start_s")), finite(probe.get("end_s"))
    return end - start if start is not None and end is not None else None


def _per(value: object, by: object) -> float | None:
    over, under = finite(value), finite(by)
    return over / under if over is not None and under else None


def _loader(facts: Record, cores: float | None) -> dict[str, SignalValue | None]:
    """Settings of the loader that feeds the training: of several, the one that is fetched from the most."""
    if not facts:
        return {}
    training = [one for one in _mappings(facts.get("loaders")) if one.get("training") is not False]
    if not training:
        return {"loader_used": False}
    one = max(training, key=lambda loader: finite(loader.get("fetched")) or 0)
    workers = finite(one.get("workers"))
    return {
        "loader_used": True,
        "loader_workers": workers,
        "loader_workers_over_cores": _per(workers, cores),
        "loader_persistent": _truth(one.get("persistent_workers")) if workers else None,
        "loader_prefetch": finite(one.get("prefetch_factor")),
        "loader_pinned": _truth(one.get("pin_memory")),
    }


def _mappings(records: object) -> list[Record]:
    """Of a list that a program wrote, the items that are what they should be."""
    return [one for one in records if isinstance(one, Mapping)] if isinstance(records, list) else []


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _settings(facts: Record, cores: float | None, processes: int) -> dict[str, SignalValue | None]:
    """`processes` train on this host's `cores`; each has the threads that one of them reports."""
    amp, compiled, own = facts.get("amp"), facts.get("compile"), finite(facts.get("threads"))
    threads = own * processes if own is not None else None
    place, distributed = facts.get("device"), facts.get("distributed")
    steps = [n for o in _mappings(facts.get("optimizers")) if (n := finite(o.get("steps")))]
    deterministic = [
        v for key in ("deterministic", "cudnn_deterministic") if (v := _truth(facts.get(key))) is not None
    ]
    return {
        **{name: _truth(facts.get(name)) for name in _FLAGS},
        "deterministic": any(deterministic) if deterministic else None,
        "trains_on": str(place).partition(":")[0] if place else None,
        "threads": threads,
        "threads_over_cores": _per(threads, cores),
        "optimizers": float(len(steps)) if steps else None,
        "optimizer_steps_per_iteration": math.fsum(steps) / max(steps) if steps else None,
        "amp": _truth(amp.get("enabled")) if isinstance(amp, Mapping) else None,
        "parameter_dtype": str(facts["parameter_dtype"]) if facts.get("parameter_dtype") else None,
        "compiled": isinstance(compiled, Mapping) if "compile" in facts else None,
        "graph_breaks": finite(compiled.get("graph_breaks")) if isinstance(compiled, Mapping) else None,
        "backend": str(distributed["backend"])
        if isinstance(distributed, Mapping) and "backend" in distributed
        else None,
    }


def device_signals(evidence: Sequence[Record]) -> dict[str, SignalValue | None]:
    """Of several runs the means. A device is waited for if it is the same one in every run that shows one.

    That none is waited for is a share of 0; where power does not tell, it is unknown.
    """
    share = mean([e.get("working") for e in evidence])
    busy = mean([e.get("utilisation") for e in evidence if e.get("working") is not None])
    told = [e for e in evidence if _shows(e)]
    waited = awaited_in(told)
    shares = [one.share if waited and (one := awaited_of(e)) else 0.0 for e in told]
    return {
        "working_share": share,
        "busy_waiting_share": None if share is None or busy is None else max(0.0, busy / 100 - share),
        "awaited_share": mean(shares),
        "awaited_device": awaited_text(waited) if waited is not None else None,
    }


def telling(evidence: Sequence[Record], judged_by: str | None = None) -> dict[str, SignalValue | None]:
    """Return the utilisation of several devices that does not mislead, in percent, and which it is:
    `judged_by`, criteria.devices, if that is not their mean; else what tells. Nothing if the mean does."""
    chosen = judged_by if judged_by in (LEAST, WORKING) else devices.telling(evidence)
    util: float | None = None
    if chosen == WORKING:
        share = mean([e.get("working") for e in evidence])
        util = None if share is None else 100 * share
    elif chosen == LEAST:
        figures = across(*(e.get("devices") or () for e in evidence))
        util = next((one.least.value for one in figures if one.figure == "gpu_util"), None)
    return {} if util is None else {"telling_util": util, "telling_devices": chosen}


def _shows(e: Record) -> bool:
    """Tell whether power tells of every one of several devices, and what it tells can be read."""
    told = e.get("working") is not None and len(e.get("devices") or ()) > 1
    return told and (not e.get("awaited") or awaited_of(e) is not None)


_PHASES = {
    "data": "data_wait_share",
    "forward": "forward_share",
    "backward": "backward_share",
    "optimizer": "optimizer_share",
}
_FEW = 20
"""Fewer looks than that show no shares of the time."""


def attached_signals(
    evidence: Sequence[Mapping[str, Any]], stacks: StacksEvidence | None, cores: float | None
) -> dict[str, SignalValue | None]:
    """Signals of a run that was a look at a job; {} for any other, and where the probe reported."""
    records = [AttachedEvidence.model_validate(one) for e in evidence if (one := e.get("attached"))]
    if not records or any(e.get("probe") for e in evidence):
        return {}
    seen = records[-1]
    main = seen.main
    return {
        **phases(stacks),
        **_attached_loader(seen, cores),
        "main_cpu_cores": main.cores if main else None,
        "world_size": float(len(seen.of("rank")) + 1) if seen.of("rank") else None,
    }


def phases(stacks: StacksEvidence | None) -> dict[str, SignalValue | None]:
    """Return the parts of a step by the frames of PyTorch in the stacks, if there are any."""
    training = stacks.training if stacks else None
    if training is None or training.samples < _FEW or training.seconds <= 0:
        return {}
    spent = dict.fromkeys(_PHASES, 0.0)
    for one in shares.seen(training):
        if one.phase in spent:
            spent[one.phase] += one.seconds
    if not any(spent.values()):
        return {}
    found = {name: min(1.0, spent[phase] / training.seconds) for phase, name in _PHASES.items()}
    return {**found, "unattributed_share": max(0.0, 1.0 - sum(found.values()))}


def _attached_loader(seen: AttachedEvidence, cores: float | None) -> dict[str, SignalValue | None]:
    """Return the loader that feeds the training, by the iterator in its stacks and the workers below it."""
    main = seen.main
    workers = float(len(seen.of("worker")))
    if main is None or main.loader not in (OWN_PROCESS, WITH_WORKERS):
        return {"loader_used": True, "loader_workers": workers} if workers else {}
    count = workers if main.loader == WITH_WORKERS else 0.0
    # Workers that are not seen as such (another user's, of an old PyTorch) are no 0.
    if main.loader == WITH_WORKERS and not workers:
        return {"loader_used": True}
    return {
        "loader_used": True,
        "loader_workers": count,
        "loader_workers_over_cores": count / cores if cores else None,
    }


_STEP_PARTS: Mapping[str, str] = {
    "data_wait": "data_wait_share",
    "forward": "forward_share",
    "backward": "backward_share",
    "optimizer": "optimizer_share",
}
_PLACES = 3
_LEAST = 0.05


def step_parts(evidence: Evidence) -> StepParts:
    """Return the parts of a step by the probe, of a job that ran already by its stacks, what is left as
    `other`; and the lines with the most time."""
    probe = evidence.probe
    rate = probe.steps_per_s if probe is not None else evidence.steps_per_s
    return StepParts(
        time_s=1 / rate if rate else None,
        median_s=probe.step_time_p50_s if probe is not None else evidence.step_time_p50_s,
        pauses=probe.stall_share if probe is not None else None,
        shares=_shares(evidence),
        places=tuple(_places(evidence)),
    )


def _shares(evidence: Evidence) -> dict[str, float]:
    probe = evidence.probe
    if probe is None and evidence.attached is not None:
        seen = phases(evidence.stacks)
        found = {name: finite(seen.get(field)) for name, field in _STEP_PARTS.items()}
    else:
        found = {} if probe is None else {name: getattr(probe, field) for name, field in _STEP_PARTS.items()}
    known = {name: share for name, share in found.items() if share is not None}
    if not known:
        return {}
    return {**known, "other": max(0.0, 1.0 - sum(known.values()))}


def _places(evidence: Evidence) -> list[BusyPlace]:
    training = evidence.stacks.training if evidence.stacks else None
    if training is None or not training.seconds:
        return []
    hot = [one for one in hottest(training)[:_PLACES] if one.share >= _LEAST]
    return [
        BusyPlace(site=h.site, function=h.function, share=h.share, state=h.state, code=h.code) for h in hot
    ]
