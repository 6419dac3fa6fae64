"""A second figure that must not get worse: a gate of its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import BASE, following, gate, run, verdict

from gpudebug.core.records import Evidence, Verdict
from gpudebug.core.verdict.gates.also import missing_in
from gpudebug.core.verdict.judge import TrialSetting
from gpudebug.core.verdict.turns import NextRun
from gpudebug.core.words import Result, Status

HIGHER = {"log:quality": {"direction": "higher", "not_worse": 1.03}}
LOWER = {"log:quality": {"direction": "lower", "not_worse": 1.02}}


def side(utilisation: float, *qualities: float | None) -> list[Evidence]:
    logged: list[dict[str, Any]] = [{} if q is None else {"quality": q} for q in qualities]
    return [run(utilisation, 5.0 if utilisation < 50 else 11.0, logged=each) for each in logged]


def judged(before: list[Evidence], after: list[Evidence], terms: dict[str, Any]) -> Verdict:
    return verdict(before, after, TrialSetting(), also=terms)


@pytest.mark.parametrize(
    ("before", "after", "terms", "expected"),
    [
        ((0.9, 0.9), (0.9, 0.91), HIGHER, Result.PASS),
        ((0.9, 0.9), (0.88, 0.89), HIGHER, Result.PASS),
        ((0.9, 0.9), (0.84, 0.85), HIGHER, Result.UNKNOWN),
        ((0.9, 0.9), (0.4, 0.41), HIGHER, Result.FAIL),
        ((0.9, 0.9), (0.0, 0.0), HIGHER, Result.FAIL),
        ((-200, -210), (-205, -200), HIGHER, Result.PASS),
        ((-200, -210), (-400, -410), HIGHER, Result.FAIL),
        ((0.1, 0.1), (0.05, 0.05), LOWER, Result.PASS),
        ((0.1, 0.1), (0.2, 0.2), LOWER, Result.FAIL),
        ((0.1, 0.1), (0.0, 0.0), LOWER, Result.PASS),
        ((0.0, 0.0), (0.0, 0.0), LOWER, Result.PASS),
        ((0.0, 0.0), (0.3, 0.3), LOWER, Result.FAIL),
    ],
)
def test_it_may_not_get_worse(
    before: tuple[float, ...], after: tuple[float, ...], terms: dict[str, Any], expected: Result
) -> None:
    found = judged(side(28, *before), side(61, *after), terms)
    assert gate(found, "also:log:quality").result is expected
    assert (found.status is Status.VALIDATED) == (expected is Result.PASS)
    assert (found.status is Status.REJECTED) == (expected is Result.FAIL)


def test_a_fall_is_what_the_verdict_names() -> None:
    found = judged(side(28, 0.9, 0.9), side(61, 0.45, 0.45), HIGHER)
    assert found.why.startswith("also:log:quality: 0.9 to 0.45, 50% worse (95% CI ")
    assert found.hollow is False
    assert "log:quality 0.9 to 0.45" in found.notes


def test_a_fall_counts_only_where_there_is_a_gain_to_pay_for() -> None:
    before, after = side(28, 0.9, 0.9), side(43, 0.4, 0.41)
    found = judged(before, after, HIGHER)
    assert gate(found, "also:log:quality").result is Result.FAIL
    assert (found.status, gate(found, "delta").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert following(before, after, also=HIGHER) is NextRun.TRIAL


@pytest.mark.parametrize("part", ["baseline", "trial"])
def test_what_is_not_printed_is_unknown(part: str) -> None:
    before = side(28, 0.9, None if part == "baseline" else 0.9)
    after = side(61, 0.9, None if part == "trial" else 0.9)
    found = judged(before, after, HIGHER)
    said = gate(found, "also:log:quality")
    assert (found.status, said.result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert (said.note or "").startswith(
        f"{part}, run 0001-x: the program printed no quality; print `quality: "
    )


def test_an_open_figure_asks_for_another_run() -> None:
    found = judged(side(28, 0.9, 0.9), side(61, 0.85, 0.85), HIGHER)
    assert [g.name for g in found.gates if g.result is Result.UNKNOWN] == ["also:log:quality"]
    assert following(side(28, 0.9, 0.9), side(61, 0.85, 0.85), also=HIGHER) is NextRun.TRIAL


def test_without_the_setting_there_is_no_gate() -> None:
    assert [g.name for g in verdict(BASE, BASE).gates if g.name.startswith("also:")] == []


def test_another_metric_may_be_kept_too() -> None:
    terms = {"latency_p99": {"direction": "lower", "not_worse": 1.1}}
    before, after = ([run(28, latency_p99_s=v)] * 2 for v in (0.010, 0.020))
    assert gate(verdict(before, after, also=terms), "also:latency_p99").result is Result.FAIL


def test_a_baseline_says_what_it_lacks() -> None:
    assert missing_in(side(28, 0.9, None), HIGHER) == [
        "run 0001-x: the program printed no quality; print `quality: 0.93`, or set `log: {quality: …}` in "
        "gpudebug.yaml"
    ]
