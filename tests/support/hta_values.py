"""What HolisticTraceAnalysis says of a trace, as JSON; run by a Python in which it is installed.

`python hta_values.py TRACE...` prints {trace: {value name: microseconds, share or depth}}, as the package's
own functions give them by default: of the work that was launched before the last profiler step began. Times
are not rounded to whole microseconds (HTA_DISABLE_NS_ROUNDING).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
logging.disable(logging.CRITICAL)


def values(path: str) -> dict[str, Any]:
    """The values that the package defines for this trace; those on which it fails are left out."""
    from hta.trace_analysis import TraceAnalysis

    path = os.path.abspath(path)
    found = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path))
    parts: tuple[Callable[[Any], dict[str, Any]], ...] = (
        temporal,
        idle,
        kernels,
        overlap,
        copies,
        queue,
        delay,
    )
    told: dict[str, Any] = {}
    for part in parts:
        # Traces without device events, copies or launches make it fail in many ways.
        try:
            told.update(part(found))
        except Exception as e:  # noqa: BLE001
            told.setdefault("failed", []).append(f"{part.__name__}: {type(e).__name__}")
    return told


def temporal(found: Any) -> dict[str, float]:
    row = found.get_temporal_breakdown(visualize=False).iloc[0]
    return {key: float(row[f"{key}_time(us)"]) for key in ("idle", "compute", "non_compute", "kernel")}


def idle(found: Any) -> dict[str, float]:
    table = found.get_idle_time_breakdown(visualize=False)[0]
    return {f"{r.idle_category} of stream {r.stream}": float(r.idle_time) for r in table.itertuples()}


def kernels(found: Any) -> dict[str, Any]:
    _, table = found.get_gpu_kernel_breakdown(visualize=False, num_kernels=10**6, duration_ratio=1.0)
    return {"kernels": {r["name"]: [float(r["sum (us)"]), float(r["max (us)"])] for _, r in table.iterrows()}}


def overlap(found: Any) -> dict[str, float]:
    return {
        "overlap": float(found.get_comm_comp_overlap(visualize=False).comp_comm_overlap_pctg.iloc[0]) / 100
    }


def copies(found: Any) -> dict[str, float]:
    """The mean bandwidth of the single copies by kind, from what its bandwidth series begins with."""
    from hta.utils.utils import get_kernel_type, get_memory_kernel_type

    table, names = found.t.get_trace(0), found.t.symbol_table.get_sym_table()
    table = table[table["stream"].ne(-1) & table["memory_bw_gbps"].ge(0)].copy()
    table["text"] = [names[i] for i in table["name"]]
    table = table[[get_kernel_type(n) == "MEMORY" for n in table["text"]]]
    by_kind = table.groupby(table["text"].map(get_memory_kernel_type)).memory_bw_gbps.mean()
    return {f"bandwidth of {kind.split()[-1]}": float(rate) for kind, rate in by_kind.items()}


def queue(found: Any) -> dict[str, float]:
    table = found.get_queue_length_summary()
    return {f"queue of stream {i[1]}": float(r[("queue_length", "max")]) for i, r in table.iterrows()}


def delay(found: Any) -> dict[str, float]:
    table = found.get_cuda_kernel_launch_stats(visualize=False)[0]
    return {"launches": len(table), "launch_delay": float(table.launch_delay.mean())}


if __name__ == "__main__":
    said = {}
    for name in sys.argv[1:]:
        try:
            said[name] = values(name)
        except Exception as e:  # noqa: BLE001
            said[name] = {"failed": [f"{type(e).__name__}: {e}"]}
    print(json.dumps(said))
