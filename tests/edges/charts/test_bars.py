"""Sections as bars: drawn at any size and of any names, showing what they should."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
from tests.support.pictures import size
from tests.support.section_reports import a_section

from gpudebug.core.inside.sections import Report, analysis
from gpudebug.edges import charts
from gpudebug.edges.charts import bars, canvas

HOSTILE = (
    *("$x^2_{", "\\frac{a", "a" * 300, "two\nlines", "模型/前向", "\u202eright", "<b>&amp;", "%s %d {}", ""),
    *("-- rm", "\x1b[31mred", "_hidden", "é" * 60, "🙂"),
)


def answer(*sections: Any, **more: Any) -> dict[str, Any]:
    return analysis(Report(sections, **more), "sections.json").as_json()


def many(count: int) -> list[Any]:
    prefixes = ("env_", "convlstm_", "training_", "x.")
    return [
        a_section(f"{prefixes[i % 4]}section_{i}", calls=10 ** (i % 5), mean=10.0 ** -(i % 6), mem_peak_mb=i)
        for i in range(count)
    ]


DRAWN = {
    "ten": answer(*many(10), iterations=5, enabled_s=2.0),
    "two hundred": answer(*many(200)),
    "none": answer(),
    "one of no time": answer(a_section("x", mean=0.0)),
    "without memory": answer(a_section("x"), a_section("y")),
    "hostile names": answer(*(a_section(name, category="$\\x{") for name in HOSTILE)),
    "many categories": answer(*(a_section(f"s{i}", category=f"category {i}") for i in range(30))),
    "own time above the total": answer(a_section("x", self_s=5.0, total_s=1.0)),
    "a largest time": answer(a_section("x", calls=1, mean=1e12)),
}


@functools.cache
def size_of(name: str) -> tuple[int, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return size(charts.sections(DRAWN[name]))


@pytest.mark.parametrize("name", DRAWN)
def test_any_report_can_be_drawn(name: str) -> None:
    width, height = size_of(name)
    assert width == 14 * canvas.DPI
    assert 200 < height < 1700


def test_more_sections_than_rows_are_said_and_not_drawn() -> None:
    assert size_of("two hundred") == size(charts.sections(answer(*many(bars.ROWS))))
    assert "160 more sections" in bars._title(DRAWN["two hundred"], bars.ROWS)


def test_a_bar_is_as_long_as_its_time() -> None:
    rows = answer(a_section("a", mean=0.05, self_s=2.0), a_section("b", mean=0.01))["sections"]
    with canvas.figure(8, 4) as made:
        axes = made.subplots()
        bars._time(axes, rows, {})
        widths = [bar.get_width() for bar in axes.patches]
        names = [label.get_text() for label in axes.get_yticklabels()]
    assert widths == pytest.approx([2.0, 1.0, 3.0, 0.0])
    assert names == ["a", "b"]
    assert axes.yaxis_inverted()
