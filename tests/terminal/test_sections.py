"""Sections as text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.support.answers import read
from tests.support.section_reports import a_section, node, report, section

from gpudebug.core.answers.sections import SectionsAnswer
from gpudebug.core.answers.show import SectionRow
from gpudebug.core.compare.sections import compare
from gpudebug.core.inside import sections as core
from gpudebug.core.inside.sections import Report, SectionNode
from gpudebug.terminal.sections import ROWS, beside, head, of_run, sections


def answer(made: Report, **more: Any) -> SectionsAnswer:
    return replace(core.summed_up(made, "sections.json"), **more)


# The figures of the table that people know.
KNOWN = report(
    section("env_rgb_observation_generation", 2000, 0.0125),
    section("convlstm_forward_pass", 2000, 0.0082, mem_peak_mb=20.0, gpu_peak_mb=512.0),
    section("env_rgb_rendering", 2000, 0.0079),
    tree=[node("training_total", 1, 98.8)],
)


def known() -> SectionsAnswer:
    return answer(core.read_report(json.dumps(KNOWN).encode(), "f"))


def test_the_bottlenecks_have_the_form_that_people_know() -> None:
    text = sections(known())
    table = text[text.index("TOP 10") :].split("\n\n")[0].splitlines()
    assert table == [
        "TOP 10 BOTTLENECKS:",
        "------------------------------------------------------------",
        "Operation                      Score    Time%   Avg(ms)   Calls",
        "------------------------------------------------------------",
        "convlstm_forward_pass          27.1     16.6    8.2       2000",
        "env_rgb_observation_generation 13.9     25.3    12.5      2000",
        "env_rgb_rendering              8.8      16.0    7.9       2000",
    ]


def test_the_summary_has_the_columns_that_people_know() -> None:
    lines = sections(known()).splitlines()
    titles = next(line for line in lines if line.startswith("Operation"))
    assert titles.split() == (
        ["Operation", "Calls", "Total(s)", "Avg(s)", "Min(s)", "Max(s)", "Mem", "Peak(MB)", "GPU", "Peak(MB)"]
    )
    row = next(line for line in lines if line.startswith("convlstm_forward_pass"))
    assert row.split() == (
        ["convlstm_forward_pass", "2000", "16.400", "0.008200", "0.004100", "0.016400", "20.0", "512.0"]
    )
    unknown = next(line for line in lines if line.startswith("env_rgb_rendering"))
    assert unknown.split()[-2:] == ["unknown", "unknown"]
    assert len(row) == len(titles) == len(unknown)


def test_the_tree_marks_where_the_time_goes() -> None:
    load = SectionNode("load", 10, 2.0, (SectionNode("decode", 10, 1.6),))
    tree = (SectionNode("step", 10, 4.0, (SectionNode("forward", 10, 0.5), load)),)
    text = sections(answer(Report((a_section("step"),), tree)))
    lines = text[text.index("TREE") :].split("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["step", "load", "decode", "forward"]
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, 4, 6, 4]
    assert ["BOTTLENECK" in line for line in lines] == [False, False, True, False]
    assert "50.0%" in lines[1] and "80.0%" in lines[2]


def test_the_mark_is_on_the_most_own_time() -> None:
    tree = (SectionNode("step", 10, 4.0, (SectionNode("a", 10, 1.5), SectionNode("b", 10, 2.0))),)
    (marked,) = [x for x in sections(answer(Report((a_section(),), tree))).splitlines() if "<-- BOTT" in x]
    assert marked.split()[0] == "b"


def test_tasks_at_the_same_time_are_multiples() -> None:
    tree = (SectionNode("gather", 1, 0.1, (SectionNode("task", 1000, 86.0),)),)
    text = sections(answer(Report((a_section(),), tree)))
    (row,) = [line for line in text.splitlines() if line.startswith("    task")]
    assert row.split()[:4] == ["task", "86.000", "s", "860x"]


def test_a_flat_tree_is_none() -> None:
    assert "TREE" not in sections(
        answer(Report((a_section(),), (SectionNode("a", 1, 1.0), SectionNode("b", 1, 1.0))))
    )


def test_a_long_table_is_cut_unless_it_goes_to_a_file() -> None:
    many = answer(Report(tuple(a_section(f"s{i:03}") for i in range(200))))
    assert "… and 160 more (--output and --detailed write them all)" in sections(many)
    whole = sections(many, whole=True)
    assert "… and" not in whole
    assert all(f"s{i:03}" in whole for i in range(200))
    assert sum(line.startswith("s") for line in sections(many).splitlines()) == ROWS + 10 + 1


def test_names_cannot_break_lines() -> None:
    text = sections(answer(Report((a_section("two\nlines\x1b[31m" + "x" * 500),))))
    assert all(line.isprintable() for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 160


def test_nothing_timed_explains_itself() -> None:
    text = sections(answer(Report(())))
    assert text.startswith("sections.json: sections of one process, 0 s profiled")
    assert "no section was timed: was profiling enabled" in text


def test_the_head_says_how_much_and_where() -> None:
    made = Report((a_section("forward"),), iterations=100, enabled_s=10.0, warmup=3, rank=2)
    assert head(answer(made)) == (
        "sections.json: sections of rank 2, 1 s profiled, 100 iterations, 10 iterations/s, "
        "3 of warm-up left out, most in forward (100.0%)"
    )


def compared(a: Report, b: Report) -> str:
    return sections(answer(a, comparison=compare([a], [b], ("a.json", "b.json"))))


def test_two_reports_side_by_side() -> None:
    a = Report((a_section("step", mean=0.04), a_section("old")), iterations=100, enabled_s=10.0, warmup=1)
    text = compared(a, Report((a_section("step", mean=0.02),), iterations=100, enabled_s=5.0, warmup=1))
    rows = {
        line.split()[0]: line.split()[1:] for line in text[text.index("SIDE BY SIDE") :].splitlines() if line
    }
    assert rows["step"] == ["40.0", "20.0", "80.0", "20.0", "10.0", "40.0", "2.00x"]
    assert rows["old"] == ["10.0", "5.0", "20.0", "unknown", "unknown", "unknown"]
    assert "Throughput: A 10 iterations/s, B 20 iterations/s" in text
    assert "Verdict: faster: B is 2.00x as fast as A by throughput (95% CI" in text
    assert "  [x] Is the section that takes the most time of its own slower in B?" in text
    assert "  [!] Were the same sections timed in both?" in text
    assert "  [ ] Is torch.compile used in both, or in neither?" in text


def test_a_verdict_that_cannot_be_given() -> None:
    assert "Verdict: cannot tell: they have neither iterations nor a section in common" in compared(
        Report((a_section("x"),)), Report((a_section("y"),))
    )
    alike = Report((a_section("x"),))
    assert "Verdict: cannot tell: B is 1.00x as fast as A by the mean time of x" in compared(alike, alike)


def test_a_run_names_its_first_sections() -> None:
    found = core.sections_evidence(Report(tuple(a_section(f"s{i}", mean=0.01 * (9 - i)) for i in range(9))))
    lines = of_run(found.model_dump())
    assert lines[0] == "sections 9, 45 s profiled, the first 5:"
    assert lines[1].split() == ["s0", "20.0%", "90.0", "ms", "a", "call,", "100", "calls"]
    assert len(lines) == 6


def test_a_run_without_sections_or_with_a_broken_report() -> None:
    assert of_run(None) == []
    assert of_run(core.unreadable("sections.json is cut off").model_dump()) == [
        "sections unknown",
        "  note: sections.json is cut off",
    ]


def test_sides_of_runs() -> None:
    rows = [
        {
            "name": f"s{i}",
            "a": {"mean_s": 0.04, "share": 0.1},
            "b": {"mean_s": 0.01, "share": 0.1} if i else None,
            "ratio": 4.0 if i else None,
        }
        for i in range(10)
    ]
    lines = beside([read(SectionRow, row) for row in rows], ("baseline", "trial"))
    assert lines[0].split("  ")[-1].strip() == "speed of trial over baseline"
    assert lines[1].split() == ["s0", "40.0", "ms", "unknown"]
    assert lines[2].split() == ["s1", "40.0", "ms", "10.0", "ms", "4.00x"]
    assert lines[-1] == "  and 2 more (--json)"
    assert beside([]) == []
