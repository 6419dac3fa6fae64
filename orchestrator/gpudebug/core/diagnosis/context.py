"""What a profiled run, a reference and expectations add to a command's facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.words import SignalValue

Record = Mapping[str, Any]


def of_trace(trace: Record | None) -> dict[str, SignalValue | None]:
    """Signals of `Evidence.trace`, from its `analysis`; {} if there is none."""
    analysis = (trace or {}).get("analysis")
    if not analysis:
        return {}
    steps = analysis.get("steps") or {}
    copies = [c for c in analysis.get("memcpy") or () if "HtoD" in str(c.get("kind")).replace(" ", "")]
    pageable = math.fsum(c["count"] for c in copies if str(c.get("host_memory")).casefold() == "pageable")
    count = math.fsum(c["count"] for c in copies if c.get("host_memory"))
    return {
        "trace_busy_share": analysis.get("busy_share"),
        "kernels_per_step": analysis.get("kernels_per_step") or steps.get("kernels_per_step"),
        "mean_kernel_us": analysis.get("mean_kernel_us"),
        "memcpy_pageable_share": pageable / count if count else None,
        "sync_share": _waited(analysis.get("syncs"), analysis.get("span_s")),
        **_communication(analysis),
    }


def _waited(rows: Sequence[Record] | None, span: float | None) -> float | None:
    """Share of the traced time that the host waits for the device; unknown if calls are not separate.

    An operator that reads a value holds the call that waits, and other operators that read it.
    """
    if rows is None or not span:
        return None
    calls, operators = ([r["seconds"] for r in rows if r.get("kind") == k] for k in ("runtime", "operator"))
    if rows and not calls and not operators:
        return None
    return min(1.0, (math.fsum(calls) if calls else max(operators, default=0.0)) / span)


def _communication(analysis: Record) -> dict[str, SignalValue | None]:
    """Of the traced time what NCCL takes on a device in the mean, and what of it no computation hides."""
    nccl, span = analysis.get("nccl") or {}, analysis.get("span_s")
    of_all = span * max(1, len(analysis.get("devices") or ())) if span else None
    return {
        "nccl_share": _part(nccl.get("seconds"), of_all),
        "nccl_exposed_share": _part(nccl.get("exposed_s"), of_all),
        "nccl_overlap_share": nccl.get("overlapped_share"),
    }


def _part(seconds: float | None, of_all: float | None) -> float | None:
    return min(1.0, seconds / of_all) if seconds is not None and of_all else None


def of_others(
    util: float | None, reference: DiagnosisFacts | None, expected: Sequence[Record]
) -> dict[str, SignalValue | None]:
    """Against the reference (`util` is the workload's, in percent) and rows of `expectations.rows`."""
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
