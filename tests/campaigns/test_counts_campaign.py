"""What is counted is the same number in every answer, whatever became of some runs."""

from __future__ import annotations

import json
import re

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record


def resumed(share: float) -> str:
    line = "\nResuming training from snapshot at step 40" if share < 0.02 else ""
    return f"{2.0 - 1.5 * share:.3f}{line}"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One hypothesis judged, with runs that are left out, set aside and crashed, and the budget used."""
    folder = tmp_path_factory.mktemp("counts")
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", log="step 1/9 loss 2.0\n", seconds=3, exit_status=1)
    record(recordings, "0002-baseline-workload")
    record(recordings, "0003-baseline-workload", losses=resumed)
    for number in (4, 7, 8):
        record(recordings, f"000{number}-baseline-workload", seed=number)
    record(recordings, "0005-h1", util=60, rate=30, losses=resumed)
    record(recordings, "0006-h1", util=60, rate=30)
    campaign = make_replay_campaign(
        folder / "repo", recordings, config="budget: {hypotheses: 1, device_time: 2h}\n"
    )
    campaign.run("next").expect(1)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    assert campaign.json("next")["verdict"] == "VALIDATED"
    return campaign


def durations(campaign: Campaign) -> float:
    """Seconds of every run, whatever it counts for: all of them held the device."""
    records = (campaign.folder / "runs" / name / "run.json" for name in campaign.runs())
    return sum(json.loads(path.read_text())["duration_s"] for path in records)


@pytest.mark.slow
def test_budgets_are_one_figure_in_every_answer(counted: Campaign) -> None:
    made = counted.runs()
    assert made[0] == "0001-baseline-workload" and len(made) >= 7
    status = counted.json("status")
    budget = status["budget"]
    assert budget["device_time_used_s"] == pytest.approx(durations(counted), abs=0.1)
    assert budget["device_time_left_s"] == pytest.approx(7200 - durations(counted), abs=0.1)
    assert (budget["hypotheses_used"], budget["hypotheses"]) == (1, 1)
    stop = counted.json("next", status=4)
    assert stop["why"].startswith("exhausted: 1 hypothesis tested, the budget is 1")
    assert "0 of 1 hypothesis" in counted.run("status").expect(0).out
    counted.run("report", "-o", "report.html").expect(0)
    page = (counted.folder / "report.html").read_text()
    assert re.search(r'"hypotheses_used": ?1\b', page)
    text = counted.run("report", "--markdown").expect(0).out
    assert "Budget: 1 of 1 hypothesis used" in text
    checked = counted.json("verify")
    assert checked["ok"] is True
    assert len(checked["checked"]["hypotheses"]) == budget["hypotheses_used"]


@pytest.mark.slow
def test_the_runs_of_a_side_are_counted_alike(counted: Campaign) -> None:
    status, shown = counted.json("status"), counted.json("show", "1")
    base = status["baselines"]["workload"]
    assert list(base["runs"]) == ["0002-baseline-workload", "0004-baseline-workload"]
    assert f", {len(base['runs'])} runs)" in counted.text
    assert base["gpu_util_text"].endswith(f", {len(base['runs'])} runs)")
    row = next(h for h in status["hypotheses"] if h["number"] == 1)
    assert row["runs"] == shown["runs"] == ["0006-h1", "0007-h1", "0008-baseline-workload"]
    assert "- Runs: " + ", ".join(f"runs/{name}" for name in row["runs"]) in counted.text
    # What counts for nothing is named, with why, and is in no count.
    for name in ("0003-baseline-workload", "0005-h1"):
        assert not re.search(rf"- \*\*Runs\*\*: .*{name}", counted.text)
    assert "- **Left out**: run 0003-baseline-workload: " in counted.text
    assert any(note.startswith("run 0005-h1 is set aside: ") for note in shown["notes"])
    assert any("0003-baseline-workload" in line for line in base["advice"])
