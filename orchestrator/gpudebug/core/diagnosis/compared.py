"""What a profiled run, a reference and expectations add to a command's facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.diagnosis.model import Facts
from gpudebug.core.diagnosis.signals import Value

Record = Mapping[str, Any]


def of_trace(trace: Record | None) -> dict[str, Value | None]:
    """Signals of `Evidence.trace`, from its `analysis`; {} where there is none."""
    analysis = (trace or {}).get("analysis")
    if not analysis:
        return {}
    steps = analysis.get("steps") or {}
    copies = [c for c in analysis.get("memcpy") or () if "HtoD" in str(c.get("kind")).replace(" ", "")]
    pageable = math.fsum(c["count"] for c in copies if str(c.get("host_memory")).casefold() == "pageable")
    count = math.fsum(c["count"] for c in copies if c.get("host_memory"))
    span = analysis.get("span_s")
    syncs = analysis.get("syncs")
    nccl = analysis.get("nccl") or {}
    return {
        "trace_busy_share": analysis.get("busy_share"),
        "kernels_per_step": analysis.get("kernels_per_step") or steps.get("kernels_per_step"),
        "mean_kernel_us": analysis.get("mean_kernel_us"),
        "memcpy_pageable_share": pageable / count if count else None,
        "sync_share": min(1.0, math.fsum(s["seconds"] for s in syncs) / span)
        if syncs is not None and span
        else None,
        "nccl_share": nccl.get("share_of_busy"),
        "nccl_overlap_share": nccl.get("overlapped_share"),
    }


def of_others(
    util: float | None, reference: Facts | None, expected: Sequence[Record]
) -> dict[str, Value | None]:
    """Against the reference (`util` is the workload's, in percent) and rows of `core.expected.told`."""
    best = reference.signals.get("gpu_util") if reference else None
    shares = [share for row in expected if (share := _share_of_expected(row)) is not None]
    return {
        "reference_gap_pp": float(best) - util if best is not None and util is not None else None,
        "expected_share": min(shares, default=None),
    }


def _share_of_expected(row: Record) -> float | None:
    """Of a rate its share of the least that is expected; of a time the most that is over what it took."""
    least, most = row["range"]
    measured = row.get("measured")
    if measured is None:
        return None
    if str(row["figure"]).startswith(("step_time", "latency", "section")):
        return most / measured if measured else None
    return measured / least if least else None
