"""A verdict as it is entered: which runs it lists, and its lines."""

from __future__ import annotations

from gpudebug.core import progress
from gpudebug.engine.trial.result import result_block, runs_of

RUNS = [
    {"name": "0001-baseline-workload", "part": "baseline", "fresh": False},
    {"name": "0004-baseline-workload", "part": "baseline", "fresh": True},
    {"name": "0002-h1", "part": "crash", "fresh": False},
    {"name": "0003-h1", "part": "trial", "fresh": False},
]


def test_the_runs_are_those_that_were_made_for_it_in_their_order() -> None:
    assert runs_of({"runs": RUNS}) == ["0002-h1", "0003-h1", "0004-baseline-workload"]


def test_its_lines_are_read_back() -> None:
    verdict = {
        "status": "REJECTED", "why": "delta", "before": 20.0, "after": 20.5, "metric": "gpu_util",
        "metric_before": 20.0, "metric_after": 20.5, "delta": {"value": 0.5, "low": -1.0, "high": 2.0},
        "throughput_before": 10.0, "throughput_after": 10.0, "throughput_unit": "step",
        "throughput_ratio": None, "training": "SUCCESS", "loss": "CONVERGING", "notes": ["a secret"],
        "gates": [], "runs": RUNS,
    }  # fmt: skip
    block = result_block(verdict, runs_of(verdict), lambda text: text.replace("secret", "***"))
    (entry,) = progress.parse(f"### Hypothesis 1: x\n{block}".encode(), "").hypotheses
    assert list(entry.runs) == runs_of(verdict)
    assert entry.result["improvement"].startswith("+0.5pp")
    assert "a ***" in entry.result["notes"]
