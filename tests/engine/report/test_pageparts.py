from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support import reports

from gpudebug.core.statistics.metrics import Metric
from gpudebug.engine.report import pageparts


@pytest.mark.parametrize(
    ("target", "names", "href"),
    [
        ("/c/runs/0005-h1", (), "../0005-h1"),
        ("/c/runs/0005-h1", ("train.log",), "../0005-h1/train.log"),
        ("/c/runs/report/x", ("javascript:alert(1)",), "./x/javascript%3Aalert%281%29"),
        ("/c/runs/report/a b%\n#?é", (), "./a%20b%25%0A%23%3F%C3%A9"),
        ("/c/runs/report/" + os.fsdecode(b"\xff"), (), "./%FF"),
    ],
)
def test_links_are_relative_and_quoted(target: str, names: tuple[str, ...], href: str) -> None:
    made = pageparts.link(Path("/c/runs/report"), target, *names)
    assert made == href
    assert os.path.normpath(os.path.join("/c/runs/report", unquote(made, errors="surrogateescape"))) == (
        os.path.join(target, *names)
    )


def test_a_sparkline_stays_in_its_box() -> None:
    assert pageparts.line([0, 50, 250, None, -3]) == "M0 100L25 50L50 0L100 100"
    assert pageparts.area([100, 100]) == "M0 0L100 0V100H0Z"
    assert pageparts.line([None]) == pageparts.area([]) == ""


def test_effects_share_a_scale() -> None:
    found = pageparts.effects(
        [
            {"number": 1, "delta_pp": 20.0, "delta_ci": [10.0, 40.0]},
            {"number": 2, "delta_pp": -20.0, "delta_ci": None},
            {"number": 3, "delta_pp": None, "improvement": 2.0, "improvement_ci": [None, None]},
            {"number": 4, "delta_pp": None, "improvement": None},
        ]
    )
    assert found == {
        1: (66.0, 96.5, 81.2, 127.0),
        2: (66.0, 35.5, None, None),
        3: (66.0, 127.0, None, None),
    }


def test_no_effect_at_all_has_a_place() -> None:
    assert pageparts.effects([{"number": 1, "delta_pp": 0.0, "delta_ci": [0.0, 0.0]}])[1] == (66, 66, 66, 66)


def test_sections_stand_below_those_that_they_were_entered_from() -> None:
    outline = [
        _line(0, "step", 0.5),
        _line(1, "load", 6.0),
        _line(2, "decode", 0.5),
        _line(1, "forward", 3.0),
    ]
    rows = pageparts.tree([_section(name) for name in ("load", "step", "new", "forward")], outline)
    assert [(r.depth, r.section["name"], r.bottleneck) for r in rows] == [
        (0, "step", False),
        (1, "load", True),
        (1, "forward", True),
        (0, "new", False),
    ]


def test_a_section_that_was_entered_from_several_places_stands_once() -> None:
    outline = [_line(0, "a", 1.0), _line(9, "b", 1.0), _line(0, "b", 1.0)]
    rows = pageparts.tree([_section("a"), _section("b")], outline)
    assert [(r.depth, r.section["name"], r.bottleneck) for r in rows] == [(0, "a", True), (4, "b", True)]


def test_sections_without_an_outline() -> None:
    rows = pageparts.tree([_section("a"), {**_section("b"), "a": None, "b": {"share": 0.9}}], [])
    assert [(r.depth, r.section["name"], r.bottleneck) for r in rows] == [(0, "b", False), (0, "a", False)]


def _line(depth: int, name: str, own_s: float) -> dict[str, Any]:
    return {"depth": depth, "name": name, "calls": 1, "total_s": 9.0, "own_s": own_s}


def _section(name: str) -> dict[str, Any]:
    return {"name": name, "a": {"share": 0.1, "mean_s": 0.1}, "b": None, "ratio": None}


def test_words_that_differ_are_marked() -> None:
    before, after = pageparts.words("train --w=0  --s=9", "train --w=4  --s=9 --x")
    assert before == [("train ", "same"), ("--w=0", "cut"), ("  --s=9", "same")]
    assert after == [("train ", "same"), ("--w=4", "add"), ("  --s=9", "same"), (" --x", "add")]


def test_the_lines_of_a_patch() -> None:
    text = "--- a/t\n+++ b/t\n@@ -1 +1 @@\n-old\n+new\n same\n"
    assert [kind for _, kind in pageparts.patch(text)] == ["place", "place", "place", "cut", "add", "same"]
    turned = pageparts.patch("+if access != 'user\u202e\u2066// check':\x0c\n+\tpass\r\n")
    assert [line for line, _ in turned] == ["+if access != 'user\\u202e\\u2066// check':\\x0c", "+\tpass"]


def test_the_ladder_leads_from_the_unmodified_workload_to_what_is_measured_now() -> None:
    gained = reports.gain(accepted=[reports.accepted(1, 63.6)], now=61.0)
    rungs = pageparts.ladder(gained, Metric())
    assert [(r.hypothesis, r.shown, r.step[:7]) for r in rungs] == [
        (None, "30.0%", ""),
        (1, "63.6%", "+33.6pp"),
        (None, "61.0%", ""),
    ]
    assert len(pageparts.ladder(reports.gain(), Metric())) == 1
    assert pageparts.top(gained, Metric()) == 100
    assert pageparts.top(gained, Metric("steps_per_s")) == 88


def test_an_accepted_change_that_nothing_bears_out() -> None:
    change = {**reports.accepted(1, 2.0), "before": None, "after": None, "change_text": "unknown"}
    rung = pageparts.ladder(reports.gain(accepted=[change]), Metric())[1]
    assert (rung.value, rung.shown, rung.step) == (None, "unknown", "unknown")


def test_what_the_training_told_of_itself() -> None:
    sides = [{"figures": {"data_wait_share": 0.5, "cpu_cores": None}}, {"figures": None}]
    assert pageparts.inside(sides) == [("waiting for data", ["50.0%", None])]
    assert pageparts.inside([]) == []


def test_times_of_day() -> None:
    assert pageparts.when("2026-11-21T10:00:03.123+00:00") == "2026-11-21 10:00:03 UTC"
    assert pageparts.when(None) == "unknown"
