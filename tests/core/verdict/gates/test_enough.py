"""A verdict on latencies rests on latencies: 300 of them need no utilisation window."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import criteria, gate, run, verdict

from gpudebug.core.records import Evidence, LatencyEvidence, Verdict
from gpudebug.core.verdict.gates import share_seen, short_window
from gpudebug.core.verdict.gates.enough import LATENCIES
from gpudebug.core.verdict.gates.text import estimate_text
from gpudebug.core.verdict.judge import TrialSetting
from gpudebug.core.verdict.protocol import NextRun, next_step
from gpudebug.core.words import Result, Status, Trend

TERMS: dict[str, Any] = {
    "metric": "latency_p50",
    "direction": "lower",
    "success": 1.2,
    "failure": 1.1,
    "loss": "any",
}


def short(p50: float, count: int = LATENCIES, error: float = 0.01, **more: Any) -> Evidence:
    """A run of three seconds: no window, no utilisation, `count` latencies with the median `p50`."""
    latency = LatencyEvidence(count=count, p50_s=p50, p50_error=error)
    figures = {"latency_p50_s": p50, "latency": latency, "trend": Trend.UNKNOWN, **more}
    return run(None, None, window=None, unit=None, **figures)


def judged(before: list[Evidence], after: list[Evidence]) -> Verdict:
    return verdict(before, after, **TERMS)


def test_three_hundred_latencies_decide_without_a_window() -> None:
    found = judged([short(0.012)] * 2, [short(0.008)] * 2)
    assert gate(found, "delta").result is Result.PASS
    assert gate(found, "delta").value.startswith("1.50x (95% CI ")
    assert found.before is None
    unknown = [g.name for g in found.gates if g.result is Result.UNKNOWN]
    assert (found.status, unknown) == (Status.VALIDATED, [])


def test_a_change_that_does_nothing_is_rejected_without_a_window() -> None:
    assert judged([short(0.012)] * 2, [short(0.012)] * 3).status is Status.REJECTED


def test_too_few_latencies_say_how_many_are_missing() -> None:
    found = gate(judged([short(0.012)], [short(0.008, 100)] * 2), "delta")
    assert found.result is Result.UNKNOWN
    assert (found.note or "").startswith(
        "the trial's 2 runs printed 200 latencies, 100 short of 300, and their windows are 30.0 s short of"
    )


@pytest.mark.parametrize(("count", "expected"), [(100, NextRun.TRIAL), (20, NextRun.DONE)])
def test_another_run_is_made_where_runs_like_these_will_do(count: int, expected: NextRun) -> None:
    before, after = [short(0.012)] * 2, [short(0.008, count)]
    found = judged(before, after)
    assert next_step(found, criteria(**TERMS), before, after, TrialSetting()) is expected


def test_latencies_of_the_warm_up_count_as_printed() -> None:
    latency = LatencyEvidence(count=LATENCIES - 40, warmup=40, p50_s=0.012)
    assert share_seen(criteria(**TERMS), [short(0.012, latency=latency)]) == 1


def test_a_window_is_enough_as_before() -> None:
    runs = [run(latency_p50_s=0.012, latency=LatencyEvidence(count=60, p50_s=0.012))]
    assert share_seen(criteria(**TERMS), runs) > 1


def test_evidence_before_latencies_were_counted_needs_its_window() -> None:
    old = [run(None, None, window=None, latency_p50_s=0.012)]
    assert "short of min_window" in (short_window(criteria(**TERMS), old, old) or "")


@pytest.mark.parametrize("metric", ["gpu_util", "steps_per_s"])
def test_latencies_are_no_evidence_of_another_metric(metric: str) -> None:
    assert share_seen(criteria(metric=metric), [short(0.012)]) == 0


def test_the_interval_is_no_narrower_than_the_latencies_allow() -> None:
    sure, unsure = (judged([short(0.012, error=e)] * 4, [short(0.008, error=e)] * 4) for e in (0.01, 0.3))
    assert sure.delta is not None
    assert unsure.delta is not None
    assert estimate_text(sure.delta, "x") != estimate_text(unsure.delta, "x")
    assert (sure.status, unsure.status) == (Status.VALIDATED, Status.INCONCLUSIVE)


def test_a_run_without_latencies_says_so_and_not_that_its_window_was_short() -> None:
    found = gate(judged([short(0.012)], [run(None, None, window=None)]), "delta")
    assert "no latencies in the log" in (found.note or "")
