"""What `status` tells of a campaign's noise: from its runs, its criteria and the device time that is left."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pytest
from tests.support.campaigns import Campaign, environment


def configured(campaign: Campaign, text: str) -> Any:
    campaign.config.write_text(campaign.config.read_text() + text)
    return campaign.json("status")["resolution"]


def test_what_two_runs_show(recorded: Campaign) -> None:
    found = configured(recorded, "")
    runs = {key: found[key] for key in ("baseline_runs", "fresh_runs", "aa_runs")}
    assert runs == {"baseline_runs": 2, "fresh_runs": 0, "aa_runs": 0}
    assert found["limited"] is False
    util, rate = found["figures"]
    assert (util["figure"], util["unit"], util["goal"]) == ("gpu_util", "pp", 20)
    assert (rate["figure"], rate["unit"], rate["goal"]) == ("throughput", "x", 1.05)
    # Six runs' worth of what is assumed, and one run with a peer.
    assert util["sd"] == pytest.approx(math.sqrt((6 * 4.5**2 + util["own_sd"] ** 2) / 7))
    assert rate["sd"] == pytest.approx(math.sqrt((6 * 0.1**2 + rate["own_sd"] ** 2) / 7))
    assert 20 < util["passed"] < 30
    assert util["goal_runs"]["total"] == util["goal_runs"]["trial"] + util["goal_runs"]["baseline"]
    assert util["goal_runs"]["total"] < rate["goal_runs"]["total"]
    text = " ".join(recorded.run("status").expect(0).out.split())
    noise = f"Noise {util['sd']:.1f}pp of gpu_util, {100 * rate['sd']:.1f}% of throughput"
    assert f"{noise} (mostly assumed: 2 runs)" in text
    assert f"power): {util['told']:.1f}pp of gpu_util, {rate['told']:.2f}x of throughput" in text


def test_the_goal_follows_the_criteria(recorded: Campaign) -> None:
    found = configured(recorded, "criteria: {success: 40, failure: 10}\n")["figures"][0]
    assert found["goal"] == 40
    assert found["goal_runs"]["total"] < 4
    assert found["passed"] > 40


def test_another_metric_has_its_own_goal(recorded: Campaign) -> None:
    found = configured(recorded, "metric: steps_per_s\ncriteria: {success: 1.3x, failure: 1.1x}\n")["figures"]
    assert [(f["figure"], f["unit"]) for f in found] == [("steps_per_s", "x"), ("throughput", "x")]
    assert found[0]["goal"] == pytest.approx(1.3)
    assert found[0]["passed"] > 1.3
    assert found[0]["told"] == pytest.approx(found[1]["told"])


def test_the_device_time_that_is_left_limits_it(recorded: Campaign) -> None:
    before = configured(recorded, "")
    runs = [
        json.loads((recorded.folder / "runs" / name / "run.json").read_text()) for name in recorded.runs()
    ]
    # Those of a baseline are not equally long.
    held = sum(run["duration_s"] for run in runs) * (len(runs) + 2.5) / len(runs)
    found = configured(recorded, f"budget: {{device_time: {held:.3f}s}}\n")
    assert (found["left"], found["limited"]) == (2, True)
    assert found["figures"][0]["told"] > before["figures"][0]["told"]
    # What an effect takes is asked whatever it costs.
    assert found["figures"][0]["goal_runs"] == before["figures"][0]["goal_runs"]
    text = " ".join(recorded.run("status").out.split())
    assert "with the 2 runs that device time is left for" in text


def test_no_device_time_resolves_nothing(recorded: Campaign) -> None:
    found = configured(recorded, "budget: {device_time: 0.1s}\n")
    assert found["left"] == 0
    assert {f["told"] for f in found["figures"]} == {None}
    assert "Detectable effect: none, the device time is used up" in recorded.run("status").out


def test_the_baselines_runs_beside_trials_count(told: Campaign) -> None:
    records = [json.loads((told.folder / "runs" / name / "run.json").read_text()) for name in told.runs()]
    beside = [r for r in records if r["role"] == "baseline-workload" and r["hypothesis"] is not None]
    found = told.json("status")["resolution"]
    assert (found["baseline_runs"], found["fresh_runs"]) == (2, len(beside))
    assert len(beside) > 0
    assert found["figures"][0]["runs"] == 2 + len(beside)


def test_a_run_folder_that_was_renamed_counts_under_its_new_name(told: Campaign) -> None:
    before = told.json("status")["resolution"]
    runs = told.folder / "runs"
    records = {name: json.loads((runs / name / "run.json").read_text()) for name in told.runs()}
    name = next(
        n for n, r in records.items() if r["role"] == "baseline-workload" and r["hypothesis"] is not None
    )
    (runs / name).rename(runs / f"1{name[1:]}")
    assert told.json("status")["resolution"]["fresh_runs"] == before["fresh_runs"]


def test_without_a_baseline_nothing_is_known(campaign: Campaign) -> None:
    assert configured(campaign, "") is None
    assert "Noise" not in campaign.run("status").out


def test_status_loads_nothing_heavy_for_it(recorded: Campaign) -> None:
    # With none left to test it would say what the catalogue offers.
    recorded.propose("--set --duration=3")
    code = (
        "import sys; from pathlib import Path\n"
        "from gpudebug.engine.status.status import status\n"
        "from gpudebug.terminal.status import status as shown\n"
        "answer = status(Path()); shown(answer)\n"
        "assert answer.resolution and 'gpudebug.engine.trial.noise' in sys.modules\n"
        "heavy = ('numpy', 'jinja2', 'gpudebug.core.records', 'gpudebug.core.verdict.gates')\n"
        "heavy += ('gpudebug.engine.trial.aa',)\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=recorded.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "[]"
