"""Reports of the profiler that counts operations by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.sections import read_report
from gpudebug.core.inside.sections.operations import NOTE, as_entry, operations_of

FIGURES = {
    "total_time": 25.0,
    "call_count": 2000,
    "avg_time": 0.0125,
    "min_time": 0.01,
    "max_time": 0.02,
    "memory_peak_mb": 12.5,
    "memory_avg_mb": 0.1,
    "gpu_memory_peak_mb": 0.0,
    "gpu_memory_avg_mb": 0.0,
}


def saved(**operations: Any) -> dict[str, Any]:
    return {
        "timestamp": 1.5,
        "summary": {"total_operations": 1, "operations": operations},
        "memory_snapshots": [],
    }


def test_it_is_read_as_sections() -> None:
    found = read_report(json.dumps(saved(env=FIGURES, never={"call_count": 0})).encode(), "r.json")
    (only,) = found.sections
    assert (only.name, only.calls, only.total_s, only.mean_s, only.min_s, only.max_s) == (
        ("env", 2000, 25.0, 0.0125, 0.01, 0.02)
    )
    assert (only.mem_peak_mb, only.gpu_peak_mb, found.notes, found.iterations) == (12.5, None, (NOTE,), None)


def test_its_summary_alone_is_one_too() -> None:
    assert operations_of(saved(a=FIGURES)["summary"]) == {"a": FIGURES}
    assert operations_of({"operations": [1]}) is None
    assert operations_of([]) is None


@pytest.mark.parametrize(
    ("figures", "what"),
    [
        ({**FIGURES, "avg_time": None}, "operation 'env': avg_time is missing"),
        ({**FIGURES, "max_time": -1.0}, "section 'env': max_s is negative: -1"),
        ({**FIGURES, "call_count": "many"}, "section 'env': calls is no count: 'many'"),
        (7, "operation 'env': call_count is missing"),
    ],
)
def test_what_is_wrong_is_named(figures: Any, what: str) -> None:
    with pytest.raises(GpudebugError, match=r"r\.json") as raised:
        read_report(json.dumps(saved(env=figures), indent=1).encode(), "r.json")
    assert what in str(raised.value)


def test_a_peak_of_zero_is_unknown() -> None:
    assert as_entry("env", FIGURES)[0]["gpu_peak_mb"] is None
