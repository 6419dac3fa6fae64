"""Noise, sweeps and expected figures as text."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.answers import read

from gpudebug.core.answers.status import ExpectedFigure, FlagSweep, Resolution
from gpudebug.terminal import noise
from gpudebug.terminal.fit import Screen


def figure(**changes: Any) -> dict[str, Any]:
    runs = {"total": 7, "trial": 5, "baseline": 2, "device_time_s": 420.0}
    given = {
        "figure": "gpu_util",
        "unit": "pp",
        "sd": 2.5,
        "own_sd": 1.2,
        "runs": 8,
        "told": 5.5,
        "passed": 21.0,
    }
    return {**given, "goal": 20.0, "goal_runs": runs, **changes}


def resolution(*figures: dict[str, Any], **changes: Any) -> dict[str, Any]:
    given = {"baseline_runs": 3, "fresh_runs": 1, "aa_runs": 4, "max_runs": 6, "left": 90, "limited": False}
    return {**given, "figures": list(figures), **changes}


RATE = figure(figure="throughput", unit="x", sd=0.03, own_sd=0.012, told=1.054, goal=1.05)


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            resolution(figure(), RATE),
            [
                "Noise    2.5pp of gpu_util, 3.0% of throughput from run to run (8 runs, 4 of them A/A)",
                "Detectable effect (80 % power): 5.5pp of gpu_util, 1.05x of throughput",
                "Runs needed to confirm 20pp of gpu_util: 7; 1.05x of throughput: 7",
            ],
        ),
        (
            resolution(
                figure(
                    own_sd=None, goal_runs={"total": 30, "trial": 15, "baseline": 15, "device_time_s": None}
                ),
                baseline_runs=1,
                fresh_runs=0,
                aa_runs=0,
            ),
            [
                "Noise    2.5pp of gpu_util (mostly assumed: 1 run)",
                "Detectable effect (80 % power): 5.5pp of gpu_util",
                "Runs needed to confirm 20pp of gpu_util: 30 (15 of the change)",
                f"  above max_runs (6): {noise._FEWER}",
            ],
        ),
        (
            resolution(figure(told=None, goal_runs=None), left=0, limited=True),
            [
                "Noise    2.5pp of gpu_util from run to run (8 runs, 4 of them A/A)",
                "Detectable effect: none, the device time is used up",
                "Runs needed to confirm 20pp of gpu_util: more than a trial can have",
                f"  above max_runs (6): {noise._FEWER}",
            ],
        ),
        (resolution(figure(sd=None, own_sd=None, told=None)), []),
    ],
)
def test_noise(answer: dict[str, Any], lines: list[str]) -> None:
    assert noise.resolution(read(Resolution, answer)) == lines


def row(value: str, number: int, status: str, **changes: Any) -> dict[str, Any]:
    given = {"delta_pp": None, "delta_ci": None, "improvement": None, "improvement_ci": None}
    return {
        "value": value,
        "hypothesis": number,
        "status": status,
        "verified": None,
        "throughput_ratio": None,
        **given,
        **changes,
    }


def sweep(parameter: str, standing: str | None, rows: list[dict[str, Any]]) -> FlagSweep:
    return read(FlagSweep, {"parameter": parameter, "standing": standing, "rows": rows})


def test_a_sweep_is_a_table() -> None:
    rows = [
        row("1", 3, "VALIDATED", verified=True, delta_pp=24.0, delta_ci=[18.5, 29.5], throughput_ratio=1.9),
        row("2", 2, "INCONCLUSIVE", verified=True, improvement=1.2, improvement_ci=[1.0, 1.4]),
        row("10", 11, "UNTESTED"),
        row("quickly", 12, "REJECTED", verified=False),
    ]
    assert noise.sweeps([sweep("--denoising_steps", "4", rows)], Screen(80)) == [
        "",
        "Sweep of --denoising_steps (now 4)",
        "  value      H  status        change                              throughput",
        "  1          3  VALIDATED     +24.0pp (95% CI +18.5 to +29.5)     1.90x",
        "  2          2  INCONCLUSIVE  1.20x (95% CI 1.00x to 1.40x)",
        "  10        11  UNTESTED",
        "  quickly   12  REJECTED      UNVERIFIED",
    ]


def test_a_sweep_by_another_metric_shows_it() -> None:
    moved = "latency_p50 12.3 to 9.41 ms"
    rows = [row("2", 3, "VALIDATED", verified=True, improvement=1.3, measured=moved), row("1", 4, "UNTESTED")]
    table = noise.sweeps([sweep("server:--denoising-steps", "4", rows)], Screen(120))
    assert table[1] == "Sweep of server:--denoising-steps (now 4)"
    assert table[3].endswith(f"  {moved}") and table[4] == "  1        4  UNTESTED"
    assert any(moved in line for line in noise.sweeps([sweep("--s", "4", rows)], Screen(80)))


def test_a_sweep_where_a_table_is_too_wide() -> None:
    rows = [
        row("2", 3, "VALIDATED", verified=True, delta_pp=24.0, delta_ci=[18.5, 29.5], throughput_ratio=1.9),
        row("10", 11, "UNTESTED"),
        row("a/very/long/path/of/a/file", 12, "REJECTED"),
    ]
    assert noise.sweeps([sweep("--steps", None, rows)], Screen(40)) == [
        "",
        "Sweep of --steps",
        "  2: H 3 VALIDATED, +24.0pp (95% CI",
        "     +18.5 to +29.5), throughput 1.90x",
        "  10: H 11 UNTESTED",
        "  a/very/long/path/of…: H 12 REJECTED",
    ]


def test_expected_figures() -> None:
    row = {"figure": "steps_per_s", "device": "default", "range": [150.0, 250.0], "measured": 61.0}
    assert noise.expected(
        [read(ExpectedFigure, {**row, "note": "less than half", "standing": "faulty"})]
    ) == ["Expected steps_per_s 150 to 250 (default), measured 61 steps/s: less than half"]
    unknown = {**row, "measured": None, "note": "not measured yet", "standing": "unknown"}
    fine = {**row, "figure": "latency_p50", "range": [0.1, 0.3], "measured": 0.2, "note": None}
    assert noise.expected([read(ExpectedFigure, r) for r in (unknown, {**fine, "standing": "within"})]) == [
        "Expected steps_per_s 150 to 250 (default), measured unknown: not measured yet",
        "Expected latency_p50 0.1 to 0.3 (default), measured 200 ms: within",
    ]
