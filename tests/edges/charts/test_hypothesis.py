"""One hypothesis in one picture, whatever was measured of it."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
from tests.support.campaign_data import a_hypothesis, a_run, campaign_data, gate
from tests.support.pictures import painted, size

from gpudebug.edges import charts
from gpudebug.edges.charts import canvas, hypothesis, marks

HOSTILE = "$x^2_{ \\frac <b>&amp; 模型 \u202eright\x1b[31m\nline \ud800 " + "long " * 60
BASELINE = a_run("0001-baseline-workload")
CRASHED = a_run(
    "0003-h1",
    outcome="CRASHED",
    utilisation=None,
    window=None,
    seconds=3.0,
    loss_points=[[1, 2.0], [2, None]],
    loss_by="number",
    step_times=None,
)


def of_one(h: Any, *runs: Any, **more: Any) -> dict[str, Any]:
    return campaign_data(h, runs=runs or (BASELINE,), **more)


DRAWN = {
    "a trial": campaign_data(a_hypothesis(1)),
    "eight GPUs": campaign_data(a_hypothesis(1), devices=tuple(f"GPU-{i}" for i in range(8))),
    "not tested": campaign_data(a_hypothesis(1, "UNTESTED")),
    "crashed": of_one(a_hypothesis(1, "REJECTED", None, why="outcome: CRASHED"), BASELINE, CRASHED),
    "its runs are gone": of_one(a_hypothesis(1, trial_runs=["0009-h1"])),
    "all runs are gone": {**campaign_data(a_hypothesis(1)), "runs": {}},
    "only means": of_one(
        a_hypothesis(1), *(a_run(n, timeline=[]) for n in ("0001-baseline-workload", "0003-h1"))
    ),
    "one step": of_one(
        a_hypothesis(1),
        BASELINE,
        a_run("0003-h1", loss_points=[[1, 2.0]], step_times={"by": "log", "bins": [[1.0, 1.1, 1]]}),
    ),
    "hostile texts": campaign_data(
        a_hypothesis(
            1,
            title=HOSTILE,
            why=HOSTILE,
            intervention=HOSTILE,
            gates=[gate(HOSTILE, "fail", HOSTILE, HOSTILE)],
        )
    ),
    "no gates": campaign_data(a_hypothesis(1, gates=[])),
}


@functools.cache
def drawn(name: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return charts.hypothesis_picture(DRAWN[name], 1)


@pytest.mark.parametrize("name", ["a trial", "crashed", "hostile texts"])
def test_a_hypothesis_is_drawn_as_wide_as_a_page(name: str) -> None:
    assert size(drawn(name))[0] == hypothesis.WIDTH * canvas.DPI


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_any_hypothesis_can_be_drawn(name: str) -> None:
    width, height = size(drawn(name))
    assert width == hypothesis.WIDTH * canvas.DPI
    assert 100 < height < 1500


def test_both_sides_are_painted_over_each_other() -> None:
    for side in (marks.BEFORE, marks.AFTER):
        assert painted(drawn("a trial"), side) > 500


@pytest.mark.slow
def test_a_side_that_is_gone_is_not_painted() -> None:
    alone = drawn("its runs are gone")
    assert painted(alone, marks.BEFORE) > 500
    assert painted(alone, marks.AFTER) == 0
    assert painted(drawn("no gates"), marks.of_result("fail")) == 0


def test_gates_are_painted_in_the_colours_of_their_results() -> None:
    for result in ("pass", "fail", "unknown"):
        assert painted(drawn("a trial"), marks.of_result(result)) > 10


def test_gates_are_told_with_notes_and_those_skipped_together() -> None:
    rows = [
        gate("outcome", value="COMPLETED"),
        gate("loss", "unknown", None, "too few points"),
        gate("a", "skipped", None),
        gate("b", "skipped", None),
    ]
    lines = [[piece.said for piece in line] for line in hypothesis._gate_lines(rows)]
    assert lines == [
        ["gates", "measured", "needed"],
        ["outcome", "pass", "COMPLETED", "as in the baseline"],
        ["loss", "unknown", "unknown", "as in the baseline"],
        ["too few points"],
        ["skipped", "a, b"],
    ]
    assert hypothesis._gate_lines([]) == []


def test_what_was_found_is_said_or_why_nothing_was() -> None:
    effect = "+40.0pp (95% CI +38.0 to +42.0), throughput 3.00x, loss CONVERGING"
    assert hypothesis._figures(a_hypothesis(1)) == f"gpu_util 20.0% to 60.0%: {effect}"
    said = {"metric": "latency_p50 40 to 30 ms"}
    ratio = a_hypothesis(
        1, delta=None, improvement=1.3, improvement_ci=[1.2, 1.4], figures=said, throughput_ratio=None
    )
    assert hypothesis._figures(ratio) == "latency_p50 40 to 30 ms: 1.30x (95% CI 1.20x to 1.40x)"
    assert hypothesis._figures(a_hypothesis(1, "UNTESTED")) == "not tested yet"
    assert hypothesis._figures(a_hypothesis(1, "REJECTED", None, why="crashed")) == "crashed"
    claimed = a_hypothesis(1, "VALIDATED", None, why=None, verified=False, claimed="+50pp")
    assert hypothesis._figures(claimed) == "UNVERIFIED +50pp"
