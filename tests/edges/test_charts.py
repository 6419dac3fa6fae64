"""Pictures: that they are drawn at any size and of any names, and show what they should."""

from __future__ import annotations

import struct
import warnings
from typing import Any

import pytest
from tests.support.section_reports import a_section

from gpudebug.core.sections import Report, analysis
from gpudebug.edges import charts

pytest.importorskip("matplotlib")

from gpudebug.edges.charts import bars, canvas, curves

HOSTILE = (
    *("$x^2_{", "\\frac{a", "a" * 300, "two\nlines", "模型/前向", "\u202eright", "<b>&amp;", "%s %d {}", ""),
    *("-- rm", "\x1b[31mred", "_hidden", "é" * 60, "🙂"),
)


def size(png: bytes) -> tuple[int, int]:
    """Width and height, from the PNG's own header."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def answer(*sections: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "sections", "file": "sections.json", **analysis(Report(sections, **more))}


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


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_any_report_can_be_drawn(drawn: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        width, height = size(charts.sections(drawn))
    assert width == 14 * canvas.DPI
    assert 200 < height < 1700


def test_more_sections_than_rows_are_said_and_not_drawn() -> None:
    assert size(charts.sections(DRAWN["two hundred"])) == size(charts.sections(answer(*many(bars.ROWS))))
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


LOG = {"file": "train.log", "loss": {"name": "loss", "trend": "CONVERGING", "points": 3}}


@pytest.mark.parametrize(
    "series",
    [
        {"loss": [[0, 2.0], [10, 1.0], [20, None]], "step_times": [[1, 0.1]], "stepped": True},
        {"loss": [[0, 2.0]], "step_times": [[0, 0.1], [1, 0.2]], "stepped": False},
        {"loss": [], "step_times": [], "stepped": True},
        {"loss": [[i, None] for i in range(1000)], "step_times": [], "stepped": True},
    ],
    ids=["both", "numbered", "nothing", "no number"],
)
def test_a_loss_curve(series: dict[str, Any]) -> None:
    width, height = size(charts.training_log({**LOG, "series": series}))
    assert width == 11 * canvas.DPI
    assert (height > 600) == bool(series["step_times"])


WINDOW = {"start_s": 1.0, "end_s": 2.0}
GPU = {"index": 0, "uuid": "GPU-1", "points": [[0.5, 10.0, 100.0], [1.0, None, 200.0], [2.0, 90.0, None]]}
CPU = {"index": 0, "uuid": "CPU", "points": [[0.5, 10.0, None]]}


@pytest.mark.parametrize(
    ("devices", "window", "panels"),
    [([GPU, {**GPU, "index": 1}], WINDOW, 2), ([CPU], None, 1), ([], None, 1)],
    ids=["two GPUs", "the stand-in", "none"],
)
def test_a_timeline(devices: list[Any], window: Any, panels: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = charts.samples({"file": "samples.csv", "timeline": devices, "window": window})
    assert (size(drawn)[1] > 600) == (panels == 2)
    assert curves.samples({"file": "samples.csv", "timeline": devices, "window": window}) == drawn
