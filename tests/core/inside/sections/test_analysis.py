"""Everything that is said of a report."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.section_reports import a_section
from tests.support.trials import run

from gpudebug.core.answers.show import SectionMean
from gpudebug.core.inside.sections import (
    Report,
    Section,
    SectionNode,
    beside,
    merge,
    outline,
    sections_evidence,
    summed_up,
    unreadable,
)
from gpudebug.core.inside.sections.analysis import ESTIMATED
from gpudebug.core.inside.sections.cost import profiled_s
from gpudebug.core.records import Evidence

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
    return summed_up(report, "sections.json").as_json()


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


def with_sections(**means: float) -> Evidence:
    report = Report(tuple(a_section(name, mean=mean) for name, mean in means.items()))
    return run(sections=sections_evidence(report))


def test_the_forty_with_the_most_time_are_kept() -> None:
    report = Report(tuple(a_section(f"env_{i}", mean=0.001 * (i + 1)) for i in range(60)))
    found = sections_evidence(report, ["one note"])
    assert (found.count, len(found.sections), found.notes) == (60, 40, ("one note",))
    assert [s.name for s in found.sections[:2]] == ["env_59", "env_58"]
    assert found.sections[0].category == "Environment"
    assert 0 < found.sections[0].share < 0.04


def test_a_long_name_is_cut_in_evidence() -> None:
    (only,) = sections_evidence(Report((a_section("x" * 5000),))).sections
    assert len(only.name) == 200


def test_a_broken_report_is_only_a_note() -> None:
    found = unreadable("sections.json is cut off")
    assert (found.count, found.sections, found.notes) == (0, (), ("sections.json is cut off",))


def test_a_tree_in_lines() -> None:
    load = SectionNode("load", 10, 6.0, (SectionNode("decode", 10, 2.0), SectionNode("read", 10, 5.0)))
    lines = outline(
        [SectionNode("save", 1, 1.0), SectionNode("step", 10, 10.0, (SectionNode("forward", 10, 3.0), load))]
    )
    assert [(x["depth"], x["name"], x["total_s"], x["own_s"]) for x in lines] == [
        (0, "step", 10.0, 1.0),
        (1, "load", 6.0, 0.0),
        (2, "read", 5.0, 5.0),
        (2, "decode", 2.0, 2.0),
        (1, "forward", 3.0, 3.0),
        (0, "save", 1.0, 1.0),
    ]


def test_a_tree_of_any_size_has_few_lines() -> None:
    deep = SectionNode("leaf", 1, 1.0)
    for _ in range(5000):
        deep = SectionNode("x" * 5000, 1, 1.0, (deep,))
    lines = outline([deep])
    assert (len(lines), len(lines[-1]["name"]), lines[-1]["depth"]) == (60, 200, 59)


def test_two_sides_are_means_over_their_runs() -> None:
    before = [with_sections(load=0.03, step=0.01), with_sections(load=0.05, step=0.01, extra=0.01)]
    after = [with_sections(load=0.01, step=0.015)]
    rows = beside(before, after)
    assert [r.name for r in rows] == ["load", "step"]
    assert rows[0].a == SectionMean(mean_s=0.04, share=pytest.approx(0.7, abs=0.2))
    assert rows[0].ratio == 4.0
    # As they were recorded they are the same.
    assert beside([e.model_dump(mode="json") for e in before], after) == rows


def test_what_one_side_lacks_is_unknown() -> None:
    (row,) = beside([run()], [with_sections(load=0.01)])
    assert (row.a, row.ratio) == (None, None)
    assert beside([run()], [run()]) == beside([{}], []) == ()


@st.composite
def sections(draw: st.DrawFn) -> Section:
    calls = draw(st.integers(1, 10**6))
    low, p50, mean, high = sorted(draw(st.floats(0, 1e4)) for _ in range(4))
    known = draw(st.booleans())
    return Section(
        name=draw(st.sampled_from("abc")),
        calls=calls,
        total_s=calls * mean,
        self_s=calls * mean,
        mean_s=mean,
        min_s=low,
        max_s=high,
        p50_s=p50 if known else None,
        mem_peak_mb=draw(st.none() | st.floats(0, 1e6)),
        errors=draw(st.integers(0, 5)),
    )


REPORTS = st.lists(
    st.lists(sections(), max_size=3, unique_by=lambda s: s.name).map(
        lambda found: Report(sections=tuple(found), iterations=10, enabled_s=5.0)
    ),
    min_size=1,
    max_size=4,
)


@given(REPORTS)
def test_sums_add_up_and_extremes_are_kept(reports: list[Report]) -> None:
    merged = merge(reports)
    for name, found in itertools.groupby(
        sorted((s for r in reports for s in r.sections), key=lambda s: s.name), key=lambda s: s.name
    ):
        parts = list(found)
        (whole,) = (s for s in merged.sections if s.name == name)
        assert whole.calls == sum(s.calls for s in parts)
        assert whole.errors == sum(s.errors for s in parts)
        assert math.isclose(whole.total_s, sum(s.total_s for s in parts))
        assert whole.min_s == min(s.min_s for s in parts)
        assert whole.max_s == max(s.max_s for s in parts)
        assert math.isclose(whole.mean_s, sum(s.total_s for s in parts) / whole.calls, abs_tol=1e-9)
        assert whole.min_s <= whole.mean_s <= whole.max_s
        if all(s.p50_s is not None for s in parts):
            assert min(s.p50_s for s in parts) <= whole.p50_s <= max(s.p50_s for s in parts)
        else:
            assert whole.p50_s is None
    assert merged.iterations == 10 * len(reports)
    assert math.isclose(profiled_s(merged), sum(profiled_s(r) for r in reports))


@given(REPORTS)
def test_the_order_of_reports_does_not_matter(reports: list[Report]) -> None:
    def figures(report: Report) -> list[tuple[object, ...]]:
        return sorted((s.name, s.calls, s.min_s, s.max_s, s.mem_peak_mb) for s in report.sections)

    assert figures(merge(reports)) == figures(merge(reports[::-1]))


def test_one_report_is_itself() -> None:
    only = Report(sections=(a_section(),), rank=2)
    assert merge([only]) is only


def test_percentiles_are_said_to_be_estimates() -> None:
    first, second = a_section(calls=300, p95_s=0.1), a_section(calls=100, p95_s=0.5)
    merged = merge([Report((first,)), Report((second,))])
    assert merged.sections[0].p95_s == pytest.approx(0.2)
    assert merged.notes == (ESTIMATED,)
    assert merge([Report((first,)), Report((a_section("other"),))]).notes == ()


def test_trees_are_put_on_top_of_each_other() -> None:
    one = Report((), tree=(SectionNode("step", 2, 2.0, (SectionNode("load", 2, 1.0),)),))
    two = Report(
        (), tree=(SectionNode("step", 3, 1.0, (SectionNode("eval", 1, 0.5),)), SectionNode("save", 1, 0.1))
    )
    assert merge([one, two]).tree == (
        SectionNode("step", 5, 3.0, (SectionNode("load", 2, 1.0), SectionNode("eval", 1, 0.5))),
        SectionNode("save", 1, 0.1),
    )


def test_ranks_of_a_run_keep_the_rate_of_one_process() -> None:
    ranks = [Report((), rank=i, iterations=100, enabled_s=10.0, sync=i == 0) for i in range(4)]
    merged = merge(ranks)
    assert (merged.iterations_per_s, merged.processes, merged.rank, merged.sync) == (10.0, 4, None, False)
    assert merge([*ranks, Report((), iterations=None, enabled_s=1.0)]).iterations_per_s is None


def test_what_differs_between_reports_is_not_made_up() -> None:
    merged = merge([Report((), python="3.11"), Report((), python="3.12")])
    assert merged.python is None
    assert merge([Report((), python="3.11"), Report((), python="3.11")]).python == "3.11"
