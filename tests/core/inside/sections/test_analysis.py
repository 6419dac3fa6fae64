"""Everything that is said of a report."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.section_reports import a_section

from gpudebug.core.inside.sections import Report, SectionNode, analysis

KEYS = [
    "name",
    "category",
    "calls",
    "total_s",
    "mean_s",
    "min_s",
    "max_s",
    "p50_s",
    "p95_s",
    "mem_peak_mb",
    "gpu_peak_mb",
    "share",
    "score",
]


def analysed(report: Report) -> dict[str, Any]:
    return analysis(report, "sections.json").as_json()


def test_the_documented_keys_are_there() -> None:
    tree = (SectionNode("env_step", 100, 4.0, (SectionNode("load", 100, 1.0),)),)
    found = analysed(Report((a_section("load"), a_section("env_step", mean=0.04)), tree, iterations=50))
    assert set(found) >= {"sections", "recommendations", "categories", "tree", "bottlenecks", "profiled_s"}
    first, second = found["sections"]
    assert set(first) >= set(KEYS)
    assert (first["name"], first["category"], first["share"]) == ("env_step", "Environment", 1.0)
    assert (second["name"], second["share"], second["score"]) == ("load", 0.25, pytest.approx(13.0))
    assert found["tree"][0]["children"][0]["name"] == "load"
    assert set(found["recommendations"][0]) == {"level", "section", "text"}
    json.dumps(found, allow_nan=False)


def test_the_ten_with_the_highest_score_are_the_bottlenecks() -> None:
    found = analysed(Report(tuple(a_section(f"s{i:02}", mean=0.001 * (i % 7 + i / 100)) for i in range(30))))
    scores = {r["name"]: r["score"] for r in found["sections"]}
    assert found["bottlenecks"] == sorted(scores, key=lambda n: (-scores[n], n))[:10]


NOTES = {
    "nothing": (Report(()), "no section was timed: was profiling enabled"),
    "no sync": (Report((a_section(gpu_peak_mb=5.0),)), "give the profiler sync="),
    "open": (Report((a_section(),), open=("step",)), "still open at the end: 'step'"),
    "failed": (
        Report(tuple(a_section(f"s{i}", errors=i) for i in range(8))),
        "ended by an exception: 's1' (1), 's2' (2), 's3' (3), 's4' (4), 's5' (5) and 2 more",
    ),
    "tasks": (
        Report((a_section(),), (SectionNode("gather", 1, 0.08, (SectionNode("task", 1000, 69.0),)),)),
        "what ran inside 'gather' adds up to more than it took (tasks at the same time, or recursion)",
    ),
    "its own": (Report((a_section(),), notes=("memory: psutil is missing",)), "memory: psutil is missing"),
}


@pytest.mark.parametrize(("report", "says"), NOTES.values(), ids=NOTES)
def test_what_has_to_be_known_is_noted(report: Report, says: str) -> None:
    assert says in " | ".join(analysed(report)["notes"])


def test_a_report_that_explains_itself_needs_no_more() -> None:
    why = "profiling was enabled, but no section was ever executed"
    assert analysed(Report((), notes=(why,)))["notes"] == [why]


def test_a_report_that_is_as_it_should_be_has_no_notes() -> None:
    assert analysed(Report((a_section(gpu_peak_mb=5.0),), sync=True))["notes"] == []
