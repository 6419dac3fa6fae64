"""Gains that are none, and a metric of one's own: real programs on the CPU through the real `next`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record
from tests.support.judged import gates

STEPS = "metric: steps_per_s\ncriteria: {success: 1.2x, failure: 1.05x}\n"


def test_a_hypothesis_is_validated_by_its_own_metric(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", util=50, rate=25)
    campaign = make_replay_campaign(tmp_path / "repo", recordings, config=STEPS + "target: 20\n")
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    answer = campaign.json("next")
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
    assert status["target_text"] == "20 steps/s"
    assert status["next"]["why"].startswith("solved: hypothesis 1 reaches ")
    assert campaign.json("verify")["ok"] is True


def test_a_device_that_is_busier_and_gets_no_more_done_is_no_gain(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(tmp_path / "recordings", "0002-h1", util=90, rate=10)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    answer = campaign.json("next")
    assert answer["verdict"] == "REJECTED", answer
    assert answer["why"].startswith("hollow: utilisation rose, ")
    assert (gates(answer)["delta"]["result"], gates(answer)["work_conserved"]["result"]) == ("pass", "fail")


def test_a_metric_that_the_run_did_not_yield_is_named(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", util=20, rate=10)
    command = "python train.py --batch_size=8"
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings", command=command)
    campaign.json("next")
    entry = json.loads((campaign.folder / "runs" / "0001-baseline-workload" / "evidence.json").read_text())
    # The command's batch tells of samples, and nothing of latencies.
    assert (entry["batch_flags"], entry["samples_by"]) == ({"batch_size": "8"}, "flags")
    assert entry["samples_per_s"] == pytest.approx(8 * entry["steps_per_s"])
    with campaign.config.open("a") as f:
        f.write("metric: latency_p50\n")
    campaign.pin().propose("--set --fetch=1")
    done = campaign.run("next").expect(1)
    assert "no figure to compare with: unknown (no latencies in the log; print each one" in done.err
    assert campaign.statuses() == ["UNTESTED"]


def latencies(milliseconds: float) -> str:
    lines = (
        f"request {i} latency: {milliseconds + i % 3:.1f} ms fps={1000 / milliseconds:.1f}\n"
        for i in range(60)
    )
    return "".join(lines)


@pytest.fixture
def inference(tmp_path: Path) -> Campaign:
    """Recordings of a program that trains nothing: it infers, and its change makes it faster."""
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", log=latencies(12))
    record(recordings, "0002-baseline-workload", log=latencies(12))
    record(recordings, "0003-h1", log=latencies(6))
    record(recordings, "0004-h1", log=latencies(6))
    return make_replay_campaign(tmp_path / "repo", recordings)


@pytest.mark.parametrize(
    ("metric", "change", "ratio"),
    [
        ("metric: latency_p50\ncriteria: {loss: any}\n", "latency_p50 13 to 7 ms", "1.8"),
        (
            "metric: log:fps\ndirection: higher\nlog: {fps: 'fps=(?P<value>[0-9.]+)'}\n"
            "criteria: {loss: any, throughput: any}\n",
            "log:fps 83.3 to 167",
            "2.0",
        ),
    ],
    ids=["latency", "own"],
)
def test_a_program_that_infers_is_judged_by_what_it_prints(
    inference: Campaign, metric: str, change: str, ratio: str
) -> None:
    with inference.config.open("a") as f:
        f.write(metric)
    recorded = inference.json("next")
    name = metric.split()[1]
    assert f"- **Metric**: {name} {recorded['metric_text']}\n" in inference.text
    inference.propose("--set --lr=0.2")
    answer = inference.json("next")
    assert (answer["verdict"], answer["figures"]["metric"]) == ("VALIDATED", change), answer
    assert answer["figures"]["improvement"].startswith(ratio)
    baseline = inference.json("status")["baselines"]["workload"]
    assert (baseline["verified"], baseline["metric_text"]) == (True, f"{name} {recorded['metric_text']}")
    text = inference.run("status").expect(0).out
    assert f"\nBaseline workload   {name} " in text
    assert "Target   none: `target` in gpudebug.yaml would say" in text


def test_a_baseline_says_at_once_which_metric_it_did_not_yield(inference: Campaign) -> None:
    with inference.config.open("a") as f:
        f.write("metric: samples_per_s\n")
    done = inference.run("next").expect(0)
    said = "no samples per second, no batch size in the log, none from the probe; "
    said += "print `samples/s` or `batch size: N`"
    assert f"advice: run 0001-baseline-workload did not yield samples_per_s: {said}" in done.out
    assert f"- **Metric**: samples_per_s unknown ({said})" in inference.text


def test_an_edited_metric_of_a_baseline_is_noticed(inference: Campaign) -> None:
    with inference.config.open("a") as f:
        f.write("metric: latency_p50\n")
    inference.json("next")
    entry = inference.text
    inference.progress.write_text(entry.replace("latency_p50 13 ms", "latency_p50 31 ms"))
    assert inference.text != entry
    assert inference.json("status")["baselines"]["workload"]["verified"] is False
    (problem,) = inference.json("verify", status=1)["problems"]
    assert (problem["field"], problem["expected"].split(" (")[0]) == ("metric", "latency_p50 13 ms")


def test_a_variable_that_names_the_batch_leaves_the_gain_open(tmp_path: Path) -> None:
    """Nobody sees from outside what BATCH_SIZE=4 does, so twice the steps may be nothing."""
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", util=80, rate=20)
    campaign = make_replay_campaign(tmp_path / "repo", recordings, config="allow_env: [BATCH_SIZE]\n")
    campaign.json("next")
    campaign.propose("--env BATCH_SIZE=4")
    answer = campaign.json("next")
    assert answer["verdict"] == "INCONCLUSIVE", answer
    said = "the change names the batch, and not all runs report samples per second in the same way"
    assert gates(answer)["throughput"]["note"].startswith(said)
