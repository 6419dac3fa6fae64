"""What the probe reported in the runs of one side, as of one run: for people, and to compare two sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

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
    "blocking_reads_per_step",
    "blocking_read_share",
    "syncs_per_step",
    "device_time_share",
    "gc_share",
    "cpu_cores",
)
_LARGEST = ("alloc_retries", "peak_host_mb", "peak_device_mb")


def side(part: str, evidence: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`part` (baseline, trial, …) with what its runs' evidence.json holds; `reason` if none holds any."""
    probes = [e["probe"] for e in evidence if e.get("probe")]
    reasons = [e["probe_reason"] for e in evidence if e.get("probe_reason")]
    return {
        "part": part,
        "runs": [e["run"] for e in evidence],
        "figures": together(probes),
        "reason": None if probes else next(iter(reasons), None),
    }


def together(records: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The figures of several runs in the shape of a `ProbeEvidence`; None of none.

    Means of those that are known, the largest of peaks, and of sites those that took the most time; `facts`
    are the last run's.
    """
    if not records:
        return None
    return {
        **{name: _mean([run.get(name) for run in records]) for name in _MEANS},
        **{name: max(_known([run.get(name) for run in records]), default=None) for name in _LARGEST},
        "h2d": _copies([run.get("h2d") for run in records]),
        "d2h": _copies([run.get("d2h") for run in records]),
        **{name: records[-1].get(name) for name in ("rank", "world_size")},
        "facts": records[-1].get("facts") or {},
        "sites": _sites(records),
        "notes": list(dict.fromkeys(note for run in records for note in run.get("notes") or ())),
    }


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return math.fsum(known) / len(known) if known else None


def _copies(records: Sequence[Mapping[str, Any] | None]) -> dict[str, float | None] | None:
    known = [one for one in records if one]
    names = ("count", "mb", "seconds", "pinned_share")
    return {name: _mean([one.get(name) for one in known]) for name in names} if known else None


def _sites(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Counts and seconds of a mean run."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for site in (site for run in records for site in run.get("sites") or ()):
        key = (site["site"], site["kind"], site["device"])
        one = found.setdefault(key, dict(zip(("site", "kind", "device"), key, strict=True)))
        one["count"] = one.get("count", 0) + site["count"] / len(records)
        one["seconds"] = one.get("seconds", 0.0) + site["seconds"] / len(records)
    return sorted(found.values(), key=lambda one: -one["seconds"])[:MOST_SITES]
