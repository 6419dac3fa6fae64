"""A baseline: all of its runs or none, and a workload that fails is said with its own words."""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record
from tests.support.trials import run

from gpudebug.core.config.parser import load
from gpudebug.core.records import LossEvidence, RunRecord
from gpudebug.core.words import Outcome, Trend
from gpudebug.edges.store import RunFolder
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.trial.baseline import of_first

CRASH = (
    "step 1/9 loss 2.0\nTraceback (most recent call last):\nModuleNotFoundError: No module named 'lerobot'\n"
)


def test_a_workload_that_fails_is_said_and_nothing_is_entered(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", log=CRASH, seconds=3, exit_status=1)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    done = campaign.run("next").expect(1)
    line = done.err.splitlines()[-1]
    assert "import" in line
    assert "No module named 'lerobot'" in line
    assert "train.log" in line
    assert "; next: " in line
    assert not campaign.progress.exists()
    assert (campaign.folder / "runs" / "0001-baseline-workload" / "manifest.json").exists()
    # Mended, it is recorded: the failed run stays and is not counted.
    record(tmp_path / "recordings", "0002-baseline-workload")
    assert campaign.json("next")["action"] == "recorded_baseline"
    assert "runs/0001-baseline-workload" not in campaign.text
    assert "runs/0002-baseline-workload" in campaign.text


def test_what_the_entry_says_is_what_was_measured(campaign: Campaign) -> None:
    answer = campaign.json("next")
    evidence = [json.loads(path.read_text()) for path in campaign.folder.glob("runs/*/evidence.json")]
    mean = statistics.mean(e["utilisation"] for e in evidence)
    assert len(evidence) == 2 and answer["gpu_util"] == pytest.approx(mean)
    assert f"- **GPU util**: {mean:.1f}% (95% CI " in campaign.text
    assert "- **Throughput**: 10 steps/s" in campaign.text
    assert "- **Training**: SUCCESS" in campaign.text
    assert "- **Loss**: CONVERGING" in campaign.text


def test_too_few_points_and_too_short_a_window_are_said_with_what_would_mend_them(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", log="step 100/200 loss 1.5\n", seconds=8)
    campaign = make_replay_campaign(
        tmp_path / "repo",
        tmp_path / "recordings",
        command="lerobot-train --steps=200 --log_freq=200",
        files={"bin/lerobot-train": "#!/bin/sh\n"},
    )
    (campaign.folder / "bin" / "lerobot-train").chmod(0o755)
    answer = campaign.json("next", env={"PATH": f"{campaign.folder}/bin:{os.environ['PATH']}"})
    advice = " ".join(answer["advice"])
    assert "--log_freq=20" in advice
    assert "s of steady window: one of less than 30 s says less" in advice
    assert answer["loss"] == "UNKNOWN"


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_a_file_keeps_its_line_endings_and_every_foreign_byte(campaign: Campaign, ending: bytes) -> None:
    before = b"\xef\xbb\xbf# Mine\n\nBlanks   \n\n## Baselines\n\n## Own section \xe2\x80\x94\n\nlast line"
    campaign.progress.parent.mkdir()
    campaign.progress.write_bytes(before.replace(b"\n", ending))
    campaign.json("next")
    after = campaign.progress.read_bytes()
    assert after.count(b"\n") == after.count(ending)
    at = after.index(b"### Baseline")
    assert after[:at].rstrip() == before.replace(b"\n", ending)[: len(after[:at].rstrip())]
    assert after.endswith(before.replace(b"\n", ending).partition(b"## Baselines")[2].lstrip())


def test_a_first_run_with_a_cold_page_cache_is_left_out_and_made_up_for(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=12, read_mb_s=150.0)
    for number in (2, 3):
        record(recordings, f"000{number}-baseline-workload", util=20, read_mb_s=0.2)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    answer = campaign.json("next")
    assert answer["gpu_util"] == pytest.approx(20, abs=0.5)
    assert answer["notes"][-1] == (
        "run 0001-baseline-workload is left out: it met a cold page cache and read 150 MB/s from disk, "
        "the next one 0 MB/s"
    )
    assert "runs/0002-baseline-workload, runs/0003-baseline-workload" in campaign.text
    assert campaign.json("status")["next"]["action"] == "propose"


def test_a_baseline_that_leaves_runs_of_its_recording_out_is_not_valid(tmp_path: Path) -> None:
    for number, util in enumerate((42, 14), 1):
        record(tmp_path / "recordings", f"000{number}-baseline-workload", util=util, rate=10)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    campaign.json("baseline")
    one = "- **GPU util**: 14.0% (95% CI 2.9 to 25.1, 1 run)"
    text = re.sub(r"- \*\*GPU util\*\*: .*", one, campaign.text)
    campaign.progress.write_text(
        re.sub(r"- \*\*Runs\*\*: .*", "- **Runs**: runs/0002-baseline-workload", text)
    )
    status = campaign.json("status", env={"GPUDEBUG_SESSION": "a"})
    assert status["baselines"]["workload"]["why"] == ("its recording has runs/0001-baseline-workload too")
    assert status["next"]["action"] == "record_baseline"


def test_a_baseline_picked_from_two_recordings_is_not_valid(tmp_path: Path) -> None:
    for number, util in enumerate((14, 42, 14, 42), 1):
        record(tmp_path / "recordings", f"000{number}-baseline-workload", util=util, rate=10)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    campaign.json("baseline")
    campaign.json("baseline")
    picked = "- **Runs**: runs/0001-baseline-workload, runs/0003-baseline-workload"
    text = re.sub(
        r"- \*\*GPU util\*\*: .*", "- **GPU util**: 14.0% (95% CI 13.1 to 14.9, 2 runs)", campaign.text
    )
    campaign.progress.write_text(re.sub(r"- \*\*Runs\*\*: .*", picked, text))
    status = campaign.json("status", env={"GPUDEBUG_SESSION": "a"})
    assert status["baselines"]["workload"]["why"] == "its recording has runs/0002-baseline-workload too"


def resumed(share: float) -> str:
    """A loss; the program says between its first steps that it goes on where an earlier run ended."""
    line = "\nResuming training from snapshot at step 40" if share < 0.02 else ""
    return f"{2.0 - 1.5 * share:.3f}{line}"


def test_a_run_that_resumes_is_left_out_and_made_up_for(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    record(recordings, "0002-baseline-workload", losses=resumed)
    record(recordings, "0003-baseline-workload", seed=1)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    notes = " ".join(campaign.json("next")["notes"])
    assert "run 0002-baseline-workload is left out: it goes on where an earlier run ended" in notes
    assert "Resuming training from snapshot at step 40" in notes
    assert "runs/0002-baseline-workload" not in campaign.text
    assert "runs/0003-baseline-workload" in campaign.text
    campaign.run("verify").expect(0)
    # The entry names it, and so does what reads the entry; the figures are those of the others.
    named = "run 0002-baseline-workload: it goes on where an earlier run ended"
    assert f"- **Left out**: {named}" in campaign.text
    status = campaign.json("status")
    assert named in " ".join(status["baselines"]["workload"]["advice"])
    assert status["baselines"]["workload"]["verified"] is True
    assert campaign.json("verify")["ok"] is True
    page = campaign.folder / "report.html"
    campaign.run("report", "-o", str(page)).expect(0)
    told = page.read_text().count("Run 0002-baseline-workload is left out of the baseline: ")
    assert told > 0
    assert page.read_text().count("The baseline of the workload was recorded: ") == told
    # The next recording has its own.
    for number in (4, 5):
        record(recordings, f"000{number}-baseline-workload", seed=number)
    campaign.json("baseline")
    assert "Left out" not in campaign.text


def cached(share: float) -> str:
    line = "\nUsing cached features from data/cache.npy" if share < 0.02 else ""
    return f"{2.0 - 1.5 * share:.3f}{line}"


def test_a_first_run_that_fills_a_cache_is_left_out_and_made_up_for(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    for number in (2, 3):
        record(recordings, f"000{number}-baseline-workload", losses=cached, seed=number)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    assert campaign.json("next")["notes"][-1] == (
        "run 0001-baseline-workload is left out: the next one found a cache that it made (Using cached "
        "features from data/cache.npy); trials find that cache, too: {run} in its path gives each run its own"
    )
    assert "runs/0002-baseline-workload, runs/0003-baseline-workload" in campaign.text
    campaign.run("verify").expect(0)


def test_a_workload_that_always_resumes_stops_with_what_helps(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    record(recordings, "0002-baseline-workload", losses=resumed)
    record(recordings, "0003-baseline-workload", seconds=6.4)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    line = campaign.run("next").expect(1).err.splitlines()[-1]
    assert "runs of the workload are not alike" in line
    assert "it ended at step 64, and 0001-baseline-workload at step 400" in line
    assert "{run}" in line
    assert not campaign.progress.exists()
    # What was left out serves no later recording.
    record(recordings, "0004-baseline-workload", seed=1)
    record(recordings, "0005-baseline-workload", seed=2)
    assert campaign.json("next")["action"] == "recorded_baseline"
    assert "runs/0003-baseline-workload" not in campaign.text


def test_a_trial_that_resumes_is_not_judged(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload")
    record(recordings, "0002-h1", util=60.0, rate=20.0, losses=resumed)
    record(recordings, "0003-h1", util=60.0, rate=20.0, losses=resumed)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("next")
    campaign.propose("--set --work=0.1")
    answer = campaign.json("next")
    assert answer["verdict"] == "INVALID"
    assert "run 0004-h1: it goes on where an earlier run ended" in answer["why"]
    assert "give each run a folder of its own" in answer["why"]
    campaign.run("verify").expect(0)


def test_a_baseline_that_leaves_no_room_says_so_at_once(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", util=93.0)
    record(tmp_path / "recordings", "0002-h1", util=95.0)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    said = "utilisation cannot show a success: the baseline is at 9"
    assert any(line.startswith(said) for line in campaign.json("next")["advice"])
    assert any(line.startswith(said) for line in campaign.json("status")["baselines"]["workload"]["advice"])
    campaign.propose("--set --work=0.1")
    assert said in campaign.run("next").expect(0).err


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        (
            lambda share: 2.0 + 8 * share,
            "the loss is DIVERGING without any change: a trial has",
        ),
        (
            lambda share: "nan" if share > 0.3 else 2.0,
            "the loss is NAN without any change: a trial whose",
        ),
    ],
)
def test_a_baseline_whose_loss_is_broken_says_what_trials_are_held_to(
    tmp_path: Path, losses: Callable[[float], object], said: str
) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", losses=losses)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    assert any(line.startswith(said) for line in campaign.json("next")["advice"])
    campaign.config.write_text(campaign.config.read_text() + "criteria: {loss: any}\n")
    assert not any(
        line.startswith(said) for line in campaign.json("status")["baselines"]["workload"]["advice"]
    )


WAITED_FOR = [{"util": 4.0, "power_w": 121}, *[{"util": 99.0, "power_w": 150}] * 7]


def test_a_mean_over_gpus_that_misleads_is_said_with_what_to_take(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", gpus=WAITED_FOR)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    text = campaign.run("next").expect(0).out
    assert "  advice: the mean over GPUs misleads: GPU 0 is busy 4" in text
    assert "  devices: gpu_util least 4." in text
    assert "  devices: power least 121 W (GPU 0), median 150 W, most 150 W (GPU 1); GPU 0 is apart" in text
    baseline = campaign.json("status")["baselines"]["workload"]
    assert any("criteria: {devices: least}" in line for line in baseline["advice"])
    util = next(one for one in baseline["across"] if one["figure"] == "gpu_util")
    assert [one["index"] for one in util["apart"]] == [0]
    assert "GPU 0 is apart" in campaign.run("status").expect(0).out


def test_gpus_that_are_alike_have_a_mean_that_says_enough(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", gpus=[{"util": 30.0}, {"util": 36.0}])
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    answer = campaign.json("next")
    assert not any("misleads" in line for line in answer["advice"])
    assert [one["figure"] for one in answer["across"]] == ["gpu_util", "mem_mean_mb"]


def test_that_learning_cannot_be_judged_is_said_before_more_runs_are_made(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    for number in (1, 2):
        log = "".join(f"step {step}/120\n" for step in range(1, 121))
        record(recordings, f"000{number}-baseline-workload", log=log)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    said = campaign.run("next", "--json").expect(0).err.splitlines()
    unjudged = next(i for i, line in enumerate(said) if "learning cannot be judged: print a loss" in line)
    assert "criteria: {loss: any}" in said[unjudged]
    assert unjudged < next(i for i, line in enumerate(said) if "1 more run" in line)


@pytest.mark.parametrize(
    ("settings", "points", "waits"),
    [
        ("", 4, True),
        ("", 12, False),
        ("criteria: {loss: any}\n", 4, False),
        # Each run ends by itself, and waits for nothing.
        ("protocol: {run_for: end}\n", 4, False),
    ],
)
def test_how_long_runs_wait_for_losses_is_said_of_the_first_one(
    settings: str, points: int, waits: bool
) -> None:
    config = load(f"campaign: a\nworkload: {{command: python train.py}}\n{settings}", "gpudebug.yaml")
    cycle = SimpleNamespace(setup=SimpleNamespace(config=config), loaded=SimpleNamespace(campaign=None))
    printed = LossEvidence(name="loss", trend=Trend.CONVERGING, points=points)
    evidence = run(window=30.0, outcome=Outcome.ENDED_BY_PLAN, loss=printed)
    made = [MeasuredRun(RunFolder(Path("/x/0001-x"), str), RunRecord.model_construct(), evidence)]
    lines = of_first(cycle, "reference", made)  # type: ignore[arg-type]
    assert any("a run takes about 1.5 min for them" in line for line in lines) is waits


def test_a_variable_that_hypotheses_may_set_is_part_of_the_surroundings(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(tmp_path / "recordings", "0002-h1", util=21, rate=10)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    campaign.config.write_text(f"{campaign.config.read_text()}allow_env: [N_PROCS]\n")
    campaign.run("settings", "--accept").expect(0)
    shell = {"N_PROCS": "0"}
    campaign.json("next", env=shell)
    first = json.loads((campaign.folder / "runs" / "0001-baseline-workload" / "run.json").read_text())
    assert first["variables"] == {"N_PROCS": "0"}
    campaign.propose("--env N_PROCS=2")
    again = campaign.json("next")
    assert again["why"] == "baseline workload: recorded elsewhere: variable N_PROCS 0 and unset"
    assert campaign.json("next")["verdict"] is not None
    trial = next(campaign.folder.glob("runs/*-h1/run.json"))
    assert json.loads(trial.read_text())["variables"] == {"N_PROCS": "2"}
