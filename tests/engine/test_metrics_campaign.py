"""Gains that are none, and a metric of one's own: real programs on the CPU through the real `next`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, copied, make_campaign

PROGRAM = Path(__file__).parent.parent / "support" / "hollow_train.py"
STEPS = "metric: steps_per_s\ncriteria: {success: 1.2x, failure: 1.05x}\n"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with its baseline: four fifths of each step are waiting for samples."""
    campaign = make_campaign(
        tmp_path_factory.mktemp("measured") / "repo",
        command=f"{shlex.quote(sys.executable)} train.py --batch_size=8",
        files={"train.py": PROGRAM.read_bytes()},
        runs=1,
        max_runs=2,
    )
    campaign.json("next")
    return campaign


def try_out(measured: Campaign, folder: Path, change: str, config: str = "") -> tuple[Campaign, Any]:
    """What `next` says of one change to the campaign, with more settings; skipped on a machine that is not
    quiet enough for a verdict."""
    campaign = copied(measured, folder)
    with campaign.config.open("a") as f:
        f.write(config)
    campaign.propose(change)
    answer = campaign.json("next")
    if answer["why"].startswith("the device was shared: other processes used "):
        pytest.skip(answer["why"])
    return campaign, answer


def gates(answer: Any) -> dict[str, Any]:
    return {gate["name"]: gate for gate in answer["gates"]}


@pytest.mark.parametrize(
    "change", ["--set --spin", pytest.param("--set --dummy", marks=pytest.mark.slow)], ids=["spin", "dummy"]
)
def test_a_core_that_is_busy_for_nothing_is_no_gain(measured: Campaign, tmp_path: Path, change: str) -> None:
    # A loaded machine does not let the core be busy all the time.
    _, answer = try_out(measured, tmp_path / "repo", change, "criteria: {success: 10, failure: 2}\n")
    assert answer["verdict"] == "REJECTED", answer
    assert answer["why"].startswith("hollow: utilisation rose, ")
    assert gates(answer)["delta"]["result"] == "pass"
    assert gates(answer)["work_conserved"]["result"] == "fail"


def test_more_steps_of_half_a_batch_are_no_gain(measured: Campaign, tmp_path: Path) -> None:
    campaign, answer = try_out(measured, tmp_path / "repo", "--set --batch_size=4", STEPS)
    assert answer["verdict"] == "REJECTED", answer
    assert answer["why"].startswith("hollow: steps_per_s is better, ")
    assert gates(answer)["delta"]["result"] == "pass"
    assert gates(answer)["throughput"]["value"].startswith("0.")
    assert gates(answer)["work_conserved"]["threshold"] == "busy time a sample at most 1.15x"
    assert "samples/s" in answer["figures"]["throughput"]
    assert answer["why"] in campaign.text


def test_a_hypothesis_is_validated_by_its_own_metric(measured: Campaign, tmp_path: Path) -> None:
    campaign, answer = try_out(measured, tmp_path / "repo", "--set --fetch=1", STEPS + "target: 10\n")
    assert answer["verdict"] == "VALIDATED", answer
    assert gates(answer)["delta"]["threshold"] == "estimate >= 1.2x and lower bound > 1.05x"
    said = answer["figures"]
    assert said["metric"].startswith("steps_per_s ")
    assert "x (95% CI " in said["improvement"]
    assert f"  - Metric: {said['metric']}\n  - Improvement: {said['improvement']}\n" in campaign.text
    status = campaign.json("status")
    (row,) = status["hypotheses"]
    assert (row["verified"], row["delta_pp"], row["metric"]) == (True, None, "steps_per_s")
    assert row["improvement_ci"][0] > 1.05
    assert status["target_text"] == "10 steps/s"
    assert status["next"]["why"].startswith("solved: hypothesis 1 reaches ")
    assert campaign.json("verify")["ok"] is True


def test_a_metric_that_the_run_did_not_yield_is_named(measured: Campaign, tmp_path: Path) -> None:
    campaign = copied(measured, tmp_path / "repo")
    with campaign.config.open("a") as f:
        f.write("metric: latency_p50\n")
    campaign.propose("--set --fetch=1")
    done = campaign.run("next").expect(1)
    assert "no figure to compare with: unknown (no latencies in the log; print each one" in done.err
    assert campaign.statuses() == ["UNTESTED"]


def test_a_baseline_says_at_once_what_it_lacks(measured: Campaign) -> None:
    entry = json.loads((measured.folder / "runs" / "0001-baseline-workload" / "evidence.json").read_text())
    assert (entry["batch_flags"], entry["samples_by"]) == ({"batch_size": "8"}, "flags")
    assert entry["samples_per_s"] == pytest.approx(8 * entry["steps_per_s"])
