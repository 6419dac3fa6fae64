"""Pictures of logs, samples, traces and section reports: drawn at any size and of any names."""

from __future__ import annotations

import functools
import subprocess
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import matplotlib
import pytest
from tests.support.campaigns import environment
from tests.support.pictures import size
from tests.support.section_reports import a_section

from gpudebug.core.answers.log import LoggedLoss
from gpudebug.core.answers.sample import SampledWindow
from gpudebug.core.answers.sections import SectionsAnswer
from gpudebug.core.inside.sections import Report, summed_up
from gpudebug.edges import charts

HOSTILE = (
    *("$x^2_{", "\\frac{a", "a" * 300, "two\nlines", "模型/前向", "\u202eright", "<b>&amp;", "%s %d {}", ""),
    *("-- rm", "\x1b[31mred", "_hidden", "é" * 60, "🙂"),
)


def answer(*sections: Any, **more: Any) -> SectionsAnswer:
    return summed_up(Report(sections, **more), "sections.json")


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
    assert width == 14 * charts.DPI
    assert 200 < height < 1700


def test_more_sections_than_rows_are_said_and_not_drawn() -> None:
    assert size_of("two hundred") == size(charts.sections(answer(*many(charts.ROWS))))
    assert "160 more sections" in charts._title(DRAWN["two hundred"], charts.ROWS)


def test_a_bar_is_as_long_as_its_time() -> None:
    rows = answer(a_section("a", mean=0.05, self_s=2.0), a_section("b", mean=0.01)).sections
    with charts.figure(8, 4) as made:
        axes = made.subplots()
        charts._time(axes, rows, {})
        widths = [bar.get_width() for bar in axes.patches]
        names = [label.get_text() for label in axes.get_yticklabels()]
    assert widths == pytest.approx([2.0, 1.0, 3.0, 0.0])
    assert names == ["a", "b"]
    assert axes.yaxis_inverted()


def test_it_is_as_large_as_asked_for_and_changes_no_settings() -> None:
    before = dict(matplotlib.rcParams)
    with charts.figure(4, 2) as made:
        assert size(charts.png(made)) == (4 * charts.DPI, 2 * charts.DPI)
    assert dict(matplotlib.rcParams) == before


def test_a_dollar_sign_is_no_formula() -> None:
    with charts.figure(3, 2) as made:
        made.suptitle("$x^{2$ \\frac{")
        assert charts.png(made)


def test_it_needs_no_display_and_loads_no_window_system() -> None:
    code = (
        "import sys; from gpudebug.edges import charts\n"
        "with charts.figure(2, 2) as made: charts.png(made)\n"
        "print([m for m in ('matplotlib.pyplot', 'tkinter') if m in sys.modules])"
    )
    env = environment({"DISPLAY": None, "MPLBACKEND": "TkAgg"})
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


LOSS = LoggedLoss(name="loss", trend="CONVERGING", points=3, first=None, last=None)


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
    reward = SimpleNamespace(name="mean_reward", trend="CONVERGING", points=9, over="steps")
    for more in ({}, {"reward": ((0.0, -20.0), (512.0, 3.0))}):
        answer = SimpleNamespace(file="train.log", loss=LOSS, reward=reward if more else None)
        width, height = size(charts.training_log(answer, {**series, **more}))
        assert width == 11 * charts.DPI
        assert height == pytest.approx(
            (2 + 2.2 * (1 + bool(series["step_times"]) + bool(more))) * charts.DPI, abs=2
        )


WINDOW = SampledWindow(start_s=1.0, end_s=2.0, samples=10)
GPU = {"index": 0, "uuid": "GPU-1", "points": [[0.5, 10.0, 100.0], [1.0, None, 200.0], [2.0, 90.0, None]]}
CPU = {"index": 0, "uuid": "CPU", "points": [[0.5, 10.0, None]]}


@pytest.mark.parametrize(
    ("devices", "window", "panels"),
    [([GPU, {**GPU, "index": 1}], WINDOW, 2), ([CPU], None, 1), ([], None, 1)],
    ids=["two GPUs", "the stand-in", "none"],
)
def test_a_timeline(devices: list[Any], window: Any, panels: int) -> None:
    answer = SimpleNamespace(file="samples.csv", window=window)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = charts.samples(answer, devices)
    assert (size(drawn)[1] > 600) == (panels == 2)
    assert charts.samples(answer, devices) == drawn


def device(number: int, **more: Any) -> dict[str, Any]:
    parts = {"compute_s": 3.0, "memory_s": 1.0, "communication_s": 1.0}
    return {"device": number, "busy_share": 0.4, **parts, **more}


def answer_of_shares(*devices: dict[str, Any], operators: int = 3) -> SimpleNamespace:
    causes = [{"cause": "data_loading", "seconds": 4.0}, {"cause": "queued", "seconds": 0.0}]
    return SimpleNamespace(
        file="trace.json",
        span_s=12.0,
        devices=list(devices),
        gaps={"by_cause": causes} if devices else None,
        operators=[{"name": f"$aten::{i}_{'x' * 20 * i}", "self_s": 1.0 / (i + 1)} for i in range(operators)],
    )


DRAWN_of_shares = {
    "one device": answer_of_shares(device(0)),
    "many": answer_of_shares(*map(device, range(40)), operators=100),
    "none": answer_of_shares(),
    "nothing at all": answer_of_shares(operators=0),
    "an unknown share": answer_of_shares(
        device(0, busy_share=None, compute_s=None, memory_s=None, communication_s=0.0)
    ),
}


@pytest.mark.parametrize("drawn", DRAWN_of_shares.values(), ids=DRAWN_of_shares)
def test_any_trace_can_be_drawn(drawn: SimpleNamespace) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        width, height = size(charts.trace(drawn))
    assert width == (15 if drawn.devices else 8) * charts.DPI
    assert 300 < height < 800


def test_the_parts_of_a_device_fill_its_time() -> None:
    with charts.figure(5, 4) as made:
        axes = made.subplots()
        charts._occupied(axes, [device(0)])
        widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([0.24, 0.08, 0.08, 0.6])
