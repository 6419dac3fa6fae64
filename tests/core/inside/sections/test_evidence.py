"""Sections in the evidence of runs."""

from __future__ import annotations

import pytest
from tests.support.section_reports import a_section
from tests.support.trials import run

from gpudebug.core.answers.probe import SectionMean
from gpudebug.core.inside.sections import Report, SectionNode, beside, outline, sections_evidence, unreadable
from gpudebug.core.records import Evidence


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
