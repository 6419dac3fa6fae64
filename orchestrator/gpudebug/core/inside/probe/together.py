"""What the probe reported in the runs of one side, as of one run: for people, and to compare two sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.answers.probe import CopyFigures, ProbeFigures, ProbeSide, SiteFigures

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
        h2d=_copies([run.get("h2d") for run in records]),
        d2h=_copies([run.get("d2h") for run in records]),
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


def _copies(records: Sequence[Mapping[str, Any] | None]) -> CopyFigures | None:
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
