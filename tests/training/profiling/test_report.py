"""The report: its keys, its explanations, what it says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.profiled import places, report_of

from gpudebug.training.profiling import report as reports
from gpudebug.training.profiling.progress import CATEGORIES


def test_the_keys_of_a_report(tmp_path: Path) -> None:
    code = """
    enable_profiling(warmup=1)
    for _ in range(13):
        with profile_section("training_total"):
            with profile_section("leaf"): pass
    """
    report = report_of(code, tmp_path)
    assert set(report) == {
        "format", "version", "pid", "rank", "python", "surroundings", "wall_s",
        "enabled_s", "warmup", "iterations", "sync",
        "categories", "capped", "open", "notes", "sections", "tree",
    }  # fmt: skip
    assert (report["format"], report["version"], report["rank"]) == ("gpudebug-sections", 1, None)
    assert (report["warmup"], report["iterations"], report["sync"], report["capped"]) == (1, 12, False, 0)
    assert set(report["sections"][0]) == {
        "name", "category", "calls", "errors", "total_s", "self_s", "mean_s", "min_s", "max_s", "p50_s",
        "p95_s", "mem_peak_mb", "gpu_peak_mb",
    }  # fmt: skip
    assert report["sections"][0]["name"] == "training_total"
    assert set(report["tree"][0]) == {"name", "calls", "total_s", "children"}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "profiling is not enabled: call enable_profiling()"),
        ("enable_profiling()", "no section was ever executed"),
        (
            "enable_profiling()\nfor _ in range(9):\n  with profile_section('x'): pass",
            "fewer than 10 iterations",
        ),
    ],
)
def test_emptiness_explains_itself(tmp_path: Path, code: str, said: str) -> None:
    assert said in report_of(code, tmp_path)["notes"][0]


def test_enough_iterations_need_no_explanation(tmp_path: Path) -> None:
    code = "enable_profiling()\nfor _ in range(10):\n  with profile_section('x'): pass"
    (note,) = report_of(code, tmp_path)["notes"]
    assert "ns that a section takes itself for" in note


def test_sections_deeper_than_is_shown_are_counted(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    def go(depth):
        with profile_section(f"depth-{depth}"):
            if depth: go(depth - 1)
    go(150)
    """
    report = report_of(code, tmp_path)
    assert len(report["sections"]) == 151
    assert len(places(report)) == 100
    assert any("more than 100 deep" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("env_rgb_rendering", "Rendering"),
        ("env_reset", "Environment"),
        ("env", None),
        ("my_env_reset", None),
        ("simulated_training_step", "Training"),
    ],
)
def test_the_longest_prefix_wins(name: str, expected: str | None) -> None:
    assert reports.category(name, CATEGORIES) == expected
    assert reports.category(name, dict(reversed(CATEGORIES.items()))) == expected
    assert reports.category(name, {}) is None
    assert reports.category(name, {"": "Everything"}) == "Everything"
