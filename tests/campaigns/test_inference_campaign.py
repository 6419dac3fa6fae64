"""Campaigns of programs that infer: real processes, judged by the latencies that they print."""

from __future__ import annotations

import json
import shlex
import socket
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign
from tests.support.judged import gates, judged
from tests.support.places import SUPPORT

PROGRAM = SUPPORT / "infer.py"


def make_inference(folder: Path, config: str = "", command: str = "infer.py") -> Campaign:
    """A campaign with the defaults of a metric of latencies; a run takes some two seconds."""
    return make_campaign(
        folder,
        command=f"{shlex.quote(sys.executable)} {command}",
        files={"infer.py": PROGRAM.read_bytes()},
        max_runs=3,
        config=f"metric: latency_p50\n{config}",
    )


@pytest.mark.slow
def test_a_run_of_two_seconds_is_judged_by_its_latencies(tmp_path: Path) -> None:
    campaign = make_inference(tmp_path / "repo")
    recorded = campaign.json("next")
    assert " ms (95% CI " in recorded["metric_text"]
    assert recorded["advice"] == ["no loss is printed: judged by latency alone"]
    campaign.propose("--set --copies=0")
    answer = judged(campaign)
    found = gates(answer)
    assert (found["delta"]["result"], found["loss"]["result"]) == ("pass", "skipped"), answer
    assert found["loss"]["note"] == "no loss is printed: judged by latency alone"
    assert answer["verdict"] == "VALIDATED", answer
    assert campaign.json("verify")["ok"] is True


def test_an_answer_that_is_faster_and_worse_is_rejected(tmp_path: Path) -> None:
    """Quality is a second gate; what it is called in the log is enough to read it."""
    campaign = make_inference(tmp_path / "repo", "criteria: {also: {log:success_rate: not_worse}}\n")
    campaign.json("next")
    campaign.propose("--compound --set --copies=0 --set --quality=0.3")
    answer = judged(campaign)
    found = gates(answer)
    # What others on the host did may leave the gain unknown; what the answers are worth, it does not touch.
    assert found["delta"]["result"] != "fail", answer
    assert (found["also:log:success_rate"]["result"], answer["verdict"]) == ("fail", "REJECTED")
    assert answer["why"].startswith("also:log:success_rate: 0.9 to 0.3, 66.7% worse (95% CI ")
    assert campaign.json("verify")["ok"] is True


def test_sample_and_analyze_read_the_latencies(tmp_path: Path) -> None:
    campaign = make_inference(tmp_path / "repo")
    done = campaign.run("--json", "sample", "-o", "run.csv", "--", sys.executable, "infer.py").expect(0)
    sampled = done.json["latency"]
    assert sampled["count"] + sampled["warmup"] == 320
    assert sampled["warmup"] >= 5
    assert sampled["p50_s"] == pytest.approx(0.0065, abs=0.002)
    # A busy host makes the warm-up long, and of few latencies the last percentile is unknown.
    known = [value for name in ("p50_s", "p95_s", "p99_s") if (value := sampled[name]) is not None]
    assert known == sorted(known)
    assert len(known) == 3 or sampled["count"] < 300
    analyzed = campaign.run("--json", "analyze", "run.log").expect(0).json
    assert analyzed["latency"] == sampled
    assert "latency   p50 " in campaign.run("analyze", "run.log").expect(0).out


SERVED = """\
server:
  command: {python} serve.py --port={{port}} --work=6
  ready: {{log: startup complete}}
  timeout: 30s
"""


def make_served(folder: Path, server: str = SERVED, config: str = "", requests: int = 320) -> Campaign:
    """A client and its server: the time of an answer is the server's."""
    python = shlex.quote(sys.executable)
    return make_campaign(
        folder,
        command=f"{python} ask.py --port={{port}} --requests={requests}",
        files={name: (SUPPORT / name).read_bytes() for name in ("serve.py", "ask.py")},
        max_runs=3,
        config=f"metric: latency_p50\n{server.format(python=python)}{config}",
    )


@pytest.mark.slow
def test_a_change_of_the_server_is_tested_and_accepted(tmp_path: Path) -> None:
    """`--work` is a flag of the server alone, so it goes there; the device is the server's busy process."""
    campaign = make_served(tmp_path / "repo")
    campaign.json("next")
    proposed = campaign.propose("--set --work=1")
    assert "- **Intervention**: --set server:--work=1\n" in campaign.text, proposed
    answer = judged(campaign)
    found = gates(answer)
    assert (answer["verdict"], found["delta"]["result"]) == ("VALIDATED", "pass"), answer
    run = campaign.folder / "runs" / "0001-baseline-workload"
    assert "startup complete" in (run / "server.log").read_text()
    record = json.loads((run / "run.json").read_text())
    assert record["server"]["command"].endswith("serve.py '--port={port}' --work=6")
    assert (record["server"]["died"], record["leaked"]) == (False, 0)
    assert "server.log" in json.loads((run / "manifest.json").read_text())["files"]
    assert campaign.json("verify")["ok"] is True
    campaign.run("accept", "1").expect(0)
    status = campaign.json("status")
    assert status["next"]["action"] != "record_baseline"
    assert status["baselines"]["workload"]["verified"] and campaign.json("verify")["ok"] is True


@pytest.mark.parametrize(
    ("fault", "says", "kind"),
    [
        (
            "never",
            "TIMED_OUT (config): the server was not ready after 1 s: its output does not match",
            "config",
        ),
        ("import", "CRASHED (import): the server ended with status 1 before it was ready: ", "import"),
        (
            "dies",
            "CRASHED (exception): the server ended with status 1 before the workload did: ",
            "exception",
        ),
    ],
)
def test_a_server_that_fails_is_one_error_with_its_last_line(
    tmp_path: Path, fault: str, says: str, kind: str
) -> None:
    server = SERVED.replace("--work=6", f"--fault={fault}").replace(
        "30s", "1s" if fault == "never" else "30s"
    )
    campaign = make_served(tmp_path / "repo", server)
    failed = campaign.run("next").expect(1)
    assert f"the workload itself does not complete: {says}" in failed.err
    assert "0001-baseline-workload/server.log" in failed.err
    record = json.loads((campaign.folder / "runs/0001-baseline-workload/run.json").read_text())
    assert record["failure"]["kind"] == kind
    assert campaign.json("verify")["ok"] is True


def test_a_server_that_a_hypothesis_breaks_rejects_it(tmp_path: Path) -> None:
    campaign = make_served(tmp_path / "repo")
    campaign.json("next")
    campaign.propose("--set server:--fault=import")
    answer = judged(campaign)
    assert answer["verdict"] == "REJECTED", answer
    assert answer["why"].startswith("outcome: CRASHED (import): the server ended with status 1 before it was")


def test_the_server_of_a_port_that_is_taken_is_not_started(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        campaign = make_served(tmp_path / "repo", SERVED + f"  port: {port}\n")
        failed = campaign.run("next").expect(1)
    assert f"port {port} is in use: what listens there would be measured" in failed.err
    assert not (campaign.folder / "runs" / "0001-baseline-workload").exists()


def test_sample_starts_the_server_of_the_workload(tmp_path: Path) -> None:
    campaign = make_served(tmp_path / "repo", requests=40)
    sampled = campaign.json("sample")
    assert (sampled["outcome"], sampled["latency"]["count"] + sampled["latency"]["warmup"]) == (
        "COMPLETED",
        40,
    )
