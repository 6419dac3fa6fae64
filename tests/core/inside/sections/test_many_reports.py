"""Reports of several ranks and runs as one."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.section_reports import a_section

from gpudebug.core.inside.sections import Report, Section, SectionNode, merge
from gpudebug.core.inside.sections.cost import profiled_s
from gpudebug.core.inside.sections.many_reports import ESTIMATED


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
